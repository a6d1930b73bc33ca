"""oncelake conf: what spark-submit must be given before Spark starts."""

from __future__ import annotations

import argparse
import sys

from oncelake.cli import Verbs


def add(verbs: Verbs) -> None:
    verb = verbs.add_parser(
        "conf",
        help="settings for spark-submit --properties-file",
        description="oncelake conf > oncelake.conf; "
        "spark-submit --properties-file oncelake.conf jobs/spark/stream_write_raw.py",
    )
    verb.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    del args
    from oncelake.local import jars
    from oncelake.session import submit_settings

    jars.ensure(lambda line: print(line, file=sys.stderr))
    for key, value in submit_settings().items():
        print(f"{key} {value}")
    return 0
