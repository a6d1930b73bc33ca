"""Where to cut the offsets of each partition, and how to find an offset's slice in one join. Pure.

A table can have thousands of slices, and comparing each row with all of them would be slow. So
each partition's offsets are divided into *zones* of equal width, about as many as it has slices:
a row knows its zone by arithmetic, and meets only the slices that reach into it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from oncelake.model import Ranges, Span, TopicPartition
from oncelake.ops.audit.evidence import NO_END

BELOW, BEYOND = -1, -2
"""The zones of offsets below the first boundary and past the last."""


@dataclass(frozen=True, slots=True)
class Grid:
    """One partition: its slices in order, and its zones, each `width` offsets from `low` on."""

    tp: TopicPartition
    low: int
    high: int
    width: int
    spans: Sequence[Span]

    def zone(self, offset: int) -> int:
        if offset < self.low:
            return BELOW
        return BEYOND if offset >= self.high else (offset - self.low) // self.width

    def zoned(self) -> Iterator[tuple[int, Span]]:
        """Every slice, once for each zone it reaches into."""
        yield BELOW, Span(0, self.low)
        yield BEYOND, Span(self.high, NO_END)
        for span in self.spans:
            for zone in range(self.zone(span.start), self.zone(span.end - 1) + 1):
                yield zone, span


def cut(ranges: Iterable[Ranges], partitions: Iterable[TopicPartition]) -> tuple[Grid, ...]:
    """Cut each partition at every boundary of `ranges`; one without any is all past its start."""
    bounds: dict[TopicPartition, set[int]] = {tp: set() for tp in partitions}
    for each in ranges:
        for tp, span in each.items():
            bounds.setdefault(tp, set()).update(span)
    return tuple(_grid(tp, sorted(marks) or [0]) for tp, marks in sorted(bounds.items()))


def _grid(tp: TopicPartition, marks: Sequence[int]) -> Grid:
    spans = [Span(start, end) for start, end in pairwise(marks)]
    low, high = marks[0], marks[-1]
    return Grid(tp, low, high, max(1, (high - low) // max(1, len(spans))), spans)
