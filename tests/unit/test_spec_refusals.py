"""pipeline.yaml that is wrong: what is refused, with its line, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest

from oncelake.errors import SpecError
from oncelake.spec import read_spec
from tests.unit.spec_files import ARTICLE, SPEC, complaints, read


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "article.avsc").write_text(ARTICLE)
    return tmp_path


UPSERT = "mode: upsert\n"
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
    (
        "raw\n",
        "raw\n  properties:\n    format-version: '2'\nmode: upsert\nkey: id\n",
        "10: table.properties.format-version must be at least 3 for mode: upsert: deletion vec",
    ),
    ("catalog:", "mode: upsert\ncatalog:", "10: mode upsert needs key: the columns that tell"),
    ("catalog:", "mode: upsert\nkey: ~\ncatalog:", "mode upsert needs key"),
    ("catalog:", "mode: upsert\nkey: []\ncatalog:", "mode upsert needs key"),
    ("catalog:", "mode: merge\ncatalog:", "mode 'merge' must be append or upsert"),
    ("catalog:", "mode: upsrt\ncatalog:", "did you mean 'upsert'?"),
    ("catalog:", "key: id\ncatalog:", "10: key is for mode: upsert, and this is append"),
    ("catalog:", "order: [id]\ncatalog:", "order is for mode: upsert, and this is append"),
    ("catalog:", f"{UPSERT}key: idd\ncatalog:", "key 'idd' is no field of the schema; did you me"),
    ("catalog:", f"{UPSERT}key: zzz\ncatalog:", "key 'zzz' is no field of the schema; it has id,"),
    ("catalog:", f"{UPSERT}key: kafka_offset\ncatalog:", "key 'kafka_offset' is no field of"),
    ("catalog:", f"{UPSERT}key: [id, id]\ncatalog:", "key 'id' is named twice"),
    ("catalog:", f"{UPSERT}key: 5\ncatalog:", "key is read by YAML as a whole number: put it"),
    ("catalog:", f"{UPSERT}key: {{a: b}}\ncatalog:", "key must be a list: [first, second]"),
    ("catalog:", f"{UPSERT}key: id\norder: idd\ncatalog:", "12: order 'idd' is no field"),
    ("catalog:", f"{UPSERT}keys: [id]\ncatalog:", "unknown key 'keys' in the spec; did you mean"),
    ("catalog:", "trigger: 30\ncatalog:", "must be a number and a unit, such as"),
    ("catalog:", "trigger: fast\ncatalog:", "trigger 'fast' must be a number and a unit"),
    ("catalog:", "trigger: -1 s\ncatalog:", "trigger '-1 s' must be a number and a unit"),
    ("catalog:", "trigger: 25 h\ncatalog:", "must be from 1 ms to 24 hours"),
    ("catalog:", "limits: {max_offsets: 0}\ncatalog:", "max_offsets '0' must be from 1 to"),
    ("catalog:", "limits: {max_offsets: -5}\ncatalog:", "max_offsets '-5' must be from 1 to"),
    ("catalog:", "limits: {max_offsets: 1_000}\ncatalog:", "whole number in plain digits"),
    ("catalog:", "limits: {max_offsets: 010}\ncatalog:", "whole number in plain digits"),
    ("catalog:", "limits: {max_offsets: many}\ncatalog:", "whole number in plain digits"),
    ("catalog:", "limits: {max_offsets: 1.5}\ncatalog:", "must be a whole number, not a fraction"),
    ("catalog:", "limits: {max_offsets: yes}\ncatalog:", "must be a whole number, not true or"),
    ("catalog:", "limits: [a]\ncatalog:", "limits must hold keys and values: max_offsets"),
    ("catalog:", "maintenance: {every: 5 s}\ncatalog:", "every '5 s' must be at least 1 minute"),
    ("catalog:", "maintenance: {orphans: 1 m}\ncatalog:", "orphans '1 m' must be at least 1 hour"),
    ("catalog:", "maintenance: {expire: 36501 days}\ncatalog:", "at most a hundred years"),
    ("catalog:", "maintenance: {compact: x}\ncatalog:", "unknown key 'compact' in maintenance"),
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
