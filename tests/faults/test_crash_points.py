"""kill -9 before and after each of the six steps: the table stays exact, and the next run ends."""

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
# The modes differ in what they stage, and how that is published; the steps before are the same.
POINTS = {
    "append": CRASH_POINTS,
    "upsert": [p for p in CRASH_POINTS if p.step in (Step.STAGE, Step.PUBLISH, Step.SETTLE)],
}
# Staged files and nothing visible; and a commit that nobody was told of.
QUICK = {"append after:stage", "append after:publish"}


def _marked(mode: str, point: CrashPoint) -> object:
    name = f"{mode} {point}"
    marks = () if name in QUICK else (pytest.mark.faults,)
    return pytest.param(mode, point, id=name, marks=marks)


@pytest.mark.parametrize(
    ("mode", "point"), [_marked(mode, point) for mode, points in POINTS.items() for point in points]
)
def test_a_kill_at_any_step_neither_loses_nor_doubles(
    mode: str, point: CrashPoint, kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    site = Site.make(kafka, tmp_path, upsert=mode == "upsert")
    site.produce(3000)
    site.run_halted(str(point), point.occurrence)
    site.run_here(spark)
    site.assert_exactly_once(spark)


def test_every_step_has_a_crash_point_before_and_after_it() -> None:
    assert {(p.when, p.step) for p in CRASH_POINTS} == {
        (when, step) for when in ("before", "after") for step in Step
    }
