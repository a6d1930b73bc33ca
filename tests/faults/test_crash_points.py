"""kill -9 before and after each of the six steps: the table stays exact, the next run goes on."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from oncelake.commit import Step
from oncelake.local.kafka import LocalKafka
from tests.site import Site


class CrashPoint(NamedTuple):
    """Where the process dies: which time it comes to the step, so that rows are there before."""

    when: str
    step: Step
    occurrence: int

    def __str__(self) -> str:
        return f"{self.when}:{self.step.value}"


CRASH_POINTS = (
    CrashPoint("before", Step.CLAIM, 1),
    CrashPoint("after", Step.CLAIM, 1),
    CrashPoint("before", Step.FINISH, 3),
    CrashPoint("after", Step.FINISH, 3),
    CrashPoint("before", Step.PLACE, 2),
    CrashPoint("after", Step.PLACE, 2),
    CrashPoint("before", Step.STAGE, 2),
    CrashPoint("after", Step.STAGE, 2),
    CrashPoint("before", Step.PUBLISH, 2),
    CrashPoint("after", Step.PUBLISH, 2),
    CrashPoint("before", Step.SETTLE, 2),
    CrashPoint("after", Step.SETTLE, 2),
)
# The modes differ in what they stage and publish alone, and what an upsert leaves after those two
# is killed by name besides (tests/integration).
POINTS = {
    "append": CRASH_POINTS,
    "upsert": [p for p in CRASH_POINTS if str(p) in ("before:publish", "before:settle")],
}
ROWS_A_BATCH = 1000


@pytest.mark.minutes
@pytest.mark.faults
@pytest.mark.parametrize("mode", POINTS)
def test_a_life_of_kills_at_every_step_neither_loses_nor_doubles(
    mode: str, kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """Each run mends what the kill before it left, and is killed at the next point."""
    site = Site.make(kafka, tmp_path, ROWS_A_BATCH, upsert=mode == "upsert")
    site.produce(2 * ROWS_A_BATCH)
    for number, point in enumerate(POINTS[mode]):
        site.produce(ROWS_A_BATCH, seed=number)
        site.run_halted(str(point), point.occurrence)
        site.assert_nothing_twice(f"after a kill {point}")
    site.run_here(spark)
    site.assert_exactly_once(spark)


def test_a_kill_after_a_commit_that_nobody_was_told_of(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    site = Site.make(kafka, tmp_path, ROWS_A_BATCH)
    site.produce(3 * ROWS_A_BATCH)
    site.run_halted("after:publish", occurrence=2)
    site.run_here(spark)
    site.assert_exactly_once(spark)


def test_every_step_has_a_crash_point_before_and_after_it() -> None:
    assert {(p.when, p.step) for p in CRASH_POINTS} == {
        (when, step) for when in ("before", "after") for step in Step
    }
