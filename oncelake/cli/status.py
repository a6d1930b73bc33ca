"""oncelake status: where the pipeline stands, beside what the topic holds."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from oncelake.cli import Verbs, given

if TYPE_CHECKING:
    from oncelake.ops.status import Status


def add(verbs: Verbs) -> None:
    verb = verbs.add_parser("status", help="where the pipeline stands, and how far behind")
    given.add(verb)
    verb.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    from oncelake.ops.status import status
    from oncelake.source import describe_topic

    spec = given.spec_of(args)
    live = describe_topic(spec.source).offsets
    with given.session(spec) as spark:
        found = status(spark, spec, live)
    if args.json:
        print(json.dumps(found.to_json()))
    else:
        show(found)
    return 0


def show(status: Status) -> None:
    console = Console()
    if status.progress is None:
        console.print(f"{status.table}: no run has claimed it yet")
        return
    totals = status.progress.totals
    table = Table(title=f"{status.table}, generation {status.progress.generation}")
    for column in ("topic", "partition", "first", "next", "topic holds", "lag"):
        table.add_column(column, justify="right")
    for p in status.partitions:
        holds = f"{p.topic.start}–{p.topic.end}"
        cells = (p.partition.partition, p.done.start, p.done.end, holds, f"{p.lag:,}")
        table.add_row(p.partition.topic, *(str(cell) for cell in cells))
    console.print(table)
    console.print(f"{totals.in_words()}; batches {status.progress.batches:,}, lag {status.lag:,}")
    if of_the_table := totals.of_the_table():
        told = ", ".join(f"{name} {count:,}" for name, count in of_the_table.items())
        console.print(
            f"latest versions: {totals.inserted - totals.removed:,} rows ({told}); duplicate rate "
            f"{100 * totals.duplicate_rate:.2f} %"
        )
    if status.watermark is not None:
        console.print(f"watermark {status.watermark}: what is earlier is late")
