"""The demo's pure parts: events to a tally, cues, and the verdict; and its care with folders."""

from __future__ import annotations

import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fastavro import writer

from oncelake.demo.count import rows_of
from oncelake.demo.folder import MARKER, DemoFolder, FolderTaken
from oncelake.demo.run import child_environment
from oncelake.demo.script import BATCHES, SCENES, Cue, batch_size
from oncelake.demo.tally import Event, Tally, line_of, parse
from oncelake.demo.verdict import Audited, Counted, Outcome
from oncelake.samples.articles import Expected


def claimed(generation: int) -> Event:
    return {"event": "claimed", "generation": generation, "sequence": 9, "positions": {}}


def batch(number: int, outcome: str, total: int) -> Event:
    counts = {"read": 100, "written": 99, "quarantined": 1}
    return {
        "event": "batch", "batch": number, "outcome": outcome,
        "counts": counts, "totals": {"read": total},
    }  # fmt: skip


STAGED: Event = {"event": "staged", "batch": 3, "files": 6, "rows": 99}


def tally_of(*events: Event) -> Tally:
    tally = Tally()
    for event in events:
        tally = tally.after(event)
    return tally


def test_a_line_that_is_no_event_is_passed_over() -> None:
    assert parse("WARN something of Spark's") is None
    assert parse("[1, 2]") is None
    assert parse('{"no": "event"}') is None
    assert parse('{"event": "stopped", "reason": "done"}') == {
        "event": "stopped",
        "reason": "done",
    }


def test_totals_are_the_tables_own_and_not_a_sum_of_events() -> None:
    tally = tally_of(claimed(1), batch(0, "written", 100), batch(5, "written", 600))
    assert tally.read == 600


def test_a_skipped_batch_is_a_refused_replay_and_not_written() -> None:
    tally = tally_of(claimed(2), batch(4, "skipped", 500), batch(5, "trimmed", 580))
    assert (tally.refused_replays, tally.written_here, tally.trimmed) == (1, 1, 1)


def test_a_claim_begins_a_new_count_of_batches_but_keeps_the_rest() -> None:
    before = tally_of(claimed(1), batch(0, "written", 100), batch(1, "skipped", 100)).killed()
    after = before.after(claimed(2))
    assert (after.generation, after.written_here) == (2, 0)
    assert (after.read, after.refused_replays, after.kills) == (100, 1, 1)


def test_a_cue_waits_for_its_event_and_for_enough_batches() -> None:
    cue = Cue("staged", written=1)
    early = tally_of(claimed(1))
    ready = early.after(batch(0, "written", 100))
    assert not cue.given(STAGED, early)
    assert not cue.given(batch(0, "written", 100), ready)
    assert cue.given(STAGED, ready)


def test_a_refused_replay_gives_no_cue() -> None:
    cue = Cue("batch", written=0)
    assert not cue.given(batch(4, "skipped", 500), Tally())
    assert cue.given(batch(4, "written", 500), Tally())


@pytest.mark.parametrize("count", [1_000, 9_999, 200_000])
def test_every_scene_finds_batches_to_write(count: int) -> None:
    before_the_last = sum(scene.cue.written for scene in SCENES if scene.cue)
    overshoot = 2  # after a Ctrl+C the running batch ends, and a further one may have begun
    assert before_the_last + overshoot < count / batch_size(count) <= BATCHES


def test_people_read_what_matters_and_nothing_twice() -> None:
    assert line_of(claimed(2)) == "generation 2 claimed the table"
    assert line_of(batch(5, "skipped", 9)) == "replay refused: batch 5 is in the table already"
    committed = line_of(batch(5, "written", 1_600))
    assert committed is not None
    assert "read 100 = written 99 + quarantined 1; total 1,600" in committed
    assert line_of(STAGED) is None


AUDITED = Audited(
    exit_code=0, verdict="clean", read=1_000, written=999, quarantined=1, batches=12,
    gaps=0, overlaps=0, duplicates=0,
)  # fmt: skip
GOOD = Outcome(
    produced=1_000,
    expected=Expected(good=999, corrupt=1, duplicates=50, late=10),
    tally=Tally(kills=2, refused_replays=1),
    audited=AUDITED,
    counted=Counted(main=999, quarantine=1),
    seconds=80.0,
)


