"""What `oncelake audit` prints can be read by people, without colour, and by programs."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from oncelake.cli.audit import show
from oncelake.errors import EXIT_CODES
from oncelake.ops.audit.judge import judge
from oncelake.ops.audit.report import Report, Verdict
from tests.unit.audit_history import P0, P1, scene


def printed(report: Report) -> list[str]:
    out = io.StringIO()
    show(report, Console(file=out, width=120, highlight=False))
    return out.getvalue().splitlines()


def cells(report: Report, word: str) -> list[str]:
    line = next(line for line in printed(report) if word in line)
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_the_last_line_is_the_verdict() -> None:
    assert printed(judge(scene().evidence()))[-1] == (
        "audit: clean — 65 read = 63 written + 2 quarantined; 2 partitions, gaps 0, overlaps 0"
    )


def test_every_partition_has_a_line_with_its_name_in_full() -> None:
    made = scene(fates=["quarantined"])
    assert cells(judge(made.evidence()), str(P0)) == [
        "articles.raw.v1[0]", "0–40", "0–40", "0", "38", "2", "0", "0",
    ]  # fmt: skip


def test_every_side_table_has_a_column_and_its_number_of_rows_below() -> None:
    made = scene(fates=["quarantined", "late"])
    made.batch({0: 5}, late=[(P0, 41), (P0, 42), (P0, 43)])
    report = judge(made.evidence())
    assert cells(report, "partition")[4:7] == ["rows", "quarantined", "late"]
    assert cells(report, str(P0))[4:7] == ["40", "2", "3"]
    told = "demo.news.t, pipeline articles: 65 rows, 2 quarantined, 3 late, 0 pending, 0 of others"
    assert any(line.startswith(told) for line in printed(report))


def test_there_is_no_colour_where_there_is_no_terminal() -> None:
    assert "\x1b" not in "".join(printed(judge(scene().evidence())))


def test_a_finding_is_one_line_however_long() -> None:
    made = scene()
    made.main.lose((P0, 5))
    lines = [line for line in printed(judge(made.evidence())) if line.startswith("violated: ")]
    assert len(lines) == 1
    assert lines[0].endswith("Deletes by others explain none")


def test_the_json_says_what_the_lines_say() -> None:
    made = scene()
    made.main.lose((P0, 5))
    data = json.loads(json.dumps(judge(made.evidence()).to_json()))
    assert (data["verdict"], data["totals"]["read"], data["rows"]) == ("violated", 65, 62)
    assert data["partitions"][0]["covered"] == [0, 40]
    assert (data["findings"][0]["kind"], data["findings"][0]["severity"]) == (
        "rows-missing",
        "violated",
    )


def test_the_json_has_every_fate_whichever_tables_there_are() -> None:
    made = scene(fates=["quarantined", "late"])
    made.batch({1: 5}, late=[(P1, 25)])
    data = judge(made.evidence()).to_json()
    assert (data["quarantined"], data["late"], data["deleted"]) == (2, 1, 0)
    second = data["partitions"][1]
    assert (second["quarantined"], second["late"], second["deleted"]) == (0, 1, 0)


@pytest.mark.parametrize(("verdict", "code"), [("clean", 0), ("explained", 3), ("violated", 4)])
def test_each_verdict_has_its_documented_exit_code(verdict: str, code: int) -> None:
    assert Verdict(verdict).exit_code == code
    assert f"audit: {verdict}" in EXIT_CODES[code]
