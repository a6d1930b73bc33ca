"""The protocol under random schedules: never a gap, never an overlap, never a row unaccounted.

Two drivers write one pipeline into one table. A schedule is a list of moves: a driver starts
(claims), writes a batch that continues, replays or re-plans what Spark has logged, loses its
checkpoint, crashes between any two steps, or is overtaken at any step by the other one. Now and
then the table is rolled back, and a person has what is lost written again or accepts the loss, or
rows in quarantine are read once more.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from oncelake.commit import Step
from oncelake.errors import TableUnfit
from tests.unit.protocol_world import PARTITIONS, Driver, Move, World, check, heal

POINTS = [(when, step) for step in Step for when in ("before", "after")]
FAULTS = (
    "none", "none", "lose-answer", "fail-cleanly", "slip-in", "slip-in-side", "somebody-else",
    "crash-between-sides",
)  # fmt: skip
SCHEDULES = 10_000

# What may happen is laid out beforehand: a move is then two draws and not ten, which took longer
# than the schedules themselves.
KINDS = (
    "start", "write", "write", "write", "lose-checkpoint", "restore-checkpoint", "roll-back",
    "replay",
)  # fmt: skip
SOMETIMES = (*(None for _ in POINTS), *POINTS)
WHERE = list(product(KINDS, (0, 1), SOMETIMES, SOMETIMES))
SIZES = list(product(range(10), repeat=PARTITIONS))
WHAT = list(product(FAULTS, (False, True), SIZES))


def _move(where: tuple[Any, ...], what: tuple[Any, ...]) -> Move:
    kind, driver, crash_at, overtaken_at = where
    fault, based, sizes = what
    return Move(driver, kind, sizes, crash_at, overtaken_at, fault, based)


moves = st.builds(_move, st.sampled_from(WHERE), st.sampled_from(WHAT))
schedules = st.lists(moves, min_size=2, max_size=8)


@pytest.fixture(autouse=True)
def _no_back_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oncelake.commit.BACK_OFF_SECONDS", (0.0, 0.0))
    monkeypatch.setattr("oncelake.follow.BACK_OFF_SECONDS", (0.0, 0.0))


@pytest.mark.minutes
@settings(
    max_examples=SCHEDULES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(schedules)
@example([Move(0, "start"), Move(0, "write", (9, 9, 9), overtaken_at=("before", Step.PUBLISH))])
@example([Move(0, "start"), Move(0, "write", (9, 9, 9), fault="lose-answer")])
@example(
    [
        Move(0, "start"),
        Move(0, "write", (2, 2, 2), fault="crash-between-sides"),
        Move(1, "start", crash_at=("after", Step.CLAIM)),
        Move(0, "roll-back", (1, 0, 0)),
    ]
)
@example(
    [
        Move(0, "start"),
        Move(0, "write", (2, 2, 2), overtaken_at=("after", Step.PUBLISH)),
    ]
)
@example(
    [
        Move(0, "start"),
        Move(0, "write", (2, 2, 2)),
        Move(0, "roll-back", (1, 0, 0), based=True),
        Move(1, "start"),
        Move(1, "roll-back", (1, 0, 0)),
    ]
)
def test_no_schedule_loses_or_doubles_a_row(moves: list[Move]) -> None:
    world = World()
    for move in moves:
        world.drivers[move.driver].play(move)
        check(world)
    heal(world)


@pytest.mark.parametrize("based", [False, True])
@pytest.mark.parametrize("fault", ["lose-answer", "fail-cleanly", "somebody-else"])
def test_an_answer_that_says_nothing_is_settled_by_looking_the_attempt_up(
    fault: str, based: bool
) -> None:
    world = World()
    world.drivers[0].play(Move(0, "start"))
    world.drivers[0].play(Move(0, "write", (5, 5, 5), fault=fault, based=based))
    assert world.ends == []
    assert world.positions() == [5, 5, 5]
    check(world)


def test_two_drivers_that_finish_the_same_pending_files_publish_them_once() -> None:
    world = World()
    world.drivers[0].play(Move(0, "start"))
    world.drivers[0].play(Move(0, "write", (5, 5, 5), fault="slip-in-side"))
    check(world)


def test_a_run_that_dies_between_two_sides_leaves_the_second_to_the_next() -> None:
    world = World()
    world.drivers[0].play(Move(0, "start"))
    world.drivers[0].play(Move(0, "write", (5, 5, 5), fault="crash-between-sides"))
    assert world.ends == ["Crash"]
    first, second = (side.shared.current.rows for side in world.sides.values())
    assert first
    assert not second
    check(world)
    heal(world)


def test_a_zombie_is_fenced_when_it_would_only_skip() -> None:
    world = World()
    zombie, fresh = world.drivers
    zombie.play(Move(0, "start"))
    fresh.play(Move(1, "start"))
    fresh.play(Move(1, "write", (5, 5, 5)))
    zombie.play(Move(0, "write", (5, 5, 5)))
    assert world.ends == ["Fenced"]
    check(world)


@pytest.mark.parametrize("sequence", [1, 40])
def test_a_side_table_that_followed_another_main_table_is_refused(sequence: int) -> None:
    """Else what main decides would be taken for published there, and be lost."""
    former, world = World(), World()
    former.drivers[0].play(Move(0, "start"))
    for _ in range(sequence):
        former.drivers[0].play(Move(0, "write", (5, 5, 5)))
    assert world.drivers[0].committer is None
    world.sides["late"].shared = former.sides["late"].shared
    fresh = Driver(world, 0)
    with pytest.raises(TableUnfit, match="late has followed pipeline p to sequence"):
        fresh.start()
    assert world.progress() is None
    assert not world.main.shared.current.history
