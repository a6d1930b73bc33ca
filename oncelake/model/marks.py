"""What became of rows in quarantine that were read once more: a mark on each of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from oncelake.model.offsets import Json, Span, TopicPartition

TAKEN, FILTERED, FAILED = "taken", "filtered", "failed"
"""Taken as any record is; left out by the transform; in quarantine still."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The outcome of the rows of a span that are in quarantine, and were not taken before."""

    outcome: str
    tp: TopicPartition
    span: Span


def marks_of(outcomes: Iterable[tuple[TopicPartition, int, str]]) -> tuple[Mark, ...]:
    """As few marks as there can be: one for rows of equal outcome with no other row between."""
    marks: list[Mark] = []
    for tp, offset, outcome in sorted(outcomes):
        last = marks[-1] if marks else None
        if last and (last.tp, last.outcome) == (tp, outcome):
            marks[-1] = Mark(outcome, tp, Span(last.span.start, offset + 1))
        else:
            marks.append(Mark(outcome, tp, Span(offset, offset + 1)))
    return tuple(marks)


def marks_to_json(marks: Sequence[Mark]) -> Json:
    nested: Json = {}
    for mark in marks:
        topics = nested.setdefault(mark.outcome, {}).setdefault(mark.tp.topic, {})
        topics.setdefault(str(mark.tp.partition), []).append(list(mark.span))
    return nested


def marks_from_json(nested: Json) -> tuple[Mark, ...]:
    return tuple(
        Mark(outcome, TopicPartition(topic, int(partition)), Span(*span))
        for outcome, topics in nested.items()
        for topic, partitions in topics.items()
        for partition, spans in partitions.items()
        for span in spans
    )
