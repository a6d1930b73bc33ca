"""oncelake recover: may Spark's checkpoint be relied on? One that may not is set aside."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from oncelake.cli import Verbs

if TYPE_CHECKING:
    from oncelake.ops.recover import Recovery


def add(verbs: Verbs) -> None:
    verb = verbs.add_parser(
        "recover",
        help="set a checkpoint aside that cannot be used",
        description="Compares Spark's checkpoint with the table, as a run does at its start. "
        "One that is damaged, of another topic or ahead of the table is renamed, never deleted; "
        "the next run begins where the table ends.",
    )
    verb.add_argument("spec", type=Path, help="the pipeline's spec, e.g. pipeline.yaml")
    verb.add_argument("--dry-run", action="store_true", help="only say what would be done")
    verb.add_argument("--json", action="store_true", help="one JSON document")
    verb.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    from oncelake.ops.recover import recover
    from oncelake.session import open_session
    from oncelake.spec import read_spec

    spec = read_spec(args.spec, os.environ).spec
    spark = open_session(spec)
    try:
        found = recover(spark, spec, args.dry_run)
    finally:
        spark.stop()
    if args.json:
        print(json.dumps(found.to_json()))
    else:
        _show(found, Console())
    return 0


def _show(found: Recovery, console: Console) -> None:
    if found.progress is None:
        console.print(f"{found.table}: no run has claimed it yet, so there is nothing to recover")
        return
    table = Table(title=f"{found.table} and its checkpoint")
    for column in ("topic", "partition", "the table ends at", "Spark would go on at"):
        table.add_column(column, justify="right")
    for tp, ends, begins in found.partitions:
        table.add_row(
            tp.topic, str(tp.partition), str(ends), "–" if begins is None else str(begins)
        )
    console.print(table)
    console.print(escape(_sentence(found)), soft_wrap=True)


def _sentence(found: Recovery) -> str:
    if found.fault is None:
        there = "can be used" if found.resumes else "holds nothing yet"
        return f"the checkpoint {found.checkpoint} {there}: nothing to do"
    what = f"the checkpoint {found.checkpoint} cannot be used: {found.fault}. "
    if found.aside is None:
        return f"{what}It would be set aside; the next run would begin where the table ends"
    return f"{what}It is set aside as {found.aside}; the next run begins where the table ends"
