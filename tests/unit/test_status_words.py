"""What status says of the rows of a table, in words and to a program."""

from __future__ import annotations

import pytest

from oncelake.cli.status import show
from oncelake.model import Counts, Origin, Progress
from oncelake.ops.status import Status


def _status(totals: Counts) -> Status:
    return Status("demo.news.t", Progress("p", Origin("c"), positions={}, totals=totals), ())


def _shown(totals: Counts, capsys: pytest.CaptureFixture[str]) -> str:
    show(_status(totals))
    return " ".join(capsys.readouterr().out.split())


def test_rows_that_tombstones_removed_are_not_mistaken_for_tombstones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    totals = Counts(read=2000, written=1990, deleted=10, inserted=1940, updated=50, removed=3)
    said = _shown(totals, capsys)
    assert "= written 1,990 + quarantined 0 + deleted 10" in said
    assert "latest versions: 1,937 rows (inserted 1,940, updated 50, removed 3)" in said


def test_a_program_is_told_those_of_the_table_that_are_none_too() -> None:
    upserted = _status(Counts(read=2, written=2, inserted=2)).to_json()["totals"]
    assert (upserted["inserted"], upserted["updated"], upserted["removed"]) == (2, 0, 0)


def test_an_append_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    totals = Counts(read=2, written=2)
    assert "latest versions" not in _shown(totals, capsys)
    assert "inserted" not in _status(totals).to_json()["totals"]
