"""Where records are in Kafka: partitions, half-open spans of offsets, and sets of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

Json = dict[str, Any]


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


class Span(NamedTuple):
    """Offsets from `start` up to, not including, `end`."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"[{self.start}, {self.end})"

    @property
    def empty(self) -> bool:
        return self.end <= self.start


Ranges = Mapping[TopicPartition, Span]


def non_empty(ranges: Ranges) -> dict[TopicPartition, Span]:
    return {tp: span for tp, span in sorted(ranges.items()) if not span.empty}


def union(many: Iterable[Ranges]) -> dict[TopicPartition, Span]:
    """Of each partition from the first offset to the last; for ranges that lie end to end."""
    found: dict[TopicPartition, Span] = {}
    for ranges in many:
        for tp, span in ranges.items():
            known = found.get(tp, span)
            found[tp] = Span(min(known.start, span.start), max(known.end, span.end))
    return found


def offsets_in(ranges: Ranges) -> int:
    """How many: at least as many as there are records, since offsets may have holes."""
    return sum(max(0, span.end - span.start) for span in ranges.values())


def show_ranges(ranges: Ranges) -> str:
    """For a person: `articles.raw.v1[0] [0, 5), ...`."""
    return ", ".join(f"{tp} {span}" for tp, span in sorted(ranges.items()))


def spans_to_json(ranges: Mapping[TopicPartition, Span]) -> Json:
    nested: Json = {}
    for tp, span in sorted(ranges.items()):
        nested.setdefault(tp.topic, {})[str(tp.partition)] = [span.start, span.end]
    return nested


def spans_from_json(nested: Json) -> dict[TopicPartition, Span]:
    return {
        TopicPartition(topic, int(partition)): Span(int(start), int(end))
        for topic, partitions in nested.items()
        for partition, (start, end) in partitions.items()
    }
