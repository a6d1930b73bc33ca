"""pipeline.yaml → values: what is taken, what is refused, and in which words."""

from __future__ import annotations

import copy
import json
import pickle
from importlib import resources
from pathlib import Path

import pytest
import yaml

from oncelake.errors import SpecError
from oncelake.spec import PipelineSpec, echo, echo_yaml, examine, read_spec

ARTICLE = resources.files("oncelake.samples").joinpath("article.avsc").read_text("utf-8")

SPEC = """\
pipeline: articles
source:
  bootstrap: localhost:9092
  topic: articles.raw.v1
decode:
  schema: article.avsc
table:
  name: demo.news.articles_raw
checkpoint: chk
catalog:
  type: jdbc
  uri: jdbc:sqlite:catalog.db
  warehouse: warehouse
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "article.avsc").write_text(ARTICLE)
    return tmp_path


def read(folder: Path, text: str, **environ: str) -> PipelineSpec:
    file = folder / "pipeline.yaml"
    file.write_text(text)
    return read_spec(file, environ).spec


def complaints(folder: Path, data: str | bytes, **environ: str) -> list[str]:
    """The problems as `line: text`."""
    file = folder / "pipeline.yaml"
    file.write_bytes(data.encode() if isinstance(data, str) else data)
    found = examine(file, environ)
    assert (found.spec is None) == bool(found.problems)
    return [f"{problem.line}: {problem.text}" for problem in found.problems]


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


# What stands in place of what, and the problem as `line: text` or the beginning of it.
WRONG = [
    ("checkpoint:", "chekpoint:", "9: unknown key 'chekpoint' in the spec; did you mean 'check"),
    ("topic:", "topics:", "4: unknown key 'topics' in source; did you mean 'topic'?"),
    ("decode:", "maxOffsetsPerTrigger: 5\ndecode:", "5: unknown key 'maxOffsetsPerTrigger' in the"),
    ("catalog:", "limits: {maxOffsetsPerTrigger: 5}\ncatalog:", "did you mean 'max_offsets'?"),
    ("  schema", "  trigger: 1 s\n  schema", "belongs at the top level"),
    ("decode:", "topic: x\ndecode:", "did you mean 'topic' in source?"),
    ("decode:", "zzz: x\ndecode:", "known here: pipeline"),
    ("  topic: articles.raw.v1\n", "", "3: source.topic is missing; write it here or set KAFKA"),
    ("pipeline: articles\n", "", "None: pipeline is missing"),
    ("topic: articles.raw.v1", "topic:", "source.topic is missing"),
    ("pipeline: articles", "pipeline: Articles!", "1: pipeline 'Articles!' must be a name"),
    ("pipeline: articles", "pipeline: yes", "1: pipeline is read by YAML as true or false: put"),
    ("pipeline: articles", "pipeline: 2024-01-01", "pipeline is read by YAML as a date: put"),
    ("pipeline: articles", "pipeline: 1_000", "pipeline is read by YAML as a whole number: put"),
    ("pipeline: articles", "pipeline: [a]", "1: pipeline must be a single value, not a list"),
    ("pipeline: articles", "pipeline: !x a", "1: pipeline has a tag"),
    ("pipeline: articles", 'pipeline: "a\\0"', "1: pipeline holds the unusable character U+0000"),
    ("pipeline: articles", "yes: 1\npipeline: articles", "a key in the spec is read by YAML as tr"),
    ("pipeline: articles", "[a]: 1\npipeline: articles", "1: a key in the spec must be plain text"),
    ("articles.raw.v1", "a,b", "source.topic 'a,b' must be the name of one topic"),
    ("localhost:9092", "localhost", "3: source.bootstrap 'localhost' must be host:port"),
    ("localhost:9092", "h:99999", "3: source.bootstrap 'h:99999' must be host:port"),
    ("localhost:9092", '["h:1"]', "source.bootstrap must be a single value, not a list"),
    ("decode:", "  start: newest\ndecode:", "source.start 'newest' must be earliest or latest"),
    ("decode:", "  topic: b\ndecode:", "5: key 'topic' is given twice in source, first on line 4"),
    ("decode:", "  options: 5\ndecode:", "5: source.options must hold keys and values"),
    ("decode:", "  options: {a: [1]}\ndecode:", "source.options.a must be a single value, not a"),
    ("decode:", "  options: {a: }\ndecode:", 'source.options.a has no value; write ""'),
    ("decode:", "  options: {a: no}\ndecode:", "options.a is read by YAML as true or false: put"),
    ("decode:", "  options: {a: 1_0}\ndecode:", "options.a is read by YAML as a whole number: put"),
    ("decode:", "  options: {1: a}\ndecode:", "a key in source.options is read by YAML as a whole"),
    ("decode:", "  options: {a: b, a: c}\ndecode:", "key 'a' is given twice in source.options"),
    (
        "decode:",
        "  options: {enable.auto.commit: true}\ndecode:",
        "enable.auto.commit is not yours",
    ),
    ("decode:", "  options: {auto.offset.reset: x}\ndecode:", "would skip missing offsets"),
    ("decode:", "  options: {startingOffsets: x}\ndecode:", "the table says where to go on"),
    ("decode:", "  options: {subscribe: x}\ndecode:", "subscribe is set by source.topic"),
    ("decode:", "  options: {value.deserializer: x}\ndecode:", "records arrive as bytes"),
    ("decode:", "  options: {kafka.client.id: x}\ndecode:", "added for you: write client.id"),
    ("decode:", "  options: {maxOffsetsPerTrigger: 1}\ndecode:", "is set by limits.max_offsets"),
    ("schema: article.avsc", "schema: other.avsc", "other.avsc' is not there"),
    ("schema: article.avsc", "schema: .", "is a folder, not a file"),
    ("schema: article.avsc", "schema: ~/a", "is not expanded: write ${HOME} in place of ~"),
    ("schema: article.avsc", "{schema: article.avsc, format: json}", "must be avro"),
    ("demo.news.articles_raw", "news.articles", "table.name 'news.articles' must have three parts"),
    ("demo.news.articles_raw", "demo.news.9x", "must be SQL names"),
    ("demo.news.articles_raw", "demo.news.x;drop", "must be SQL names"),
    ("demo.news.articles_raw", "spark_catalog.a.b", "names Spark's own catalog"),
    ("raw\n", "raw\n  quarantine: demo.news.articles_RAW\n", "must be another table"),
    ("raw\n", "raw\n  quarantine: other.news.bad\n", "must be in the same catalog"),
    ("raw\n", "raw\n  partition_by: days(id)\n", "9: table.partition_by must be a list"),
    ("raw\n", "raw\n  partition_by: [days(id)]\n", "the column is of the type string, not one of"),
    ("raw\n", "raw\n  partition_by: [publishd_at]\n", "did you mean 'published_at'?"),
    ("raw\n", "raw\n  partition_by: [day(published_at)]\n", "did you mean 'days'?"),
    ("raw\n", "raw\n  partition_by: [bucket(id)]\n", "must be written bucket(16, column)"),
    ("raw\n", "raw\n  partition_by: ['days(3, published_at)']\n", "be written days(column)"),
    ("raw\n", "raw\n  partition_by: ['bucket(0, id)']\n", "must be written bucket(16, column)"),
    ("raw\n", "raw\n  partition_by: [source, source]\n", "repeats an entry"),
    ("raw\n", "raw\n  partition_by: [1]\n", "is read by YAML as a whole number"),
    (
        "raw\n",
        "raw\n  partition_by: [days(published_at), hours(published_at)]\n",
        "repeats an entry",
    ),
    ("raw\n", "raw\n  properties: {oncelake.x: a}\n", "is kept by oncelake itself"),
    ("raw\n", "raw\n  properties: {commit.retry.num-retries: 0}\n", "must be at least 4"),
    ("catalog:", "mode: upsert\ncatalog:", "mode 'upsert' is not in this version"),
    ("catalog:", "mode: merge\ncatalog:", "mode 'merge' must be append"),
    ("catalog:", "trigger: 30\ncatalog:", "trigger is read by YAML as a whole number"),
    ("catalog:", "trigger: fast\ncatalog:", "trigger 'fast' must be a number and a unit"),
    ("catalog:", "trigger: -1 s\ncatalog:", "trigger '-1 s' must be a number and a unit"),
    ("catalog:", "trigger: 25 h\ncatalog:", "must be from 1 ms to 24 hours"),
    ("catalog:", "limits: {max_offsets: 0}\ncatalog:", "max_offsets '0' must be from 1 to"),
    ("catalog:", "limits: {max_offsets: -5}\ncatalog:", "max_offsets '-5' must be from 1 to"),
    ("catalog:", "limits: {max_offsets: 1_000}\ncatalog:", "whole number in plain digits"),
    ("catalog:", "limits: {max_offsets: 010}\ncatalog:", "whole number in plain digits"),
    ("catalog:", "limits: {max_offsets: many}\ncatalog:", "whole number in plain digits"),
    ("catalog:", "limits: {max_offsets: 1.5}\ncatalog:", "must be a whole number, not a number"),
    ("catalog:", "limits: {max_offsets: yes}\ncatalog:", "must be a whole number, not true or"),
    ("catalog:", "limits: [a]\ncatalog:", "limits must hold keys and values: max_offsets"),
    ("type: jdbc", "type: hadoop", "11: catalog.type 'hadoop' cannot be exact"),
    ("type: jdbc", "type: mysql", "must be one of jdbc, rest, hive, glue, nessie"),
    ("type: jdbc", "type: rest", "must begin with http:// or https:// for the type rest"),
    ("jdbc:sqlite:catalog.db", "'jdbc:sqlite::memory:'", "a catalog in memory is gone"),
    ("catalog.db", "file:catalog.db", "must name the file by its path"),
    ("  topic", "\ttopic", r"4: not YAML: found character '\t' that cannot start any token"),
    ("localhost:9092", "[a", "not YAML: expected ',' or ']', but got ':'"),
    ("  warehouse: warehouse\n", "", "11: catalog.warehouse is missing"),
    ("  warehouse: warehouse\n", "  warehouse: ''\n", "catalog.warehouse '' is empty"),
    ("  type: jdbc", "  properties: {catalog-impl: x}\n  type: jdbc", "is chosen by catalog.type"),
    ("  type: jdbc", "  properties: {uri: x}\n  type: jdbc", "is set by catalog.uri"),
    ("catalog:", "spark: {master: 'sc://h'}\ncatalog:", "spark.master 'sc://h' is Spark Connect"),
    ("catalog:", "spark: {master: lokal}\ncatalog:", "spark.master 'lokal' must be local[*]"),
    ("catalog:", "spark: {settings: {a: b}}\ncatalog:", "their names begin with 'spark.'"),
    ("catalog:", "spark: {settings: {spark.remote: b}}\ncatalog:", "is Spark Connect"),
    (
        "catalog:",
        "spark: {settings: {spark.sql.catalog.demo.type: hadoop}}\ncatalog:",
        "is set by the catalog section",
    ),
    ("catalog:", "log_level: loud\ncatalog:", "log_level 'loud' must be one of ALL"),
    ("catalog:", "log_level: OFF\ncatalog:", "log_level is read by YAML as true or false: put"),
    ("checkpoint: chk", "checkpoint: ''", "checkpoint '' is empty"),
    ("  topic", "   topic", "4: not YAML: "),
    ("checkpoint: chk", "checkpoint: *chk", "9: not YAML: found undefined alias …"),
    ("checkpoint: chk", "checkpoint: chk\n---\na: b", "not YAML: but found another document"),
    ("checkpoint: chk", 'checkpoint: "\\UFFFFFFFF"', "not YAML: an escaped character"),
    ("checkpoint: chk", "checkpoint: c\x07", "9: the character U+0007 is not allowed in YAML"),
]


@pytest.mark.parametrize(("right", "wrong", "expected"), WRONG)
def test_a_mistake_is_named_with_its_line(
    folder: Path, right: str, wrong: str, expected: str
) -> None:
    found = complaints(folder, SPEC.replace(right, wrong, 1))
    assert any(expected in each for each in found), found


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "None: is empty"),
        (b"# only a comment\n", "None: is empty"),
        (b"- a\n- b\n", "None: must hold keys and values at the top"),
        (b"text", "None: must hold keys and values at the top"),
        (b"a: b\nc: \xff\n", "None: is not UTF-8 text (line 2): save it as UTF-8"),
        ("a: b".encode("utf-16"), "None: is not UTF-8 text (line 1): save it as UTF-8"),
        (b"[" * 1500, "None: nested too deeply to be a spec"),
        (b"a" * 1_000_001, "None: is larger than 1,000,000 bytes: is it the right file?"),
    ],
)
def test_a_file_that_is_no_spec_is_one_problem(folder: Path, data: bytes, expected: str) -> None:
    assert complaints(folder, data) == [expected]


def test_a_byte_order_mark_is_no_problem(folder: Path) -> None:
    (folder / "article.avsc").write_text(ARTICLE, encoding="utf-8-sig")
    assert complaints(folder, SPEC.encode("utf-8-sig")) == []


def test_all_problems_come_at_once_in_the_order_of_lines(folder: Path) -> None:
    text = SPEC.replace("chk", "''").replace("articles.raw.v1", "a b").replace("jdbc\n", "hadoop\n")
    with pytest.raises(SpecError) as caught:
        read(folder, text, ONCELAKE_TIRGGER="1 s")
    first, *lines = str(caught.value).splitlines()
    file = folder / "pipeline.yaml"
    assert first == f"{file} has 4 problems:"
    assert [line.split(": ")[0].strip() for line in lines] == [
        f"{file}:4",
        f"{file}:9",
        f"{file}:11",
        "environment variable ONCELAKE_TIRGGER",
    ]


def test_a_missing_file_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"is not there; `oncelake init .*none.yaml` writes one"):
        read_spec(tmp_path / "none.yaml", {})


def test_a_folder_in_place_of_a_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="is a folder, not a file"):
        read_spec(tmp_path, {})


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ("{", "is not JSON: line 1"),
        ("5", "is not an Avro schema"),
        ('"string"', "must be an Avro record"),
        ('{"type": "record", "name": "A"}', "has no fields in the record A"),
        ('{"type": "record", "fields": []}', "is not an Avro schema"),
        ('{"type": "record", "name": "A", "fields": [{"name": "a", "type": "zz"}]}', "unknown ty"),
        ('{"type": "record", "name": "A", "fields": [{"name": "a-b", "type": "int"}]}', "'a-b'"),
        (
            '{"type": "record", "name": "A", "fields": [{"name": "a", "type": "int"},'
            ' {"name": "A", "type": "int"}]}',
            "has the field A twice",
        ),
        (
            '{"type": "record", "name": "A", "fields": [{"name": "a", "type": ["null", "A"]}]}',
            "has the record A inside itself",
        ),
        (
            '{"type": "record", "name": "A", "fields": [{"name": "Kafka_Offset", "type": "int"}]}',
            "which the table adds itself",
        ),
    ],
)
def test_an_unfit_schema_is_refused(folder: Path, schema: str, expected: str) -> None:
    (folder / "article.avsc").write_text(schema)
    [found] = complaints(folder, SPEC)
    assert found.startswith(f"6: decode.schema '{folder}/article.avsc' ")
    assert expected in found


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
    spec = read(folder, f"{text}trigger: 1.5 s\nlimits: {{max_offsets: 7}}\nlog_level: 'off'\n")
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
