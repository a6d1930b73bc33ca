"""oncelake replay: read what is in quarantine once more, after a fix."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING

from oncelake.cli import Verbs, given

if TYPE_CHECKING:
    from oncelake.ops.replay import Replayed


def add(verbs: Verbs) -> None:
    verb = verbs.add_parser(
        "replay",
        help="read what is in quarantine once more, after a fix, and take what is good now",
        description="Decodes, transforms and judges every row in quarantine that was not taken "
        "yet, by the spec as it is now. What passes goes into the table, exactly once; each row "
        "in quarantine is marked with what became of it (columns outcome and replay). Rows are "
        "not judged by the watermark. It fences every run that is still going.",
    )
    given.add(verb)
    verb.add_argument("--dry-run", action="store_true", help="only say what would become of them")
    verb.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    from oncelake.ops.replay import Replay

    spec = given.spec_of(args)
    with given.session(spec) as spark:
        replay = Replay(spark, spec)
        told = replay.dry() if args.dry_run else replay.run(_progress)
    print(json.dumps(told.to_json()) if args.json else in_words(told))
    return 0


def _progress(told: Replayed) -> None:
    print(f"{told.rows:,} rows read, {told.taken:,} of them taken", file=sys.stderr, flush=True)


def in_words(told: Replayed) -> str:
    would = "" if told.done else "would be "
    lines = [
        f"{told.table}: of {told.rows:,} rows in quarantine {told.taken:,} {would}taken, "
        f"{told.filtered:,} left out by the transform, {told.failed:,} fail again",
        *(f"  {rows:,}: {reason}" for reason, rows in sorted(told.reasons.items())),
    ]
    if told.done and told.counts.replayed:
        lines.append(f"replayed {told.counts.replayed:,} = {told.counts.fates_in_words()}")
    return "\n".join(lines)
