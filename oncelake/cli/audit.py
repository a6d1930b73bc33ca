"""oncelake audit: is every record of the topic in the table exactly once?"""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from rich.box import ASCII2
from rich.console import Console
from rich.table import Table

from oncelake.cli import Verbs, given

if TYPE_CHECKING:
    from oncelake.model import Span
    from oncelake.ops.audit import PartitionReport, Report

PIPED_WIDTH = 120
"""How wide to print where there is no terminal to ask."""


def add(verbs: Verbs) -> None:
    verb = verbs.add_parser(
        "audit",
        help="check from the outside that the table holds each record exactly once",
        description="Compares the table's rows with its stamps, and both with the topic. "
        "Exit code 0: clean; 3: explained by acts of others; 4: violated.",
    )
    given.add(verb)
    verb.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    from oncelake.lake import answering
    from oncelake.ops.audit import Names, audit
    from oncelake.source import client_config

    spec = given.spec_of(args)
    given.say("starting Spark")
    with given.session(spec) as spark, answering(spec.table.name):
        names = Names(spec.table.name, spec.name, spec.sides, spec.key, spec.horizon is not None)
        report = audit(spark, names, client_config(spec.source), given.say)
    if args.json:
        print(json.dumps(report.to_json()))
    else:
        show(report, console())
    return report.verdict.exit_code


def console() -> Console:
    """The terminal at its own width; a pipe at one that cuts nothing off."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)


def show(report: Report, out: Console) -> None:
    """The partitions, the totals, what was found, and the verdict as the last line."""
    kept = "".join(f"{rows:,} {fate}, " for fate, rows in report.sides.items())
    out.print(_table(report))
    out.print(
        f"{report.table}, pipeline {report.pipeline}: {report.rows:,} rows, {kept}"
        f"{report.pending:,} pending, {report.foreign:,} of others; batches {report.batches:,}, "
        f"stamps kept {report.stamps:,}",
        markup=False,
        soft_wrap=True,
    )
    if not report.topic_compared:
        out.print("the topic was not compared", markup=False)
    for each in report.findings:
        line = f"{each.severity}: {each.kind} at {each.where}: {each.message}"
        out.print(line, markup=False, soft_wrap=True)
    out.print(report.headline, markup=False, soft_wrap=True)


def _table(report: Report) -> Table:
    table = Table(box=ASCII2)
    table.add_column("partition", overflow="fold")
    for name in ("covered", "topic", "lag", "rows", *report.sides, "gaps", "overlaps"):
        table.add_column(name, justify="right", overflow="fold")
    for each in report.partitions:
        table.add_row(*_cells(each))
    return table


def _cells(each: PartitionReport) -> tuple[str, ...]:
    """Brackets are rich's markup: a topic's name and its spans are escaped."""
    cells = (
        str(each.tp),
        _words(each.covered),
        _words(each.topic),
        "-" if each.lag is None else f"{each.lag:,}",
        f"{each.rows:,}",
        *(f"{rows:,}" for rows in each.sides.values()),
        str(len(each.gaps)),
        str(len(each.overlaps)),
    )
    return tuple(cell.replace("[", r"\[") for cell in cells)


def _words(span: Span | None) -> str:
    return "-" if span is None else f"{span.start}–{span.end}"
