"""`init`, `check` and `show` as a person types them."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

import pytest
import yaml

from oncelake.cli import spec as verbs_of_spec
from oncelake.cli.given import name_spec
from oncelake.cli.sql import statements
from oncelake.errors import KafkaUnreachable, OncelakeError, SpecError
from oncelake.spec import PipelineSpec, read_spec
from oncelake.spec.environment import LONG_NAMES, SHORT_NAMES


@pytest.fixture(autouse=True)
def _own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (*LONG_NAMES, *SHORT_NAMES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def oncelake(*words: str) -> int:
    parser = argparse.ArgumentParser()
    verbs_of_spec.add(parser.add_subparsers(required=True))
    args = parser.parse_args(words)
    code: int = args.handler(args)
    return code


def test_init_writes_a_spec_that_passes_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert oncelake("init") == 0
    assert "next: oncelake check pipeline.yaml" in capsys.readouterr().out
    assert oncelake("check", "pipeline.yaml") == 0
    out = capsys.readouterr().out
    assert all(line.startswith("ok ") for line in out.splitlines())
    assert "demo.news.articles_raw, partitioned by days(published_at)" in out


def test_init_tells_a_program_what_it_wrote(capsys: pytest.CaptureFixture[str]) -> None:
    assert oncelake("init", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"wrote": ["pipeline.yaml", "article.avsc"]}


def test_the_examples_in_the_comments_can_be_used(tmp_path: Path) -> None:
    oncelake("init")
    file = tmp_path / "pipeline.yaml"
    file.write_text(re.sub(r"(?m)^  # (?!A column)", "  ", file.read_text()))
    spec = read_spec(file, {"KAFKA_PASSWORD": "p", "CATALOG_PASSWORD": "c"}).spec
    jaas = spec.source.options["sasl.jaas.config"]
    assert jaas.endswith('required username="reader" password="p";')
    assert spec.catalog.properties["jdbc.password"] == "c"
    assert spec.limits.max_offsets == 10000
    assert spec.spark.settings["spark.driver.memory"] == "4g"


def test_init_writes_the_articles_example(tmp_path: Path) -> None:
    oncelake("init")
    spec = read_spec(tmp_path / "pipeline.yaml", {}).spec
    assert spec.source.bootstrap == "localhost:9092"
    assert spec.source.topic == "articles.raw.v1"
    assert spec.catalog.uri == f"jdbc:sqlite:{tmp_path}/.oncelake/catalog.db"
    assert spec.checkpoint == f"{tmp_path}/.oncelake/checkpoints/articles"
    fields = json.loads((tmp_path / "article.avsc").read_text())["fields"]
    assert [field["name"] for field in fields] == [
        "id",
        "title",
        "body",
        "source",
        "url",
        "published_at",
    ]


def test_a_spec_of_another_name_shares_the_schema(tmp_path: Path) -> None:
    oncelake("init")
    assert oncelake("init", "second.yaml") == 0
    assert "oncelake check second.yaml" in (tmp_path / "second.yaml").read_text()


@pytest.mark.parametrize("taken", ["pipeline.yaml", "article.avsc"])
def test_init_overwrites_nothing_unless_forced(tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).write_text("mine")
    with pytest.raises(SpecError, match=f"{taken} is there already"):
        oncelake("init")
    assert [path.name for path in tmp_path.iterdir()] == [taken]
    assert (tmp_path / taken).read_text() == "mine"
    assert oncelake("init", "--force") == 0
    assert (tmp_path / taken).read_text() != "mine"


def test_init_into_a_missing_folder_says_so() -> None:
    with pytest.raises(SpecError, match=r"none/pipeline.yaml cannot be written.* mkdir -p none$"):
        oncelake("init", "none/pipeline.yaml")


def test_check_raises_every_problem(tmp_path: Path) -> None:
    oncelake("init")
    wrong = (tmp_path / "pipeline.yaml").read_text().replace("trigger:", "tirgger:")
    (tmp_path / "pipeline.yaml").write_text(wrong.replace("mode: append", "mode: upsert"))
    with pytest.raises(SpecError) as caught:
        oncelake("check", "pipeline.yaml")
    assert caught.value.exit_code == 2
    assert "unknown key 'tirgger' in the spec; did you mean 'trigger'?" in str(caught.value)
    assert "mode upsert needs key" in str(caught.value)


FUNCTIONS = """\
def tidy(rows):
    return rows

