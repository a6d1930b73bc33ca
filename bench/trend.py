"""How much a series grows: by the median of all slopes, which one odd sample cannot move. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import median


def growth_percent(at: Sequence[float], values: Sequence[float]) -> float:
    """Growth from the first place to the last, in per cent of where the line begins."""
    pairs = list(zip(at, values, strict=True))
    if len(pairs) < 2:
        raise ValueError(f"{len(pairs)} samples show no trend: take at least two")
    slope = median((v2 - v1) / (p2 - p1) for (p1, v1), (p2, v2) in combinations(pairs, 2))
    begins = median(value - slope * (place - at[0]) for place, value in pairs)
    return 100 * slope * (at[-1] - at[0]) / begins
