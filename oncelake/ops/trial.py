"""Read some offsets as a run would, and write nothing: what would become of them, or what fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from oncelake import source
from oncelake.decode import REASON
from oncelake.lake import JAVA_ERRORS, in_short
from oncelake.model import Ranges, Span, offsets_in, spans_to_json
from oncelake.reading import Reading
from oncelake.spec import PipelineSpec


@dataclass(frozen=True, slots=True)
class Trial:
    """`reasons`: why rows would go to quarantine, and how many. `fails`: the smallest part of the
    offsets that reading fails by, with what it says."""

    ranges: Ranges
    read: int = 0
    good: int = 0
    reasons: Mapping[str, int] | None = None
    fails: Ranges | None = None
    why: str = ""

    def to_json(self) -> Mapping[str, Any]:
        return {
            "offsets": spans_to_json(self.ranges),
            "ok": self.fails is None,
            "read": self.read,
            "good": self.good,
            "reasons": dict(self.reasons or {}),
            "fails": spans_to_json(self.fails or {}),
            "why": self.why,
        }


def trial(spark: SparkSession, spec: PipelineSpec, ranges: Ranges) -> Trial:
    """Decode, transform and judge, but for lateness, which depends on what came before."""
    reading = Reading.of(spark, spec)

    def judged(part: Ranges) -> DataFrame:
        return reading.due(source.read_ranges(spark, spec.source, spec.limits, part), None).rows()

    def fails(part: Ranges) -> str | None:
        try:
            judged(part).write.format("noop").mode("overwrite").save()
        except JAVA_ERRORS as error:
            return in_short(error)
        return None

    if (why := fails(ranges)) is not None:
        smallest = narrowed(lambda part: fails(part) is not None, ranges)
        return Trial(ranges, fails=smallest, why=fails(smallest) or why)
    read = source.read_ranges(spark, spec.source, spec.limits, ranges).count()
    found = {row[REASON]: row["count"] for row in judged(ranges).groupBy(REASON).count().collect()}
    return Trial(ranges, read, found.pop(None, 0), found)


def narrowed(fails: Callable[[Ranges], bool], ranges: Ranges) -> Ranges:
    """The smallest part that fails by itself, by halving: one record, where it is one's fault."""
    while offsets_in(ranges) > 1:
        failing = next((half for half in _halves(ranges) if fails(half)), None)
        if failing is None:
            break
        ranges = failing
    return ranges


def _halves(ranges: Ranges) -> tuple[Ranges, Ranges]:
    """Half of the partitions each or, of one, half of its offsets."""
    places = sorted(ranges)
    if len(places) > 1:
        some, others = places[: len(places) // 2], places[len(places) // 2 :]
        return {tp: ranges[tp] for tp in some}, {tp: ranges[tp] for tp in others}
    (tp, (start, end)) = next(iter(ranges.items()))
    middle = (start + end) // 2
    return {tp: Span(start, middle)}, {tp: Span(middle, end)}
