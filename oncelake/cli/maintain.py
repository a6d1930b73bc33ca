"""oncelake maintain: keep the tables small and quick."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from oncelake.cli import Verbs, given
from oncelake.errors import TerminalError

if TYPE_CHECKING:
    from oncelake.maintain import Upkeep


def add(verbs: Verbs) -> None:
    verb = verbs.add_parser(
        "maintain",
        help="join small files, forget old snapshots, remove files that nobody refers to",
        description="For the pipeline's table and its side tables, also while it runs; and what "
        "killed runs have left in Spark's checkpoint, or set aside. How old is old stands in the "
        "spec's maintenance. What a commit may still refer to is left alone.",
    )
    given.add(verb, "one JSON document a table, and one of the checkpoint")
    verb.add_argument("--dry-run", action="store_true", help="only name what would be removed")
    verb.set_defaults(handler=run)


def _lines(done: Upkeep, dry_run: bool) -> str:
    """What was done, or of a dry run what would be removed; and the files by name."""
    told = done.in_words()
    if dry_run and not done.failed:
        told = f"{done.table}: {len(done.orphans)} orphans would be removed"
    return "\n  ".join((told, *done.orphans))


def run(args: argparse.Namespace) -> int:
    from oncelake.ops.maintain import maintain
    from oncelake.ops.prune import prune

    spec = given.spec_of(args)
    failed = False
    with given.session(spec) as spark:
        for done in maintain(spark, spec, args.dry_run):
            failed |= bool(done.failed)
            told = json.dumps(done.to_json()) if args.json else _lines(done, args.dry_run)
            print(told, flush=True)
        pruned = prune(spark, spec, args.dry_run)
        print(json.dumps(pruned.to_json()) if args.json else pruned.in_words(args.dry_run))
    return TerminalError.exit_code if failed else 0
