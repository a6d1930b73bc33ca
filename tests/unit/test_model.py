"""Values turn to text and back without loss, and a stamp's digest covers all of it."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from oncelake.model import Counts, Origin, Pending, Progress, Span, Stamp, TopicPartition

names = st.text(min_size=1, max_size=8)
numbers = st.integers(0, 2**62)
spans = st.builds(Span, numbers, numbers)
ranges = st.dictionaries(st.builds(TopicPartition, names, st.integers(0, 999)), spans, max_size=4)
origins = st.builds(Origin, names, st.dictionaries(names, names, max_size=3))
counts = st.builds(Counts, *[numbers] * 7)
stamps = st.builds(
    Stamp,
    st.sampled_from(["claim", "batch", "follow"]), names, numbers, numbers, names, origins, ranges,
    counts, names,
)  # fmt: skip
pendings = st.builds(Pending, names, numbers, names, st.tuples(names), numbers)
progresses = st.builds(
    Progress, names, origins, numbers, numbers, names, names, ranges, counts, numbers,
    st.tuples(pendings),
)  # fmt: skip


@given(stamps)
def test_a_stamp_survives_its_text(stamp: Stamp) -> None:
    assert Stamp.from_text(stamp.to_text()) == stamp
    assert json.loads(stamp.to_text())["digest"] == stamp.digest


@given(progresses)
def test_progress_survives_its_text(progress: Progress) -> None:
    assert Progress.from_text(progress.to_text()) == progress


@given(stamps, stamps)
def test_different_stamps_have_different_digests(one: Stamp, other: Stamp) -> None:
    assert (one == other) == (one.digest == other.digest)


def test_progress_moves_with_a_stamp() -> None:
    tp, new = TopicPartition("t", 0), TopicPartition("t", 1)
    before = Progress("p", Origin("c"), positions={tp: Span(3, 10)}, totals=Counts(7, 7))
    stamp = Stamp("batch", "p", 1, 1, "a", Origin("c"), {tp: Span(10, 12), new: Span(0, 4)},
                  Counts(read=6, written=5, quarantined=1))  # fmt: skip
    after = before.after(stamp)
    assert after.positions == {tp: Span(3, 12), new: Span(0, 4)}
    assert after.totals == Counts(read=13, written=12, quarantined=1)
    assert (after.batches, after.attempt, after.digest) == (1, "a", stamp.digest)


def test_counts_balance_only_when_every_row_became_something() -> None:
    balanced = Counts(read=9, written=3, superseded=2, late=1, quarantined=1, filtered=1, deleted=1)
    assert balanced.balanced
    assert not replace(balanced, read=10).balanced


def test_what_was_written_besides_is_no_fate_of_its_own() -> None:
    counts = Counts(read=10, written=6, superseded=3, quarantined=1, inserted=4, updated=2)
    assert counts.balanced
    assert counts.duplicate_rate == 0.5
    assert counts.in_words() == "read 10 = written 6 + superseded 3 + quarantined 1"
    assert Counts.from_json(counts.to_json()) == counts
    assert "updated" not in Counts(read=1, written=1).to_json()
