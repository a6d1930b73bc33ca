"""`oncelake demo`: the whole thing on one machine, with kills, and PASS or FAIL at the end."""

from __future__ import annotations

import argparse
import json
import signal
from pathlib import Path
from types import FrameType

from rich.console import Console

from oncelake.cli import Verbs
from oncelake.errors import OncelakeError
from oncelake.meter import console

FOLDER = Path(".oncelake/demo")
LEAST = 1_000
# A closed terminal or a kill ends the demo as Ctrl+C does.
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def add(verbs: Verbs) -> None:
    parser = verbs.add_parser(
        "demo",
        help="kill a pipeline in bad moments, then prove that nothing is lost or doubled",
        description="Starts a Kafka broker, sends it articles, runs the pipeline, kills it with "
        "kill -9 in mid-batch and after a commit, deletes its checkpoint, and audits the table. "
        "Exit code 0 is PASS, 1 is FAIL.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--dir", type=Path, default=FOLDER, metavar="FOLDER",
                        help="replaced if a demo made it")  # fmt: skip
    parser.add_argument("--count", type=count, default=200_000, metavar="N", help="articles")
    parser.add_argument("--json", action="store_true", help="print one JSON document at the end")
    parser.set_defaults(handler=demo)


def demo(args: argparse.Namespace) -> int:
    for number in ENDINGS:
        signal.signal(number, _interrupted)
    out = console(args.json)
    try:
        return _play(args, out)
    except KeyboardInterrupt:
        out.print("stopped; everything the demo started is stopped too")
        return 130
    except OncelakeError as error:
        out.print(f"FAIL: {error}")
        if args.json:
            print(json.dumps({"verdict": "FAIL", "error": str(error)}))
        return 1


def _play(args: argparse.Namespace, out: Console) -> int:
    from oncelake.demo.folder import DemoFolder
    from oncelake.demo.report import show
    from oncelake.demo.story import Story

    folder = DemoFolder(args.dir.absolute())
    outcome = Story(folder, args.count, out).play()
    show(outcome, folder, out)
    if args.json:
        print(json.dumps({**outcome.to_json(), "folder": str(folder.path)}))
    return 0 if outcome.passed else 1


def _interrupted(number: int, frame: FrameType | None) -> None:
    """End with all that was started; an impatient second Ctrl+C must not leave a broker behind."""
    for ending in ENDINGS:
        signal.signal(ending, signal.SIG_IGN)
    raise KeyboardInterrupt


def count(text: str) -> int:
    number = int(text)
    if number < LEAST:
        raise argparse.ArgumentTypeError(f"{number} is less than {LEAST}")
    return number
