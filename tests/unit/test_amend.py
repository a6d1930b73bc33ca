"""What a person decides about progress: the laws of each decision, and when there is nothing to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oncelake.amend import accept_gap, accept_rollback, rebase, rewrite, while_held
from oncelake.commit import Committer
from oncelake.errors import Gap, RolledBack, SourceChanged, TerminalError
from oncelake.ledger import View, look, look_unquestioned
from oncelake.model import Accepted, Epochs, Origin, Pending, Progress, Span, TopicPartition
from tests.unit.protocol_world import SIDES, Move, World, check

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
NEW0, NEW1 = TopicPartition("t#2", 0), TopicPartition("t#2", 1)
ORIGIN, ANEW = Origin("cluster", {"t": "id-1"}), Origin("cluster", {"t": "id-2"})
PENDING = (Pending("side", 4, "a", ("{}",), 3),)
STANDS = Progress(
    "p", ORIGIN, 3, 9, positions={P0: Span(0, 5), P1: Span(0, 3)}, pending=PENDING, digest="d"
)


def view(progress: Progress | None) -> View:
    return View(progress, progress.to_text() if progress else None, 1)


def test_an_accepted_gap_moves_progress_and_is_remembered() -> None:
    held = {P0: Span(8, 20), P1: Span(2, 20)}
    stamp, after = accept_gap(ORIGIN, held)(view(STANDS), "attempt")
    assert (stamp.kind, stamp.ranges, stamp.previous) == ("gap", {P0: Span(5, 8)}, "d")
    assert (after.generation, after.sequence, after.pending) == (4, 10, PENDING)
    assert after.positions == {P0: Span(0, 8), P1: Span(0, 3)}
    assert after.accepted == (Accepted("gap", 10, {P0: Span(5, 8)}),)
    assert Progress.from_text(after.to_text()) == after


def test_without_a_gap_there_is_none_to_accept() -> None:
    with pytest.raises(TerminalError, match="no gap to accept"):
        accept_gap(ORIGIN, {P0: Span(5, 20)})(view(STANDS), "attempt")


def test_a_gap_of_another_topic_is_not_accepted() -> None:
    with pytest.raises(SourceChanged, match="--rebase"):
        accept_gap(ANEW, {P0: Span(8, 20)})(view(STANDS), "attempt")


def test_a_topic_made_anew_is_a_topic_of_its_own_beside_the_former() -> None:
    stamp, after = rebase(ANEW, {P0: 0, P1: 7})(view(STANDS), "attempt")
    assert (stamp.kind, stamp.ranges, after.generation, after.pending) == ("rebase", {}, 4, PENDING)
    assert after.origin == Origin("cluster", {"t": "id-1", "t#2": "id-2"})
    assert after.positions == {**STANDS.positions, NEW0: Span(0, 0), NEW1: Span(7, 7)}
    _, third = rebase(Origin("other", {"t": "id-3"}), {P0: 0})(view(after), "attempt")
    assert third.origin == Origin("other", {"t": "id-1", "t#2": "id-2", "t#3": "id-3"})


def test_another_cluster_with_the_same_topic_changes_no_position() -> None:
    _, after = rebase(Origin("other", {"t": "id-1"}), {P0: 0})(view(STANDS), "attempt")
    assert (after.origin.cluster_id, after.positions) == ("other", STANDS.positions)


def test_the_same_source_is_nothing_to_rebase() -> None:
    with pytest.raises(TerminalError, match="nothing to rebase"):
        rebase(ORIGIN, {P0: 0})(view(STANDS), "attempt")


def test_kafka_and_the_ledger_name_the_newest_epoch_each_in_its_way() -> None:
    epochs = Epochs.of(["t", "t#10", "t#2", "u"])
    assert epochs.names == {"t": "t#10"}
    newest, other = TopicPartition("t#10", 0), TopicPartition("u", 0)
    assert epochs.in_ledger({P0: 1, other: 2}) == {newest: 1, other: 2}
    assert epochs.in_kafka({P0: 0, NEW0: 0, newest: 1, other: 2}) == {P0: 1, other: 2}


@pytest.fixture
def world() -> World:
    """Three batches, and main rolled back behind the second; the sides know nothing of it."""
    made = World()
    for move in (Move(0, "start"), *[Move(0, "write", (5, 5, 5))] * 3):
        made.drivers[0].play(move)
    made.main.shared.roll_back(2)
    return made


def person(world: World) -> Committer:
    return Committer("p", world.main, world.sides, look=look_unquestioned)


def test_a_rollback_stops_every_run_until_it_is_decided_on(world: World) -> None:
    with pytest.raises(RolledBack, match="--rewrite") as told:
        look(world.main, "p")
    assert "--accept-rollback" in str(told.value)


def test_after_a_rewrite_all_is_as_before_the_lost_batches(world: World) -> None:
    after = person(world).amend(rewrite(world.main, world.sides))
    assert (world.positions(), after.batches, after.totals.read) == ([5, 5, 5], 1, 15)
    assert {each.fate for each in after.pending} == set(SIDES)
    person(world).finish()
    check(world)


@pytest.mark.parametrize(
    ("begins", "gone"), [((0, 0, 0), False), ((5, 2, 5), False), ((6, 0, 0), True)]
)
def test_a_rewrite_is_refused_where_kafka_has_removed_what_was_lost(
    world: World, begins: tuple[int, ...], gone: bool
) -> None:
    base = world.progress()
    assert base is not None
    held = {TopicPartition("t", p): Span(begin, 99) for p, begin in enumerate(begins)}
    rewriting = while_held(rewrite(world.main, world.sides), world.main, base.origin, held)
    if not gone:
        assert person(world).amend(rewriting).batches == 1
        return
    with pytest.raises(Gap, match=r"removed t\[0\] \[5, 6\).*set_current_snapshot"):
        person(world).amend(rewriting)


@pytest.mark.parametrize(("end", "held_up"), [(8, True), (9, False)])
def test_a_gap_that_was_accepted_before_does_not_hold_a_rewrite_up(
    world: World, end: int, held_up: bool
) -> None:
    base = look_unquestioned(world.main, "p").progress
    assert base is not None
    held = {TopicPartition("t", p): Span(9 if p else 0, 99) for p in range(3)}
    rewriting = while_held(rewrite(world.main, world.sides), world.main, base.origin, held)
    gap = {TopicPartition("t", p): Span(5, end) for p in range(3)}
    told = view(replace(base, accepted=(Accepted("gap", 1, gap),)))
    if held_up:
        with pytest.raises(Gap):
            rewriting(told, "attempt")
    else:
        assert rewriting(told, "attempt")[1].batches == 1


def test_an_accepted_rollback_leaves_progress_where_it_was(world: World) -> None:
    person(world).amend(accept_rollback(world.main, world.sides))
    after = world.progress()
    assert after is not None
    assert (world.positions(), after.batches, after.totals.read) == ([15, 15, 15], 1, 15)
    lost = {TopicPartition("t", p): Span(5, 15) for p in range(3)}
    assert after.accepted == (Accepted("rollback", 5, lost),)
    person(world).finish()
    for fate, side in world.sides.items():
        assert all(offset < 5 for _, offset in side.shared.current.rows), fate


def test_a_rollback_that_lost_claims_alone_has_lost_nothing() -> None:
    world = World()
    for move in ("start", "write", "start"):
        world.drivers[0].play(Move(0, move, (5, 5, 5)))
    world.main.shared.roll_back(1)
    after = person(world).amend(accept_rollback(world.main, world.sides))
    assert (after.accepted, world.positions()) == ((), [5, 5, 5])
    check(world)


def test_a_rollback_behind_the_first_watermark_is_no_riddle() -> None:
    world = World()
    for move in ("start", "write"):
        world.drivers[0].play(Move(0, move, (5, 5, 5)))
    world.main.shared.roll_back(1)
    after = person(world).amend(rewrite(world.main, world.sides))
    assert (after.watermark, world.positions()) == (None, [0, 0, 0])


def test_rows_that_went_to_a_side_table_must_be_given_up_there(world: World) -> None:
    for decision in (rewrite, accept_rollback):
        with pytest.raises(TerminalError, match="kept rows as late"):
            person(world).amend(decision(world.main, {"quarantined": world.main}))


def test_a_table_that_was_not_rolled_back_is_left_alone() -> None:
    world = World()
    world.drivers[0].play(Move(0, "start"))
    for decision in (rewrite, accept_rollback):
        with pytest.raises(TerminalError, match="was not rolled back"):
            person(world).amend(decision(world.main, world.sides))


def test_what_was_lost_must_be_known_whole(world: World) -> None:
    """The newest lost snapshot is there, the one before it was expired."""
    world.main.shared.rolled_back = world.main.shared.rolled_back[-1:]
    with pytest.raises(TerminalError, match="cannot be told any more"):
        person(world).amend(rewrite(world.main, world.sides))


def test_a_watermark_that_cannot_be_told_is_not_guessed() -> None:
    """Of main's stamps only a claim is left, and that names none."""
    world = World()
    for move in ("start", "write", "start", "write"):
        world.drivers[0].play(Move(0, move, (5, 5, 5)))
    shared = world.main.shared
    shared.roll_back(1)
    shared.current = replace(shared.current, history=shared.current.history[-1:])
    with pytest.raises(TerminalError, match="watermark"):
        person(world).amend(rewrite(world.main, world.sides))
