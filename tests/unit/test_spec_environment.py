"""Environment variables: overrides of keys, and `${VAR}` inside texts."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest

from oncelake.spec import PipelineSpec, examine, read_spec
from oncelake.spec.environment import LONG_NAMES, fill

ARTICLE = resources.files("oncelake.samples").joinpath("article.avsc").read_text("utf-8")

SPEC = """\
pipeline: articles
source: {bootstrap: 'localhost:9092', topic: articles.raw.v1}
decode: {schema: article.avsc}
table: {name: demo.news.articles_raw}
checkpoint: /chk
catalog: {type: rest, uri: 'http://localhost:8181'}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "article.avsc").write_text(ARTICLE)
    (tmp_path / "pipeline.yaml").write_text(SPEC)
    return tmp_path / "pipeline.yaml"


def value(spec: PipelineSpec, dotted: str) -> object:
    found: object = spec
    for name in dotted.split("."):
        found = getattr(found, name)
    return found


@pytest.mark.parametrize(
    ("variable", "text", "field", "expected"),
    [
        ("KAFKA_BOOTSTRAP_SERVERS", "a:1, b:2", "source.bootstrap", "a:1,b:2"),
        ("KAFKA_TOPIC", "other", "source.topic", "other"),
        ("ICEBERG_TABLE", "lake.a.b", "table.name", "lake.a.b"),
        ("CHECKPOINT_LOCATION", "/other", "checkpoint", "/other"),
        ("ONCELAKE_SOURCE_TOPIC", "other", "source.topic", "other"),
        ("ONCELAKE_LIMITS_MAX_OFFSETS", "10000", "limits.max_offsets", 10000),
        ("ONCELAKE_TRIGGER", "1 minute", "trigger_seconds", 60.0),
        ("ONCELAKE_LOG_LEVEL", "off", "log_level", "OFF"),
        ("ONCELAKE_SPARK_MASTER", "local[2]", "spark.master", "local[2]"),
        ("ONCELAKE_PIPELINE", "7", "name", "7"),
    ],
)
def test_a_variable_overrides_its_key(
    file: Path, variable: str, text: str, field: str, expected: object
) -> None:
    assert value(read_spec(file, {variable: text}).spec, field) == expected


def test_every_scalar_key_has_a_variable() -> None:
    assert len(LONG_NAMES) == 30
    assert LONG_NAMES["ONCELAKE_TABLE_QUARANTINE"] == "table.quarantine"
    assert "ONCELAKE_TABLE_PARTITION_BY" not in LONG_NAMES


def test_a_variable_gives_what_the_file_leaves_out(file: Path) -> None:
    file.write_text(SPEC.replace(", topic: articles.raw.v1", ""))
    assert read_spec(file, {"KAFKA_TOPIC": "given"}).spec.source.topic == "given"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"ONCELAKE_TIRGGER": "1 s"}, "did you mean ONCELAKE_TRIGGER?"),
        ({"ONCELAKE_LIMIT_MAX_OFFSETS": "1"}, "did you mean ONCELAKE_LIMITS_MAX_OFFSETS?"),
        ({"ONCELAKE_TABLE_PARTITION_BY": "a"}, "lists and maps take ${VAR} inside the file"),
        ({"KAFKA_TOPIC": ""}, "environment variable KAFKA_TOPIC: source.topic '' must be"),
        ({"ONCELAKE_LIMITS_MAX_OFFSETS": "0"}, "ONCELAKE_LIMITS_MAX_OFFSETS: limits.max_offsets"),
        ({"KAFKA_TOPIC": "a", "ONCELAKE_SOURCE_TOPIC": "b"}, "KAFKA_TOPIC sets source.topic too"),
        ({"KAFKA_TOPIC": "a\udc80"}, "source.topic holds an unusable character"),
        ({"ONCELAKE_TABLE_QUARANTINE": "x.a.b"}, "ONCELAKE_TABLE_QUARANTINE: table.quarantine"),
    ],
)
def test_a_wrong_variable_is_named(file: Path, environ: dict[str, str], expected: str) -> None:
    [problem] = examine(file, environ).problems
    assert expected in str(problem)


@pytest.mark.parametrize("name", ["ONCELAKE_CACHE", "ONCELAKE_CRASH", "ONCELAKE_IVY_SETTINGS"])
def test_variables_of_other_parts_are_left_alone(file: Path, name: str) -> None:
    assert examine(file, {name: "x", "PATH": "/bin"}).problems == ()


def test_two_variables_that_agree_are_no_problem(file: Path) -> None:
    assert examine(file, {"KAFKA_TOPIC": "a", "ONCELAKE_SOURCE_TOPIC": "a"}).problems == ()


@pytest.mark.parametrize(
    ("text", "filled", "shown"),
    [
        ("plain", "plain", "plain"),
        ("${A}", "one", "***"),
        ("x-${A}-${B}", "x-one-two", "x-***-***"),
        ("$${A}", "${A}", "${A}"),
        ("$A {A}", "$A {A}", "$A {A}"),
        ("${RECURSIVE}", "${A}", "***"),
    ],
)
def test_references_are_filled_once(text: str, filled: str, shown: str) -> None:
    result = fill(text, {"A": "one", "B": "two", "RECURSIVE": "${A}"})
    assert (result.text, result.shown, result.problems) == (filled, shown, ())


def test_a_number_may_come_from_a_reference(file: Path) -> None:
    file.write_text(SPEC + "limits: {max_offsets: '${MOST}'}\n")
    assert read_spec(file, {"MOST": "500"}).spec.limits.max_offsets == 500


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("${MISSING}", "7: log_level: the environment variable MISSING is not set"),
        ("${file:/x}", "7: log_level: ${…} does not hold a variable's name"),
        ("${}", "7: log_level: ${…} does not hold a variable's name"),
    ],
)
def test_a_reference_that_cannot_be_filled_is_named(
    file: Path, reference: str, expected: str
) -> None:
    file.write_text(f"{SPEC}log_level: '{reference}'\n")
    [problem] = examine(file, {}).problems
    assert expected in str(problem)
