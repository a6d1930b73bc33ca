"""A stream from one topic into another, as a process that can be halted anywhere, and killed.

    python -m tests.faults.sender pipeline.yaml --json --target out --halt before:commit

The spec names the source. What is told is a JSON event a line. With --halt it stops at that point,
of the driver or of a task, makes a file of that name, and waits to be killed; with --pause the
process of a task is stopped as a zombie is, until it is let go on (SIGCONT).
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from oncelake import events, outbound, pipeline
from oncelake.errors import exit_code_of
from oncelake.kafka_sink.send import SlotStep
from oncelake.kafka_sink.sink import Step
from oncelake.kafka_sink.target import Sending
from oncelake.session import open_session
from oncelake.spec import read_spec
from tests.outbox import with_coordinates


@dataclass(frozen=True)
class Halt:
    """Stops where it is told to, once: in the driver, or in one of the tasks that come there."""

    point: str
    folder: str
    pause: bool = False

    def __call__(self, when: str, step: Step | SlotStep) -> None:
        point = f"{when}:{step.value}"
        if step is SlotStep.YIELD:
            Path(self.folder, point).touch()
        if point != self.point:
            return
        try:
            with Path(self.folder, point).open("x") as said:
                said.write(str(os.getpid()))
        except FileExistsError:
            return
        if self.pause:
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            Event().wait()


def main() -> int:
    words = argparse.ArgumentParser()
    words.add_argument("spec", type=Path)
    words.add_argument("--json", action="store_true")
    words.add_argument("--target", required=True)
    words.add_argument("--halt", default="")
    words.add_argument("--pause", default="")
    words.add_argument("--mode", default="transactions")
    words.add_argument("--most", default="1000")
    words.add_argument("--once", action="store_true")
    args = words.parse_args()
    spec = read_spec(args.spec, {}).spec
    spark = open_session(spec)
    options = {
        "kafka.bootstrap.servers": spec.source.bootstrap,
        "subscribe": spec.source.topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": args.most,
    }
    rows = spark.readStream.format("kafka").options(**options).load()

    def tell(event: events.Event) -> None:
        print(event.to_json(), flush=True)

    halt = Halt(args.halt or args.pause, str(args.spec.parent), pause=bool(args.pause))
    running = pipeline.Running(spec.checkpoint, once=args.once, tell=tell)
    sending = Sending(args.target, spec.source.bootstrap, mode=args.mode)
    outbound.write(with_coordinates(rows), sending, running, outbound.Steps(halt, halt)).wait()
    tell(events.stopped("all that was there is sent"))
    return 0


if __name__ == "__main__":
    sys.exit(exit_code_of(main))
