"""pipeline.yaml → values: what is taken, and what it becomes."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path

import pytest
import yaml

from oncelake.spec import echo, echo_yaml, read_spec
from tests.unit.spec_files import ARTICLE, SPEC, complaints, read


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "article.avsc").write_text(ARTICLE)
    return tmp_path


def test_a_short_spec_gets_every_default(folder: Path) -> None:
    spec = read(folder, SPEC)
    assert spec.mode == "append"
    assert spec.trigger_seconds == 30.0
    assert spec.source.start == "earliest"
    assert spec.table.quarantine == "demo.news.articles_raw_quarantine"
    assert spec.table.catalog == "demo"
    assert spec.table.partition_by == ()
    assert spec.limits.max_offsets is None
    assert spec.spark.master is None
    assert spec.log_level == "WARN"
    assert json.loads(spec.decode.schema)["name"] == "Article"


def test_relative_paths_begin_at_the_specs_folder(folder: Path) -> None:
    spec = read(folder, SPEC.replace("warehouse: warehouse", "warehouse: ./a/../lake"))
    assert spec.catalog.uri == f"jdbc:sqlite:{folder}/catalog.db"
    assert spec.catalog.warehouse == f"{folder}/lake"
    assert spec.checkpoint == f"{folder}/chk"
    assert spec.decode.schema_file == folder / "article.avsc"


@pytest.mark.parametrize("place", ["/chk/articles", "s3a://lake/chk", "file:///chk", "hdfs://n/c"])
def test_absolute_places_stay_as_they_are(folder: Path, place: str) -> None:
    assert read(folder, SPEC.replace("chk", place)).checkpoint == place


def test_a_sqlite_uri_keeps_its_parameters(folder: Path) -> None:
    spec = read(folder, SPEC.replace("catalog.db", "/lake/catalog.db?busy_timeout=5000"))
    assert spec.catalog.uri == "jdbc:sqlite:/lake/catalog.db?busy_timeout=5000"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30 seconds", 30.0),
        ("1 minute", 60.0),
        ("500 ms", 0.5),
        ("0.5 hours", 1800.0),
        ("2s", 2.0),
        ("0 seconds", 0.0),
    ],
)
def test_triggers_are_read_in_their_units(folder: Path, text: str, seconds: float) -> None:
    assert read(folder, f"{SPEC}trigger: {text}\n").trigger_seconds == seconds


def test_partitions_are_spelled_one_way(folder: Path) -> None:
    entries = "[source, 'Days( published_at )', 'bucket(16,id)', 'truncate(4, title)']"
    spec = read(folder, SPEC.replace("raw\n", f"raw\n  partition_by: {entries}\n"))
    expected = ("source", "days(published_at)", "bucket(16, id)", "truncate(4, title)")
    assert spec.table.partition_by == expected


def test_the_tables_own_columns_can_be_partitioned_by(folder: Path) -> None:
    spec = read(folder, SPEC.replace("raw\n", "raw\n  partition_by: [hours(processed_at)]\n"))
    assert spec.table.partition_by == ("hours(processed_at)",)


def test_free_settings_are_texts_as_they_are_spelled(folder: Path) -> None:
    options = "  options: {session.timeout.ms: 30000, check.crcs: true, client.id: 'yes', a.b: 0.5}"
    spec = read(folder, SPEC.replace("decode:", f"{options}\ndecode:"))
    assert dict(spec.source.options) == {
        "session.timeout.ms": "30000",
        "check.crcs": "true",
        "client.id": "yes",
        "a.b": "0.5",
    }


def test_fail_on_data_loss_is_dropped_with_a_warning(folder: Path) -> None:
    file = folder / "pipeline.yaml"
    file.write_text(SPEC.replace("decode:", "  options: {failOnDataLoss: false}\ndecode:"))
    reading = read_spec(file, {})
    assert dict(reading.spec.source.options) == {}
    [warning] = reading.warnings
    assert warning.startswith(f"{file}:5: source.options.failOnDataLoss is ignored")


@pytest.mark.parametrize("option", ["isolation.level: read_committed", "group.id: oncelake"])
def test_harmless_client_settings_are_taken(folder: Path, option: str) -> None:
    spec = read(folder, SPEC.replace("decode:", f"  options: {{{option}}}\ndecode:"))
    assert len(spec.source.options) == 1


@pytest.mark.parametrize("section", ["limits:", "spark:", "source: {options: }", "limits: ~"])
def test_an_empty_optional_part_is_no_problem(folder: Path, section: str) -> None:
    text = SPEC if section.startswith("source") else f"{SPEC}{section}\n"
    if section.startswith("source"):
        text = SPEC.replace("decode:", "  options:\ndecode:")
    assert read(folder, text) == read(folder, SPEC)


def test_a_byte_order_mark_is_no_problem(folder: Path) -> None:
    (folder / "article.avsc").write_text(ARTICLE, encoding="utf-8-sig")
    assert complaints(folder, SPEC.encode("utf-8-sig")) == []


def test_a_nullable_timestamp_can_be_partitioned_by_day(folder: Path) -> None:
    optional = ARTICLE.replace('{"type": "long"', '["null", {"type": "long"')
    optional = optional.replace('"timestamp-micros"}', '"timestamp-micros"}]')
    (folder / "article.avsc").write_text(optional)
    spec = read(folder, SPEC.replace("raw\n", "raw\n  partition_by: [days(published_at)]\n"))
    assert spec.table.partition_by == ("days(published_at)",)


def test_the_echo_of_a_spec_reads_back_as_the_same_spec(folder: Path) -> None:
    text = SPEC.replace(
        "raw\n", "raw\n  partition_by: ['bucket(4, id)']\n  properties: {a: 'no'}\n"
    )
    more = "maintenance: {every: 1 hour, expire: 2 days}\n"
    spec = read(
        folder, f"{text}{more}trigger: 1.5 s\nlimits: {{max_offsets: 7}}\nlog_level: 'off'\n"
    )
    assert (spec.maintenance.every_seconds, spec.maintenance.expire_seconds) == (3600, 172_800)
    assert read(folder, echo_yaml(spec)) == spec


def test_the_echo_spells_out_every_key(folder: Path) -> None:
    shown = echo(read(folder, SPEC))
    assert shown == json.loads(json.dumps(shown)) == yaml.safe_load(echo_yaml(read(folder, SPEC)))
    assert shown["limits"] == {"max_offsets": None, "min_partitions": None}
    assert shown["trigger"] == "30 seconds"
    assert shown["decode"] == {"format": "avro", "schema": f"{folder}/article.avsc"}


def test_a_spec_is_a_value(folder: Path) -> None:
    spec = read(folder, SPEC)
    assert pickle.loads(pickle.dumps(spec)) == copy.deepcopy(spec) == spec
    assert len({spec, copy.copy(spec)}) == 1


@pytest.mark.parametrize("key", ["id", "[id]", "[id, url]"])
def test_an_upsert_names_its_key_and_order(folder: Path, key: str) -> None:
    text = f"mode: upsert\nkey: {key}\norder: published_at\ncatalog:"
    spec = read(folder, SPEC.replace("catalog:", text))
    assert spec.key == (("id", "url") if "url" in key else ("id",))
    assert spec.order == ("published_at",)


def test_an_upsert_without_order_goes_by_kafka_alone(folder: Path) -> None:
    spec = read(folder, SPEC.replace("catalog:", "mode: upsert\nkey: id\ncatalog:"))
    assert (spec.key, spec.order) == (("id",), ())