number = 5
"""


def _with_transform(folder: Path, text: str) -> int:
    """The line of the spec that names it."""
    oncelake("init", "--force")
    (folder / "cleaning.py").write_text(FUNCTIONS)
    (folder / "broken_cleaning.py").write_text("def tidy(rows:\n")
    (folder / "wants_spark.py").write_text("raise AssertionError('no session yet')\n")
    spec = folder / "pipeline.yaml"
    lines = [*spec.read_text().splitlines(), f"transform: {text}"]
    spec.write_text("\n".join(lines))
    return len(lines)


@pytest.mark.parametrize(
    ("transform", "said"),
    [
        ("no_such_cleaning:tidy", "cannot be imported: No module named 'no_such_cleaning'. Put"),
        ("broken_cleaning:tidy", "cannot be imported: '(' was never closed"),
        ("cleaning:tidi", "module cleaning has no function tidi"),
        ("cleaning:number", "module cleaning has no function number"),
    ],
)
def test_check_refuses_a_function_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transform: str, said: str
) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.delitem(sys.modules, "cleaning", raising=False)
    line = _with_transform(tmp_path, transform)
    with pytest.raises(SpecError) as caught:
        oncelake("check", "pipeline.yaml")
    assert str(caught.value).startswith(f"pipeline.yaml:{line}: transform {transform}")
    assert said in str(caught.value)


@pytest.mark.parametrize("transform", ["cleaning:tidy", "wants_spark:f", "SELECT * FROM rows"])
def test_check_takes_one_that_only_spark_can_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transform: str
) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    monkeypatch.delitem(sys.modules, "cleaning", raising=False)
    _with_transform(tmp_path, transform)
    assert oncelake("check", "pipeline.yaml") == 0


def test_check_gives_problems_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "pipeline.yaml").write_text("- a\n")
    assert oncelake("check", "pipeline.yaml", "--json") == 2
    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is False
    assert [problem["text"] for problem in report["problems"]] == [
        "must hold keys and values at the top"
    ]


def test_check_gives_a_right_spec_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    oncelake("init")
    capsys.readouterr()
    assert oncelake("check", "pipeline.yaml", "--json") == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["ok"], report["problems"], report["live"]) == (True, [], {})


def test_warnings_go_to_stderr(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    oncelake("init")
    file = tmp_path / "pipeline.yaml"
    text = file.read_text().replace("  options: ", "  options: {failOnDataLoss: true}")
    file.write_text(text)
    capsys.readouterr()
    assert oncelake("show", "pipeline.yaml", "--json") == 0
    printed = capsys.readouterr()
    assert printed.err.startswith("warning: pipeline.yaml:")
    assert json.loads(printed.out)["source"]["options"] == {}


def test_show_echoes_yaml_and_json_alike(capsys: pytest.CaptureFixture[str]) -> None:
    oncelake("init")
    capsys.readouterr()
    oncelake("show", "pipeline.yaml")
    as_yaml = yaml.safe_load(capsys.readouterr().out)
    oncelake("show", "pipeline.yaml", "--json")
    assert json.loads(capsys.readouterr().out) == as_yaml
    assert as_yaml["table"]["quarantine"] == "demo.news.articles_raw_quarantine"


def test_show_hears_the_environment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    oncelake("init")
    capsys.readouterr()
    monkeypatch.setenv("KAFKA_TOPIC", "from.outside")
    oncelake("show", "pipeline.yaml", "--json")
    assert json.loads(capsys.readouterr().out)["source"]["topic"] == "from.outside"


def test_a_live_check_that_fails_does_not_hide_the_next(tmp_path: Path) -> None:
    def unreachable(spec: PipelineSpec) -> str:
        raise KafkaUnreachable(f"no broker at {spec.source.bootstrap}")

    oncelake("init")
    spec = read_spec(tmp_path / "pipeline.yaml", {}).spec
    answers = verbs_of_spec.ask(spec, {"kafka": unreachable, "catalog": lambda spec: "answers"})
    assert isinstance(answers["kafka"], OncelakeError)
    assert answers["catalog"] == "answers"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["SELECT 1; SELECT 2;"], ["SELECT 1", "SELECT 2"]),
        (["SELECT", "1;", "", "SELECT 2"], ["SELECT\n1", "SELECT 2"]),
        (["SELECT ';' AS a; SELECT `b;c`;;"], ["SELECT ';' AS a", "SELECT `b;c`"]),
        (["", ";"], []),
    ],
)
def test_a_statement_ends_at_its_semicolon_and_not_within_quotes(
    lines: list[str], found: list[str]
) -> None:
    assert list(statements(lines)) == found


def test_what_is_to_be_typed_next_names_the_spec() -> None:
    error = OncelakeError("type: oncelake recover PIPELINE.yaml --rebase")
    name_spec(error, argparse.Namespace(spec=Path("my jobs/a.yaml")))
    assert str(error) == "type: oncelake recover 'my jobs/a.yaml' --rebase"
