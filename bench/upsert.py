"""Upsert: ours against the foreachBatch + MERGE that is commonly written.

Both read the same topic, a tenth of which are later versions of articles, in batches of the same
size, into tables partitioned by day that end with equal content.
"""

from __future__ import annotations

from dataclasses import asdict

from rich.console import Console

from bench.race import Course, laps_to_json, race, rates
from bench.results import Result
from bench.rounds import estimate, paired_ratios
from bench.sides import COMMON, OURS, upsert_sides
from bench.stack import Load, stack
from bench.steps import StepClock

ROWS, DUPLICATES = 1_000_000, 0.1
BATCH = 100_002
WARM_UPS = 3
BY_DAY = ("days(published_at)",)
LEAST_SPEED_UP = 2.0


def run(rounds: int, out: Console) -> list[Result]:
    clock = StepClock()
    every = upsert_sides(clock)
    course = Course(rounds, WARM_UPS, partition_by=BY_DAY, warmed=clock.forget)
    with stack(Load(ROWS, BATCH, DUPLICATES), out) as ground:
        laps = race(ground, every, course, out)
    ratio = estimate(paired_ratios(rates(laps[OURS]), rates(laps[COMMON])))
    return [
        Result(
            name="upsert_vs_common_merge",
            value=round(ratio.median, 3),
            target=f"at least {LEAST_SPEED_UP:g} times its rows/s",
            holds=ratio.median >= LEAST_SPEED_UP,
            shown=f"{ratio.median:.2f} times ({ratio.low:.2f} to {ratio.high:.2f})",
            details={
                "rows": ROWS, "duplicates": DUPLICATES, "batch": BATCH,
                "ratio": {key: round(value, 4) for key, value in asdict(ratio).items()},
                "sides": {s.name: {"about": s.about, **laps_to_json(laps[s.name])} for s in every},
                **clock.to_json(),
            },
        )
    ]  # fmt: skip
