"""oncelake run: the pipeline of a spec, until all is written or it is told to stop."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

from oncelake import events
from oncelake.cli import Verbs
from oncelake.errors import OncelakeError
from oncelake.events import Event


def add(verbs: Verbs) -> None:
    verb = verbs.add_parser("run", help="write the topic into the table, exactly once")
    verb.add_argument("spec", type=Path, help="the pipeline's spec, e.g. pipeline.yaml")
    verb.add_argument("--once", action="store_true", help="write what is there now, then stop")
    verb.add_argument("--json", action="store_true", help="one JSON event a line")
    verb.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    tell = _tell_json if args.json else _tell_text
    try:
        return _run(args, tell)
    except OncelakeError as error:
        if args.json:
            tell(events.failed(type(error).__name__, str(error), error.exit_code))
        raise


def _run(args: argparse.Namespace, tell: events.Tell) -> int:
    # Spark takes a second to import: a wrong word should not wait for it.
    from oncelake import pipeline
    from oncelake.session import open_session
    from oncelake.source import describe_topic
    from oncelake.spec import read_spec

    reading = read_spec(args.spec, os.environ)
    for warning in reading.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    spec = reading.spec
    # Before Spark takes its seconds to start: a wrong address or topic is said at once.
    describe_topic(spec.source)
    spark = open_session(spec)
    stop = _stop_on_signals()
    running = pipeline.Running(spec.checkpoint, spec.trigger_seconds, args.once, tell)
    try:
        query = pipeline.start(spark, spec, running)
        ended = query.wait(stop)
        if not ended:
            # Spark would log the batch that is not begun any more as an error, stack and all.
            spark.sparkContext.setLogLevel("OFF")
            query.end_gracefully()
        tell(events.stopped("all that was there is written" if ended else "asked to; batch ended"))
    finally:
        spark.stop()
    return 0


def _stop_on_signals() -> threading.Event:
    """The first Ctrl+C (or SIGTERM) ends the running batch; the second ends the process."""
    stop = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        if stop.is_set():
            os._exit(130)
        stop.set()
        print("stopping after this batch; again to stop at once", file=sys.stderr, flush=True)

    signal.signal(signal.SIGINT, on_signal)
    signal.signal(signal.SIGTERM, on_signal)
    return stop


def _tell_json(event: Event) -> None:
    print(event.to_json(), flush=True)


def _tell_text(event: Event) -> None:
    if event.name not in {"planned", "staged", "error"}:
        print(event.text, flush=True)
