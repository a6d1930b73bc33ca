"""oncelake run: the pipeline of a spec, until all is written or it is told to stop."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from types import FrameType

from oncelake import events
from oncelake.cli import Verbs, given
from oncelake.errors import OncelakeError
from oncelake.events import Event


def add(verbs: Verbs) -> None:
    verb = verbs.add_parser("run", help="write the topic into the table, exactly once")
    given.add(verb, "one JSON event a line")
    verb.add_argument("--once", action="store_true", help="write what is there now, then stop")
    verb.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    tell = _tell_json if args.json else _tell_text
    try:
        return _run(args, tell)
    except OncelakeError as error:
        given.name_spec(error, args)
        if args.json:
            tell(events.failed(type(error).__name__, str(error), error.exit_code))
        raise


def _run(args: argparse.Namespace, tell: events.Tell) -> int:
    # Spark takes a second to import: a wrong word should not wait for it.
    from oncelake import pipeline
    from oncelake.checkpoint import prepare
    from oncelake.source import describe_topic

    spec = given.spec_of(args)
    # Before Spark takes its seconds to start: a wrong address, topic or folder is said at once.
    describe_topic(spec.source)
    prepare(spec.checkpoint)
    running = pipeline.Running(spec.checkpoint, spec.trigger_seconds, args.once, tell)
    given.say("starting Spark")
    with given.session(spec) as spark:
        stop = _stop_on_signals()
        query = pipeline.start(spark, spec, running)
        ended = query.wait(stop)
        if not ended:
            # Spark would log the batch that is not begun any more as an error, stack and all.
            spark.sparkContext.setLogLevel("OFF")
            query.end_gracefully()
        tell(events.stopped("all that was there is written" if ended else "asked to; batch ended"))
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
