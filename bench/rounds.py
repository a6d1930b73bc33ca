"""How sides are compared: in rounds, by turns, by the ratio within a round. Pure.

A machine is not equally fast all the time, so only figures of the same round are divided by each
other. The interval is of the median ratio, by order statistics: it supposes nothing of how the
ratios are distributed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import median
from typing import TypeVar

T = TypeVar("T")
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A median, and the interval that holds the true one with this `confidence`."""

    median: float
    low: float
    high: float
    confidence: float
    rounds: int


def order_of(sides: Sequence[T], round_number: int) -> tuple[T, ...]:
    """Each side comes first in turn, and every other round runs backwards.

    So each of two sides runs before the other about equally often.
    """
    turn = round_number // 2 % len(sides)
    turned = (*sides[turn:], *sides[:turn])
    return turned[::-1] if round_number % 2 else turned


def paired_ratios(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, ...]:
    """Ours divided by theirs, round by round."""
    return tuple(mine / other for mine, other in zip(ours, theirs, strict=True))


def estimate(values: Sequence[float]) -> Estimate:
    """The narrowest symmetric interval of order statistics that is sure enough.

    With fewer than six values none is: then all of them are the interval, and `confidence` says
    how little that means.
    """
    ordered, count = sorted(values), len(values)
    if not count:
        raise ValueError("no round was counted: give at least one")
    cut = max((k for k in range((count + 1) // 2) if _coverage(count, k) >= CONFIDENCE), default=0)
    return Estimate(
        median=median(ordered),
        low=ordered[cut],
        high=ordered[count - 1 - cut],
        confidence=_coverage(count, cut),
        rounds=count,
    )


def _coverage(count: int, cut: int) -> float:
    """How surely the median lies within, with `cut` values left out at either end."""
    outside = sum(comb(count, below) for below in range(cut + 1))
    return float(max(0.0, 1 - 2 * outside / 2**count))
