"""Marks of replayed rows: as few as can be, and each row's own outcome to be read from them."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from oncelake.model import Mark, Pending, Span, TopicPartition, marks_of

PLACES = st.tuples(st.sampled_from(["a", "b#2"]), st.integers(0, 2), st.integers(0, 30))
OUTCOMES = st.dictionaries(PLACES, st.sampled_from(["taken", "filtered", "failed"]))
P0 = TopicPartition("a", 0)


def listed(outcomes: dict[tuple[str, int, int], str]) -> tuple[Mark, ...]:
    rows = outcomes.items()
    return marks_of((TopicPartition(t, p), offset, what) for (t, p, offset), what in rows)


@given(OUTCOMES)
def test_every_row_has_one_mark_and_it_is_its_own(
    outcomes: dict[tuple[str, int, int], str],
) -> None:
    marks = listed(outcomes)
    for (topic, partition, offset), outcome in outcomes.items():
        here = [
            mark.outcome
            for mark in marks
            if mark.tp == (topic, partition) and mark.span.start <= offset < mark.span.end
        ]
        assert here == [outcome]


@given(OUTCOMES)
def test_marks_survive_progress(outcomes: dict[tuple[str, int, int], str]) -> None:
    pending = Pending("q", 3, "attempt", (), 0, marks=listed(outcomes), unmarked=(1, 2))
    read = Pending.from_json(json.loads(json.dumps(pending.to_json())))
    assert (set(read.marks), read.unmarked) == (set(pending.marks), (1, 2))
    assert len(read.marks) == len(pending.marks)


def test_rows_that_were_never_in_quarantine_do_not_part_a_mark() -> None:
    rows = [(P0, 3, "taken"), (P0, 90, "taken"), (P0, 91, "failed"), (P0, 95, "taken")]
    assert marks_of(rows) == (
        Mark("taken", P0, Span(3, 91)),
        Mark("failed", P0, Span(91, 92)),
        Mark("taken", P0, Span(95, 96)),
    )
