"""A run of a pipeline that halts at a given point of the protocol, and waits to be killed.

    python -m tests.faults.driver pipeline.yaml --halt after:publish --occurrence 2

It is `oncelake run --json` (with --replay `oncelake replay`, with --decide a decision of `oncelake
recover`) but for the halt: the point is announced as an event, and nothing after it happens, unless
the signal SIGUSR1 tells it to go on.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from pathlib import Path

from oncelake import pipeline
from oncelake.commit import Step
from oncelake.errors import exit_code_of
from oncelake.ops.decide import decide
from oncelake.ops.replay import Replay
from oncelake.session import open_session
from oncelake.spec import read_spec


class Halt:
    def __init__(self, point: str, occurrence: int) -> None:
        self._point = point
        self._left = occurrence
        self._told_to_go_on = threading.Event()
        signal.signal(signal.SIGUSR1, lambda *_: self._told_to_go_on.set())

    def __call__(self, when: str, step: Step) -> None:
        if f"{when}:{step.value}" != self._point:
            return
        self._left -= 1
        if self._left == 0:
            print(json.dumps({"event": "halted", "at": self._point}), flush=True)
            self._told_to_go_on.wait()


def main() -> int:
    words = argparse.ArgumentParser()
    words.add_argument("spec", type=Path)
    words.add_argument("--halt", required=True)
    words.add_argument("--occurrence", type=int, default=1)
    words.add_argument("--json", action="store_true")
    words.add_argument("--once", action="store_true")
    words.add_argument("--replay", action="store_true")
    words.add_argument("--decide", default="")
    args = words.parse_args()
    spec = read_spec(args.spec, os.environ).spec
    halt = Halt(args.halt, args.occurrence)
    if args.replay:
        Replay(open_session(spec), spec).run(on_step=halt)
        return 0
    if args.decide:
        decide(open_session(spec), spec, args.decide, dry_run=False, on_step=halt)
        return 0
    running = pipeline.Running(
        spec.checkpoint,
        spec.trigger_seconds,
        once=args.once,
        tell=lambda event: print(event.to_json(), flush=True),
        on_step=halt,
    )
    pipeline.start(open_session(spec), spec, running).wait()
    return 0


if __name__ == "__main__":
    sys.exit(exit_code_of(main))
