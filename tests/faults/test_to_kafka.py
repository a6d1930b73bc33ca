"""kill -9 of a stream into Kafka, at every step and at random: readers see each row once."""

from __future__ import annotations

import random
import shutil
import threading
import time
from pathlib import Path

import pytest

from oncelake.errors import Fenced
from oncelake.kafka_sink.send import SlotStep
from oncelake.kafka_sink.sink import Step
from oncelake.local.kafka import LocalKafka
from tests.outbox import Outbox
from tests.site import kill, wait_for

HALT_SECONDS = 120.0
CRASH_POINTS = (
    ("before", Step.FENCE),
    ("after", Step.FENCE),
    ("before", Step.PLAN),
    ("after", Step.PLAN),
    ("before", Step.SEND),
    ("before", SlotStep.FENCE),
    ("after", SlotStep.FENCE),
    ("after", SlotStep.READ),
    ("before", SlotStep.COMMIT),
    ("after", SlotStep.COMMIT),
    ("after", Step.SEND),
)
"""Those of a slot come while the driver is between the two of Step.SEND."""
ROWS, KILLS = 300, 20


@pytest.fixture
def box(kafka: LocalKafka, tmp_path: Path) -> Outbox:
    return Outbox.make(kafka, tmp_path)


def _kill_at(box: Outbox, point: str, *words: str) -> None:
    with box.run("--halt", point, *words) as run:
        deadline, said = time.monotonic() + HALT_SECONDS, box.folder / point
        while not said.exists():
            if not run.alive() or time.monotonic() > deadline:
                raise run.failed(f"never came to {point}")
            threading.Event().wait(0.05)
        kill(run)
    said.unlink()


@pytest.mark.faults
@pytest.mark.minutes
@pytest.mark.parametrize("how", [(), ("--moved",)], ids=["as read", "moved"])
def test_a_life_of_kills_at_every_step_sends_each_row_once(
    how: tuple[str, ...], box: Outbox
) -> None:
    """Each run completes what the kill before it left, and is killed at the next point. After one
    of them the checkpoint is lost besides."""
    points = CRASH_POINTS[8:9] if how else CRASH_POINTS
    for number, (when, step) in enumerate(points):
        box.produce(range(number * ROWS, (number + 1) * ROWS))
        _kill_at(box, f"{when}:{step.value}", *how)
        values = [int(message.value) for message in box.seen()]
        assert len(values) == len(set(values)), f"twice after a kill {when}:{step.value}"
        if (when, step) == ("before", SlotStep.COMMIT) and not how:
            assert len(values) < (number + 1) * ROWS, "of the slot that was killed nothing is seen"
            # The plan tells what was begun.
            shutil.rmtree(box.checkpoint)
    box.run_to_the_end(*how)
    box.assert_once(range(len(points) * ROWS))


@pytest.mark.faults
def test_of_two_runs_the_older_is_refused_by_kafka(box: Outbox) -> None:
    box.produce(range(ROWS))
    with box.run() as older:
        wait_for(older, "sent")
        with box.run() as newer:
            wait_for(newer, "took_over")
            box.produce(range(ROWS, 2 * ROWS))
            assert older.ended() == Fenced.exit_code
            assert "Kafka says" in (box.folder / "run.log").read_text()
            newer.kill()
    box.run_to_the_end()
    box.assert_once(range(2 * ROWS))


@pytest.mark.chaos
def test_kills_at_random_moments_send_each_row_once(box: Outbox) -> None:
    moments = random.Random(20261117)
    for number in range(KILLS):
        box.produce(range(number * ROWS, (number + 1) * ROWS))
        with box.run("--most", "100") as run:
            for _ in zip(range(moments.randint(1, 3)), run.events(), strict=False):
                pass
            # The moment is meant to be arbitrary: nothing is waited for.
            threading.Event().wait(moments.uniform(0.0, 1.0))
            kill(run)
        if moments.random() < 0.2:
            shutil.rmtree(box.checkpoint, ignore_errors=True)
    box.run_to_the_end()
    box.assert_once(range(KILLS * ROWS))
