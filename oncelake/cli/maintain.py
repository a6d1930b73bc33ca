"""oncelake maintain: keep the tables small and quick."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from oncelake.cli import Verbs
from oncelake.errors import TerminalError

if TYPE_CHECKING:
    from oncelake.maintain import Upkeep


def add(verbs: Verbs) -> None:
    verb = verbs.add_parser(
        "maintain",
        help="join small files, forget old snapshots, remove files that nobody refers to",
        description="For the pipeline's table and its side tables, also while it runs. How old is "
        "old stands in the spec's maintenance. What a commit may still refer to is left alone.",
    )
    verb.add_argument("spec", type=Path, help="the pipeline's spec, e.g. pipeline.yaml")
    verb.add_argument("--dry-run", action="store_true", help="only name the files to be removed")
    verb.add_argument("--json", action="store_true", help="one JSON document a table")
    verb.set_defaults(handler=run)


def _lines(done: Upkeep) -> str:
    """What was done, and the files by name."""
    return "\n  ".join((done.in_words(), *done.orphans))


def run(args: argparse.Namespace) -> int:
    from oncelake.ops.maintain import maintain
    from oncelake.session import open_session
    from oncelake.spec import read_spec

    spec = read_spec(args.spec, os.environ).spec
    spark = open_session(spec)
    failed = False
    try:
        for done in maintain(spark, spec, args.dry_run):
            failed |= bool(done.failed)
            print(json.dumps(done.to_json()) if args.json else _lines(done), flush=True)
    finally:
        spark.stop()
    return TerminalError.exit_code if failed else 0
