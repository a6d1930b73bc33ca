"""kill -9 of a stream into Kafka, at every step and at random: readers see each row once."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oncelake.demo.run import PipelineRun
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
OFFSET_POINTS = (
    ("after", Step.FENCE),
    ("before", Step.PLAN),
    ("after", Step.PLAN),
    ("after", SlotStep.READ),
    ("before", SlotStep.COMMIT),
    ("after", SlotStep.COMMIT),
    ("after", Step.SEND),
)
ROWS, APART = 300, 10**9
"""So many keys that no two messages have the same."""


@pytest.fixture
def box(kafka: LocalKafka, tmp_path: Path) -> Outbox:
    return Outbox.make(kafka, tmp_path)


def await_file(run: PipelineRun, said: Path) -> None:
    """A file by which a task says where it is."""
    deadline = time.monotonic() + HALT_SECONDS
    while not said.exists():
        if not run.alive() or time.monotonic() > deadline:
            raise run.failed(f"never came to {said.name}")
        threading.Event().wait(0.05)


def _kill_at(box: Outbox, point: str, *words: str) -> None:
    said = box.folder / point
    with box.run("--halt", point, *words) as run:
        await_file(run, said)
        kill(run)
    said.unlink()


@pytest.mark.faults
@pytest.mark.minutes
def test_a_life_of_kills_at_every_step_sends_each_row_once(
    box: Outbox, spark: SparkSession
) -> None:
    """Each run completes what the kill before it left, and is killed at the next point. After one
    of them the checkpoint is lost besides."""
    for number, (when, step) in enumerate(CRASH_POINTS):
        box.produce(range(number * ROWS, (number + 1) * ROWS))
        _kill_at(box, f"{when}:{step.value}")
        values = [int(message.value) for message in box.seen()]
        assert len(values) == len(set(values)), f"twice after a kill {when}:{step.value}"
        if (when, step) == ("before", SlotStep.COMMIT):
            assert len(values) < (number + 1) * ROWS, "of the slot that was killed nothing is seen"
            # The plan tells what was begun.
            shutil.rmtree(box.checkpoint)
    box.run_here(spark)
    box.assert_once(range(len(CRASH_POINTS) * ROWS))


@pytest.mark.faults
@pytest.mark.minutes
def test_a_life_of_kills_without_transactions_sends_each_row_once(
    box: Outbox, spark: SparkSession
) -> None:
    """By offsets; after two of them the checkpoint is lost besides."""
    for number, (when, step) in enumerate(OFFSET_POINTS):
        box.produce(range(number * ROWS, (number + 1) * ROWS), APART)
        _kill_at(box, f"{when}:{step.value}", "--mode", "offsets")
        if number % 2:
            shutil.rmtree(box.checkpoint)
    box.run_here(spark, "offsets")
    box.assert_once(range(len(OFFSET_POINTS) * ROWS))


@pytest.mark.faults
@pytest.mark.parametrize(
    ("mode", "said"), [("transactions", "Kafka says"), ("offsets", "its claim stands in")]
)
def test_of_two_runs_the_older_is_refused(
    mode: str, said: str, box: Outbox, spark: SparkSession
) -> None:
    """With transactions by Kafka itself, without by the order of the sink's log."""
    box.produce(range(ROWS), APART)
    with box.run("--mode", mode) as older:
        wait_for(older, "sent")
        box.run_here(spark, mode)
        box.produce(range(ROWS, 2 * ROWS), APART)
        assert older.ended() == Fenced.exit_code
        assert said in (box.folder / "run.log").read_text()
    box.run_here(spark, mode)
    box.assert_once(range(2 * ROWS))
