"""Spark's checkpoint: the ranges of a batch, and what it is worth beside the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from oncelake import checkpoint
from oncelake.checkpoint import Checkpoint, FileDamaged
from oncelake.errors import CheckpointUnusable
from oncelake.model import Origin, Progress, Span, TopicPartition

METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}'
ID = '{"id":"db44582c-dfd4-4de0-a8fb-87d495fef1fe"}'
COMMITTED = 'v1\n{"nextBatchWatermarkMs":0}'
FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


class LocalFiles:
    """As lake.Folder, without Java."""

    def __init__(self, root: Path) -> None:
        self.root = str(root)
        self._root = root

    def names(self, folder: str) -> list[str]:
        path = self._root / folder
        return [each.name for each in path.iterdir()] if path.is_dir() else []

    def read(self, entry: str) -> str:
        try:
            return (self._root / entry).read_text()
        except FileNotFoundError as error:
            raise FileDamaged(f"{entry} cannot be read ({error})") from error

    def move_to(self, root: str) -> None:
        self._root.rename(root)


def _written(folder: Path, entries: Mapping[str, str]) -> Checkpoint:
    for name, text in entries.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Checkpoint(LocalFiles(folder))


def _entry(offsets: str) -> str:
    return f"v1\n{METADATA}\n{offsets}"


def _source(offsets: str) -> str:
    return f"\0v1\n{offsets}"


def _ends(first: int, second: int) -> str:
    return _entry(f'{{"t":{{"0":{first},"1":{second}}}}}')


# Two batches, of which the second is committed too: Spark goes on at 9 and 4.
GOOD = {
    "metadata": ID,
    "sources/0/0": _source('{"t":{"0":0,"1":0}}'),
    "offsets/0": _ends(7, 2),
    "offsets/1": _ends(9, 4),
    "commits/0": COMMITTED,
    "commits/1": COMMITTED,
    "offsets/.1.crc": "beside",
}


def _table(first: int, second: int) -> Progress:
    positions = {FIRST: Span(0, first), SECOND: Span(0, second)}
    return Progress("p", Origin("c", {"t": "id"}), positions=positions)


def _without(*names: str) -> dict[str, str]:
    return {name: text for name, text in GOOD.items() if name not in names}


@pytest.mark.parametrize(
    ("entries", "resumes"),
    [
        ({}, {}),
        ({"metadata": ID}, {}),
        ({"sources/0/0": GOOD["sources/0/0"]}, {FIRST: 0, SECOND: 0}),
        (GOOD, {FIRST: 9, SECOND: 4}),
        (_without("commits/1"), {FIRST: 7, SECOND: 2}),
        (_without("commits/0", "commits/1"), {FIRST: 7, SECOND: 2}),
        (_without("offsets/1", "commits/1", "commits/0"), {FIRST: 0, SECOND: 0}),
        ({**GOOD, "sources/0/0": "not read any more"}, {FIRST: 9, SECOND: 4}),
    ],
    ids=["nothing", "an id", "a source", "committed", "planned", "commits lost", "first", "source"],
)
def test_one_that_is_not_ahead_of_the_table_is_relied_on(
    tmp_path: Path, entries: Mapping[str, str], resumes: Mapping[TopicPartition, int]
) -> None:
    for ahead in (0, 5):
        found = _written(tmp_path, entries).look()
        assert (found.resumes, found.fault(_table(9 + ahead, 4), {})) == (resumes, None)


@pytest.mark.parametrize(
    ("damage", "named"),
    [
        ({"offsets/1": ""}, "offsets/1 does not begin"),
        ({"offsets/1": "v1\n"}, "offsets/1 does not tell"),
        ({"offsets/1": 'v1\n{"batch\n{"t":{"0":9}}'}, "offsets/1 does not tell"),
        ({"offsets/1": GOOD["offsets/1"].replace("v1", "v7")}, "offsets/1 does not begin"),
        ({"offsets/1": _entry('{"t":{"0":null}}')}, "offsets/1 does not name"),
        ({"commits/1": 'v1\n{"next'}, "commits/1 does not tell"),
        ({"offsets/1": "garbage"}, "offsets/1 does not begin"),
        ({"offsets/1": _entry("not json")}, "offsets/1 does not name"),
        ({"offsets/1": _entry('{"t":[1]}')}, "offsets/1 does not name"),
        ({"offsets/1": _entry('{"t":{"0":1}}\n{}')}, "offsets/1 does not name"),
        ({"offsets/0": "v1"}, "offsets/0 does not tell"),
        ({"offsets/3": _ends(9, 4)}, "offsets/2 cannot be read"),
        ({"commits/1": "{"}, "commits/1 does not begin"),
        ({"commits/2": COMMITTED}, "commits/2 has no offsets/2"),
        ({"metadata": ""}, "metadata"),
        ({"metadata": "[]"}, "metadata"),
        ({"metadata": '{"id":1}'}, "metadata"),
    ],
)
def test_a_damaged_one_is_told_by_its_file(
    tmp_path: Path, damage: Mapping[str, str], named: str
) -> None:
    fault = _written(tmp_path, {**GOOD, **damage}).look().fault(_table(9, 4), {})
    assert fault is not None
    assert fault.startswith(f"it is damaged: {named}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\0v1\n", "does not name the offsets of one Kafka source"),
        ("v1\n{}", "does not begin with its version"),
    ],
)
def test_a_damaged_source_counts_where_the_first_batch_is_due(
    tmp_path: Path, text: str, said: str
) -> None:
    entries = {"sources/0/0": text, "offsets/0": _ends(7, 2)}
    assert _written(tmp_path, entries).look().damage == f"sources/0/0 {said}"


def test_a_batch_that_ends_before_it_begins_counts_as_long_as_it_is_due(tmp_path: Path) -> None:
    """As an overtaken run may leave it, which writes into a checkpoint that was begun anew."""
    back = {**GOOD, "offsets/1": _ends(6, 4)}
    assert _written(tmp_path, back).look().resumes == {FIRST: 6, SECOND: 4}
    (tmp_path / "commits/1").unlink()
    assert Checkpoint(LocalFiles(tmp_path)).look().damage == "offsets/1 ends before it begins"


@pytest.mark.parametrize("left", ["commits/0", "offsets/.0.tmp", "state/0"])
def test_without_a_batch_nothing_may_be_left_of_others(tmp_path: Path, left: str) -> None:
    """Spark refuses to begin there."""
    entries = {"metadata": ID, "sources/0/0": GOOD["sources/0/0"], left: COMMITTED}
    found = _written(tmp_path, entries).look()
    assert found.damage == f"{left} is there, and no batch in offsets"


def test_one_that_is_ahead_is_told_with_both_offsets(tmp_path: Path) -> None:
    assert _written(tmp_path, GOOD).look().fault(_table(9, 3), {}) == (
        "it is ahead of the table: in partition 1 of t it would go on at offset 4, and the table "
        "ends at 3"
    )


def test_one_that_is_ahead_in_a_partition_the_table_has_not_met_is_told(tmp_path: Path) -> None:
    """Such a one was added, and is due from its beginning, wherever Kafka has that."""
    found, known = _written(tmp_path, GOOD).look(), _table(9, 4)
    known = replace(known, positions={FIRST: known.positions[FIRST]})
    assert found.fault(known, {SECOND: Span(4, 90)}) is None
    assert "offset 4, and the table ends at 0" in (found.fault(known, {SECOND: Span(0, 90)}) or "")


def test_that_of_another_topic_is_refused_with_what_to_type(tmp_path: Path) -> None:
    found = _written(tmp_path, GOOD).look()
    checkpoint.require_ours("/chk", found, "t")
    with pytest.raises(CheckpointUnusable, match=r"of topic t, .* reads other.*oncelake recover"):
        checkpoint.require_ours("/chk", found, "other")


def test_it_is_set_aside_whole(tmp_path: Path) -> None:
    folder = tmp_path / "chk"
    aside = Path(_written(folder, GOOD).set_aside())
    assert not folder.exists()
    assert aside.name.startswith("chk.aside-20")
    assert Checkpoint(LocalFiles(aside)).look().resumes == {FIRST: 9, SECOND: 4}
    with pytest.raises(CheckpointUnusable, match="could not be set aside"):
        Checkpoint(LocalFiles(folder)).set_aside()


def test_the_first_batch_begins_where_the_source_began(tmp_path: Path) -> None:
    log = _written(tmp_path, {"sources/0/0": _source('{"t":{"0":7}}'), "offsets/0": _ends(9, 0)})
    assert log.ranges(0)[FIRST] == Span(7, 9)


def test_a_batch_begins_where_the_one_before_it_ended(tmp_path: Path) -> None:
    newest = _entry('{"t":{"0":12,"1":3,"2":5}}')
    log = _written(tmp_path, {"offsets/4": _ends(9, 3), "offsets/5": newest})
    third = TopicPartition("t", 2)
    assert log.ranges(5) == {FIRST: Span(9, 12), SECOND: Span(3, 3), third: Span(0, 5)}


def test_a_batch_without_its_offsets_is_refused_with_their_file(tmp_path: Path) -> None:
    with pytest.raises(CheckpointUnusable, match=r"batch 3 .*offsets/3 cannot be read.*run again"):
        _written(tmp_path, GOOD).ranges(3)


def test_a_folder_that_is_missing_is_made(tmp_path: Path) -> None:
    checkpoint.prepare(str(tmp_path / "chk" / "articles_raw"))
    assert (tmp_path / "chk" / "articles_raw").is_dir()
    # Hadoop takes a path as it is spelt.
    checkpoint.prepare(f"file://{tmp_path}/a%20space")
    assert (tmp_path / "a%20space").is_dir()


def test_one_that_cannot_be_made_says_what_to_type(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CheckpointUnusable, match=r"Not a directory\. Set checkpoint"):
        checkpoint.prepare(str(tmp_path / "file" / "chk"))


def test_one_that_may_not_be_made_says_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # For root, as which the tests may run, there is no folder that may not be made.
    def refuse(*how: object, **more: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(CheckpointUnusable, match=r"sudo mkdir -p .*/chk && sudo chown \$USER"):
        checkpoint.prepare(str(tmp_path / "chk"))


def test_one_that_is_not_writable_says_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oncelake.checkpoint.os.access", lambda path, how: False)
    with pytest.raises(CheckpointUnusable, match="sudo chown -R"):
        checkpoint.prepare(str(tmp_path))


def test_one_elsewhere_is_left_to_spark() -> None:
    checkpoint.prepare("s3a://bucket/chk")


def test_one_that_is_behind_what_kafka_holds_is_told_with_both_offsets(tmp_path: Path) -> None:
    """Spark would ask for offsets that are gone, though the table has them long since."""
    found = _written(tmp_path, GOOD).look()
    held = {tp: Span(offset, 90) for tp, offset in found.resumes.items()}
    assert found.fault(_table(50, 50), held) is None
    first = min(held)
    assert found.fault(_table(50, 50), {**held, first: Span(10, 90)}) == (
        "it is behind the topic: in partition 0 of t it would go on at offset 9, and Kafka holds "
        "none before 10"
    )


@pytest.mark.parametrize("place", ["s3a://bucket/c", "gs://bucket/c", "abfss://c@a.example/c"])
def test_one_in_an_object_store_is_remarked_on(place: str) -> None:
    said = checkpoint.remark(place)
    assert said is not None
    assert place in said
    assert "nothing is lost or doubled" in said


@pytest.mark.parametrize("place", ["checkpoint", "/srv/c", "file:///srv/c", "hdfs://nn/c"])
def test_where_a_file_is_renamed_in_one_step_there_is_nothing_to_say(place: str) -> None:
    assert checkpoint.remark(place) is None