def test_pass_when_everything_agrees() -> None:
    assert GOOD.passed
    assert GOOD.to_json()["verdict"] == "PASS"
    assert dict(GOOD.rows)["refused replays"] == "1"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"audited": replace(AUDITED, verdict="explained", exit_code=3)}, "the audit's verdict"),
        ({"audited": replace(AUDITED, exit_code=4)}, "the audit's verdict"),
        ({"audited": replace(AUDITED, read=999)}, "read = produced"),
        ({"audited": replace(AUDITED, written=1_000)}, "written = good ones"),
        ({"audited": replace(AUDITED, quarantined=0)}, "quarantined = corrupt ones"),
        ({"audited": replace(AUDITED, gaps=1)}, "gaps"),
        ({"audited": replace(AUDITED, overlaps=1)}, "overlaps"),
        ({"audited": replace(AUDITED, duplicates=1)}, "duplicates"),
        ({"counted": Counted(main=998, quarantine=1)}, "rows in the table's files"),
        ({"counted": Counted(main=999, quarantine=2)}, "rows in the quarantine's files"),
    ],
)
def test_fail_names_the_one_thing_that_does_not_hold(change: dict[str, Any], named: str) -> None:
    outcome = replace(GOOD, **change)
    assert not outcome.passed
    assert [check.name for check in outcome.checks if not check.holds] == [named]


def test_a_folder_that_no_demo_made_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(FolderTaken, match="no demo made"):
        DemoFolder(tmp_path).make_fresh()
    assert (tmp_path / "thesis.tex").exists()


def test_a_former_demo_is_replaced(tmp_path: Path) -> None:
    folder = DemoFolder(tmp_path / "demo")
    folder.make_fresh()
    (folder.path / "old").write_text("")
    folder.make_fresh()
    assert [path.name for path in folder.path.iterdir()] == [MARKER]


def test_a_folder_that_a_program_still_writes_to_is_no_hindrance(tmp_path: Path) -> None:
    """What cannot be removed now is out of the way, and removed by the next demo."""
    folder = DemoFolder(tmp_path / "demo")
    folder.make_fresh()
    (folder.path / "old").write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda path, ignore_errors: None)
        folder.make_fresh()
    assert [path.name for path in folder.path.iterdir()] == [MARKER]
    folder.make_fresh()
    assert list(tmp_path.iterdir()) == [folder.path]


def test_variables_that_would_redirect_the_spec_do_not_reach_the_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KAFKA_TOPIC", "another")
    monkeypatch.setenv("ONCELAKE_LIMITS_MAX_OFFSETS", "1")
    monkeypatch.setenv("ONCELAKE_CACHE", "kept")
    environment = child_environment(tmp_path / "a scratch")
    assert environment["ONCELAKE_CACHE"] == "kept"
    assert not {"KAFKA_TOPIC", "ONCELAKE_LIMITS_MAX_OFFSETS"} & set(environment)
    assert environment["SPARK_SUBMIT_OPTS"].endswith(f"'-Djava.io.tmpdir={tmp_path}/a scratch'")


def avro_file(path: Path, fields: list[dict[str, Any]], records: list[dict[str, Any]]) -> str:
    schema = {"type": "record", "name": path.stem, "fields": fields}
    with path.open("wb") as file:
        writer(file, schema, records, codec="deflate")
    return str(path)


def test_rows_are_counted_in_the_live_files_of_the_current_snapshot(tmp_path: Path) -> None:
    data_file = {
        "type": "record", "name": "data_file",
        "fields": [{"name": "record_count", "type": "long"}],
    }  # fmt: skip
    entry_fields: list[dict[str, Any]] = [
        {"name": "status", "type": "int"},
        {"name": "data_file", "type": data_file},
    ]
    entries = [
        {"status": status, "data_file": {"record_count": rows}}
        for status, rows in ((0, 100), (1, 20), (2, 3_000))
    ]
    manifest = avro_file(tmp_path / "manifest.avro", entry_fields, entries)
    manifests = avro_file(
        tmp_path / "list.avro",
        [{"name": "manifest_path", "type": "string"}],
        [{"manifest_path": f"file:{manifest}"}],
    )
    snapshots = [
        {"snapshot-id": 1, "manifest-list": "gone.avro"},
        {"snapshot-id": 2, "manifest-list": manifests},
    ]
    metadata = tmp_path / "metadata.json"
    metadata.write_text(json.dumps({"current-snapshot-id": 2, "snapshots": snapshots}))
    database = sqlite3.connect(tmp_path / "catalog.db")
    database.execute(
        "CREATE TABLE iceberg_tables (catalog_name, table_namespace, table_name, metadata_location)"
    )
    row = ("demo", "news", "articles_raw", str(metadata))
    database.execute("INSERT INTO iceberg_tables VALUES (?, ?, ?, ?)", row)
    database.commit()
    database.close()
    assert rows_of(tmp_path / "catalog.db", "demo.news.articles_raw") == 120
