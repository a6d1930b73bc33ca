"""oncelake status: where the pipeline stands, beside what the topic holds."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from oncelake.cli import Verbs

if TYPE_CHECKING:
    from oncelake.ops.status import Status


def add(verbs: Verbs) -> None:
    verb = verbs.add_parser("status", help="where the pipeline stands, and how far behind")
    verb.add_argument("spec", type=Path, help="the pipeline's spec, e.g. pipeline.yaml")
    verb.add_argument("--json", action="store_true", help="one JSON document")
    verb.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    from oncelake.ops.status import status
    from oncelake.session import open_session
    from oncelake.source import describe_topic
    from oncelake.spec import read_spec

    spec = read_spec(args.spec, os.environ).spec
    live = describe_topic(spec.source).offsets
    spark = open_session(spec)
    try:
        found = status(spark, spec, live)
    finally:
        spark.stop()
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
    console.print(
        f"{totals.in_words()}, in {status.progress.batches:,} batches; lag {status.lag:,}"
    )
    if totals.inserted:
        console.print(
            f"latest versions: {totals.inserted - totals.removed:,} rows; duplicate rate "
            f"{100 * totals.duplicate_rate:.2f} %"
        )
    if status.watermark is not None:
        console.print(f"watermark {status.watermark}: what is earlier is late")
