"""Append: ours against Spark's own Iceberg sink, and against the same job without exactly-once.

What is fair: every side reads the same topic in one session of the same settings, in batches of
the same size, to the topic's end, and leaves a table of equal content. The table has no
partitions: a partitioned one costs Spark's sink a shuffle by default, so its figures are reported
besides. A batch takes one to three seconds: what we do more than others is done once a batch. A
side's rate in a round is that of its whole job, with creating tables and the claim; that of its
median batch, as Spark timed it, is reported too.
What exactly-once costs is a few per cent, so those two sides take turns batch by batch (`turns`).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console

from bench.chart import draw_append
from bench.commits import commit_milliseconds
from bench.race import Course, Laps, laps_to_json, median_batch_rates, race, rates
from bench.results import Result
from bench.rounds import Estimate, estimate, paired_ratios
from bench.sides import NATIVE, OURS, PLAIN, TUNED, UNCHECKED, Side, duellists, sides
from bench.stack import Load, Stack, stack
from bench.steps import StepClock
from bench.turns import Turns, duel

# A fifth of the 2 M rows: a partition's share is a sixth of it, rounded down, so there is no sixth
# batch for a handful of rows. All batches are of the same size.
BATCH = 400_002
# The JVM's compiler needs about a minute of each side before its figures settle.
WARM_UPS = 3
BY_DAY = ("days(published_at)",)
BY_DAY_ROUNDS = 3
LEAST_SPEED_UP = 1.5
MOST_COST_PERCENT = 3.0


def run(rows: int, rounds: int, out: Console) -> list[Result]:
    clock = StepClock()
    every = sides(clock)
    with stack(Load(rows, BATCH), out) as ground:
        laps = race(ground, every, Course(rounds, WARM_UPS, warmed=clock.forget), out)
        steps = clock.to_json()
        commits = commit_milliseconds(ground)
        turns = duel(ground, duellists(), rounds, out)
        by_day = _by_day(ground, every, min(rounds, BY_DAY_ROUNDS), out)
    draw_append({side.about: rates(laps[side.name]) for side in every})
    unchecked = estimate([100 * (r - 1) for r in _ratios(laps, UNCHECKED, OURS)])
    setting = {"rows": rows, "rounds": rounds, "batch": BATCH}
    found = {side.name: {"about": side.about, **laps_to_json(laps[side.name])} for side in every}
    return [
        _speed_up(laps, {**setting, "sides": found, "partitioned_by_day": by_day}),
        _cost(
            turns,
            {
                **setting,
                **steps,
                "commit_median_ms": commits,
                "cost_percent_with_quarantine_and_counts": _rounded(unchecked),
            },
        ),
    ]


def _by_day(ground: Stack, every: tuple[Side, ...], rounds: int, out: Console) -> dict[str, Any]:
    out.print("the same with a table partitioned by day")
    chosen = [side for side in every if side.name in {OURS, NATIVE}]
    laps = race(ground, chosen, Course(rounds, partition_by=BY_DAY), out)
    return {
        "vs_native": _rounded(estimate(_ratios(laps, OURS, NATIVE))),
        "sides": {name: laps_to_json(each) for name, each in laps.items()},
    }


def _speed_up(laps: Laps, details: dict[str, Any]) -> Result:
    ratio = estimate(_ratios(laps, OURS, NATIVE))
    tuned = estimate(_ratios(laps, OURS, TUNED))
    batch = estimate(
        paired_ratios(median_batch_rates(laps[OURS]), median_batch_rates(laps[NATIVE]))
    )
    return Result(
        name="append_vs_native",
        value=round(ratio.median, 3),
        target=f"at least {LEAST_SPEED_UP} times its rows/s",
        holds=ratio.median >= LEAST_SPEED_UP,
        shown=f"{ratio.median:.2f} times ({ratio.low:.2f} to {ratio.high:.2f}); "
        f"by the median batch {batch.median:.2f}; its best settings: {tuned.median:.2f} times",
        details={
            **details,
            "vs_native": _rounded(ratio),
            "vs_native_by_the_median_batch": _rounded(batch),
            "vs_native_tuned": _rounded(tuned),
        },
    )


def _cost(turns: Turns, details: dict[str, Any]) -> Result:
    """How much longer a batch takes, in per cent of the plain job's time."""
    longer = paired_ratios(turns[OURS], turns[PLAIN])
    cost = estimate([100 * (ratio - 1) for ratio in longer])
    by_steps = 100 * details["commit_median_ms"]["difference"] / details["batch_median_ms"]
    return Result(
        name="append_exactly_once_cost",
        value=round(cost.median, 2),
        target=f"at most {MOST_COST_PERCENT:g} %",
        holds=cost.median <= MOST_COST_PERCENT,
        shown=f"{cost.median:.1f} % ({cost.low:.1f} to {cost.high:.1f}, {cost.rounds} pairs of "
        f"batches); by the commit alone {by_steps:.1f} %",
        details={
            **details,
            "cost_percent": _rounded(cost),
            "cost_percent_by_the_commit_alone": round(by_steps, 2),
            "batch_seconds": {name: [round(t, 3) for t in each] for name, each in turns.items()},
        },
    )


def _ratios(laps: Laps, above: str, below: str) -> tuple[float, ...]:
    return paired_ratios(rates(laps[above]), rates(laps[below]))


def _rounded(found: Estimate) -> dict[str, float]:
    return {key: round(value, 4) for key, value in asdict(found).items()}
