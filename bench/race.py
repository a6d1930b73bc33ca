"""Sides run by turns on one stack, round after round, each into a fresh table that is checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from rich.console import Console

from bench.content import Content, content, require_equal
from bench.rounds import order_of
from bench.sides import Side
from bench.stack import Stack


@dataclass(frozen=True, slots=True)
class Course:
    """`rounds` count; `warm_ups` are run before them and do not. `warmed` is called after those."""

    rounds: int
    warm_ups: int = 1
    partition_by: tuple[str, ...] = ()
    warmed: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Lap:
    """One side in one round. Its rate is that of the whole job: from the call that makes its tables
    and starts it, to the end of its last batch. So nothing a side does is left out, as waiting at a
    topic's end, which only one batch does. `median_batch` is the rate of the batch in the middle,
    by Spark's word. The processor's time is of driver and tasks together, without the broker's.
    """

    rows_per_second: float
    median_batch_rows_per_second: float
    cpu_micros_a_row: float
    start_up_seconds: float
    files: int


Laps = Mapping[str, Sequence[Lap]]


def race(stack: Stack, sides: Sequence[Side], course: Course, out: Console) -> Laps:
    """The laps of the counted rounds, by side."""
    counted: dict[str, list[Lap]] = {side.name: [] for side in sides}
    seen: dict[str, Content] = {}
    for number in range(1 - course.warm_ups, course.rounds + 1):
        if number == 1:
            course.warmed()
        for side in order_of(sides, number):
            lap, seen[side.name] = _run(
                stack, side, f"{side.name}_{number + course.warm_ups}", course
            )
            label = f"round {number} of {course.rounds}" if number > 0 else "warm-up"
            out.print(f"{label:<14} {side.about:<32} {lap.rows_per_second:>9,.0f} rows/s")
            if number > 0:
                counted[side.name].append(lap)
        require_equal(seen, stack.load.articles)
    return counted


def rates(laps: Sequence[Lap]) -> list[float]:
    return [lap.rows_per_second for lap in laps]


def median_batch_rates(laps: Sequence[Lap]) -> list[float]:
    return [lap.median_batch_rows_per_second for lap in laps]


def laps_to_json(laps: Sequence[Lap]) -> dict[str, Any]:
    return {
        "rows_per_second": [round(rate) for rate in rates(laps)],
        "rows_per_second_median": round(median(rates(laps))),
        "median_batch_rows_per_second": [round(rate) for rate in median_batch_rates(laps)],
        "cpu_micros_a_row_median": round(median(lap.cpu_micros_a_row for lap in laps), 2),
        "start_up_seconds_median": round(median(lap.start_up_seconds for lap in laps), 3),
        "files": laps[-1].files,
    }


def _run(stack: Stack, side: Side, name: str, course: Course) -> tuple[Lap, Content]:
    spec = stack.fresh(name, course.partition_by)
    stack.collect_garbage()
    called = time.perf_counter()
    wait = side.start(stack.spark, spec)
    started, busy = time.perf_counter(), stack.cpu_seconds()
    batches = wait()
    ended, busy = time.perf_counter(), stack.cpu_seconds() - busy
    found = content(stack.spark, spec.table.name)
    files = stack.spark.table(f"{spec.table.name}.files").count()
    stack.remove(spec)
    rows = stack.load.rows
    lap = Lap(
        rows_per_second=rows / (ended - called),
        median_batch_rows_per_second=rows / len(batches) / median(batches),
        cpu_micros_a_row=1e6 * busy / rows,
        start_up_seconds=started - called,
        files=files,
    )
    return lap, found
