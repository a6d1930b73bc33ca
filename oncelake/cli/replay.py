"""oncelake replay: read what is in quarantine once more, after a fix."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from oncelake.cli import Verbs

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
    verb.add_argument("spec", type=Path, help="the pipeline's spec, e.g. pipeline.yaml")
    verb.add_argument("--dry-run", action="store_true", help="only say what would become of them")
    verb.add_argument("--json", action="store_true", help="one JSON document")
    verb.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    from oncelake.ops.replay import Replay
    from oncelake.session import open_session
    from oncelake.spec import read_spec

    spec = read_spec(args.spec, os.environ).spec
    spark = open_session(spec)
    try:
        replay = Replay(spark, spec)
        told = replay.dry() if args.dry_run else replay.run(_progress)
    finally:
        spark.stop()
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
