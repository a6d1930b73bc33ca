"""The laws of the ledger, one by one: place, claim, guard, and what it refuses to believe."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncelake.errors import Fenced, Gap, RolledBack, SourceChanged, TableUnfit
from oncelake.lake import Ancestor
from oncelake.ledger import (
    AlreadyLanded,
    View,
    batch_stamp,
    claim,
    guard,
    look,
    look_or_begin_anew,
    pipelines,
    place,
)
from oncelake.model import Counts, Origin, Pending, Progress, Ranges, Span, Stamp, TopicPartition
from oncelake.refusals import progress_key, refuse_same_topic_twice
from tests.unit.memory_lake import MemoryTable, Version

ORIGIN = Origin("cluster", {"t": "id-1"})
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def at(*nexts: int, generation: int = 1) -> Progress:
    positions = {TopicPartition("t", p): Span(0, n) for p, n in enumerate(nexts)}
    return Progress("p", ORIGIN, generation=generation, positions=positions)


@pytest.mark.parametrize(
    ("batch", "outcome", "todo"),
    [
        ({P0: Span(5, 9), P1: Span(3, 8)}, "written", {P0: Span(5, 9), P1: Span(3, 8)}),
        ({P0: Span(0, 5), P1: Span(1, 3)}, "skipped", {}),
        ({P0: Span(2, 9)}, "trimmed", {P0: Span(5, 9)}),
        ({P0: Span(0, 5), P1: Span(3, 4)}, "trimmed", {P1: Span(3, 4)}),
        ({P0: Span(5, 5)}, "skipped", {}),
        ({TopicPartition("t", 7): Span(0, 2)}, "written", {TopicPartition("t", 7): Span(0, 2)}),
    ],
    ids=["at", "before", "across", "one before, one at", "empty", "a new partition"],
)
def test_a_batch_is_placed_by_partition(batch: Ranges, outcome: str, todo: Ranges) -> None:
    placement = place(at(5, 3), 1, batch)
    assert (placement.outcome, placement.todo) == (outcome, todo)


def test_a_batch_beyond_progress_is_a_gap_that_names_its_offsets() -> None:
    with pytest.raises(Gap, match=r"t\[1\]: offsets \[3, 6\) are missing"):
        place(at(5, 3), 1, {P0: Span(5, 7), P1: Span(6, 9)})


def test_a_new_partition_is_due_from_its_beginning() -> None:
    with pytest.raises(Gap, match=r"t\[7\]: offsets \[0, 40\)"):
        place(at(5), 1, {TopicPartition("t", 7): Span(40, 50)})


def test_an_older_generation_is_fenced_even_where_it_would_skip() -> None:
    with pytest.raises(Fenced, match="generation 1 of this run was overtaken by generation 2"):
        place(at(5, 3, generation=2), 1, {P0: Span(0, 5)})


def test_a_claim_raises_the_generation_and_keeps_everything_else() -> None:
    pending = (Pending("side", 4, "a", ("{}",), 3),)
    before = replace(at(5, 3, generation=6), sequence=9, digest="d", pending=pending)
    stamp, after = claim(View(before, before.to_text(), 1), "p", ORIGIN, {}, "attempt")
    assert (stamp.kind, stamp.generation, stamp.sequence, stamp.previous) == ("claim", 7, 10, "d")
    assert after == replace(
        before, generation=7, sequence=10, attempt="attempt", digest=stamp.digest
    )


def test_a_first_claim_begins_where_it_is_told() -> None:
    _, after = claim(View(None, None, None), "p", ORIGIN, {P0: 100}, "a")
    assert after.positions == {P0: Span(100, 100)}


@pytest.mark.parametrize(
    ("live", "says"),
    [
        (Origin("other", {"t": "id-1"}), "cluster other"),
        (Origin("cluster", {"t": "id-2"}), "deleted and created again"),
    ],
)
def test_another_cluster_or_a_recreated_topic_is_refused(live: Origin, says: str) -> None:
    with pytest.raises(SourceChanged, match=says):
        claim(View(at(5), "", 1), "p", live, {}, "a")


class TestGuard:
    view = View(at(5), "progress", head=7)
    holds = staticmethod(guard(view, "key", "mine"))

    def test_it_holds_on_the_base_it_was_made_for(self) -> None:
        assert self.holds({"key": "progress"}, iter([Ancestor(7, None)]))

    def test_it_holds_after_a_foreign_append(self) -> None:
        assert self.holds({"key": "progress"}, iter([Ancestor(8, None), Ancestor(7, None)]))

    def test_it_refuses_when_progress_moved(self) -> None:
        assert not self.holds({"key": "other"}, iter([Ancestor(7, None)]))

    def test_it_refuses_when_the_head_is_no_ancestor_any_more(self) -> None:
        assert not self.holds({"key": "progress"}, iter([Ancestor(6, None)]))

    def test_it_raises_when_its_own_attempt_has_landed(self) -> None:
        with pytest.raises(AlreadyLanded):
            self.holds({"key": "other"}, iter([Ancestor(8, '{"attempt":"mine"}')]))


def _table(progress: Progress | None, *stamps: Stamp) -> MemoryTable:
    table = MemoryTable("demo.t")
    history = tuple(Ancestor(n, s.to_text()) for n, s in enumerate(stamps, start=1))
    properties = {} if progress is None else {progress_key("p"): progress.to_text()}
    table.shared.current = Version(history, properties)
    return table


def _one_batch() -> tuple[Progress, Stamp]:
    stamp = batch_stamp(at(0), {P0: Span(0, 5)}, Counts(5, 5), "attempt-1")
    return at(0).after(stamp), stamp


def test_progress_whose_commit_is_expired_is_believed() -> None:
    progress, _ = _one_batch()
    assert look(_table(progress), "p").progress == progress


def test_a_table_rolled_back_behind_its_progress_is_refused() -> None:
    progress, stamp = _one_batch()
    table = _table(progress, stamp)
    table.ancestors = lambda: iter(())  # type: ignore[method-assign]
    with pytest.raises(RolledBack, match=r"t\[0\] \[0, 5\)"):
        look(table, "p")


def test_stamped_snapshots_without_progress_are_refused() -> None:
    _, stamp = _one_batch()
    with pytest.raises(TableUnfit, match=r"oncelake\.progress\.p is gone"):
        look(_table(None, stamp), "p")


def test_a_pipeline_that_may_be_rebuilt_takes_lost_progress_for_none() -> None:
    _, stamp = _one_batch()
    view = look_or_begin_anew(_table(None, stamp), "p")
    assert (view.progress, view.text, view.head) == (None, None, 1)


def test_a_reader_sees_how_far_each_pipeline_has_come_and_no_rolled_back_table() -> None:
    progress, stamp = _one_batch()
    table = _table(progress, stamp)
    table.refresh()
    assert pipelines(table) == (progress,)
    table.ancestors = lambda: iter(())  # type: ignore[method-assign]
    with pytest.raises(RolledBack, match=r"t\[0\] \[0, 5\)"):
        pipelines(table)


def test_a_batch_of_a_table_says_which_snapshot_was_read() -> None:
    stamp = batch_stamp(at(0), {P0: Span(0, 5)}, Counts(5, 5), "attempt-1", read_to=42)
    assert Stamp.from_text(stamp.to_text()).read_to == 42
    later = batch_stamp(at(0).after(stamp), {P0: Span(5, 6)}, Counts(1, 1), "attempt-2")
    assert at(0).after(stamp).after(later).read_to == 42


def test_the_same_topic_under_another_pipelines_name_is_refused() -> None:
    progress, stamp = _one_batch()
    table = _table(progress, stamp)
    table.refresh()
    with pytest.raises(TableUnfit, match="already filled from this topic by pipeline p"):
        refuse_same_topic_twice(table, "renamed", ORIGIN)
    refuse_same_topic_twice(table, "p", ORIGIN)


spans = st.tuples(st.integers(0, 50), st.integers(0, 50)).map(lambda t: Span(min(t), max(t)))


@given(st.dictionaries(st.integers(0, 4), spans), st.lists(st.integers(0, 50), max_size=5))
def test_what_is_placed_begins_exactly_at_progress(
    batch: dict[int, Span], nexts: list[int]
) -> None:
    ranges = {TopicPartition("t", p): span for p, span in batch.items()}
    progress = at(*nexts)
    try:
        todo = place(progress, 1, ranges).todo
    except Gap:
        assert any(s.start > progress.next_offset(tp) and not s.empty for tp, s in ranges.items())
        return
    for tp, span in todo.items():
        assert span.start == progress.next_offset(tp)
        assert span.end == ranges[tp].end
