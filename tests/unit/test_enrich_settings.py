"""What the environment says to the enriching job, and what it is told where that is wrong."""

from __future__ import annotations

import pytest

from oncelake.enrich.function import load
from oncelake.enrich.job import Settings, main
from oncelake.errors import SpecError


def test_the_defaults_are_the_documented_names() -> None:
    settings = Settings.of({})
    assert (settings.raw, settings.enriched) == (
        "demo.news.articles_raw",
        "demo.news.articles_enriched",
    )
    assert callable(load(settings.enrich).function)
    assert settings.spec is None


@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({"RAW_TABLE": "articles"}, "RAW_TABLE must name a table as catalog.namespace.table"),
        ({"ENRICHED_TABLE": "a.b"}, "ENRICHED_TABLE must name a table"),
        ({"RAW_TABLE": "a.b.c", "ENRICHED_TABLE": "a.b.c"}, "are both a.b.c"),
    ],
)
def test_tables_that_cannot_be(environ: dict[str, str], says: str) -> None:
    with pytest.raises(SpecError, match=says):
        Settings.of(environ)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("json", "write module:function"),
        ("json:", "write module:function"),
        ("no_such_module:enrich", "No module named 'no_such_module'. Put the folder"),
        ("json:enrich", "module json has no function enrich"),
        ("json:__name__", "has no function __name__"),
    ],
)
def test_a_function_that_is_not_there_is_said_before_spark_starts(
    name: str, says: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ENRICH", name)
    assert main([]) == SpecError.exit_code
    assert says in capsys.readouterr().err
