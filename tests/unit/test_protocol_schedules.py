"""The protocol under random schedules: never a gap, never an overlap, never a row unaccounted.

Two drivers write one pipeline into one table. A schedule is a list of moves: a driver starts
(claims), writes a batch that continues, replays or re-plans what Spark has logged, loses its
checkpoint, crashes between any two steps, or is overtaken at any step by the other one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from oncelake.commit import Committer, Staging, Step
from oncelake.errors import Fenced, Gap, TransientError
from oncelake.lake import Staged
from oncelake.ledger import Placement, progress_key
from oncelake.model import Counts, Origin, Progress, Span, Stamp, TopicPartition
from tests.unit.memory_lake import MemoryFile, MemoryTable

PARTITIONS = 3
BAD_EVERY, LATE_AFTER = 5, 1
SIDES = {"quarantined": 0, "late": LATE_AFTER}
"""The side tables by fate; in each are offsets that leave so much, divided by BAD_EVERY."""
ORIGIN = Origin("cluster", {"t": "topic-id"})
POINTS = [(when, step) for step in Step for when in ("before", "after")]
SCHEDULES = 10_000
FAULTS = (
    "none", "none", "lose-answer", "fail-cleanly", "slip-in", "slip-in-side", "somebody-else",
    "crash-between-sides",
)  # fmt: skip


class Crash(BaseException):
    """kill -9: nothing after it runs."""


@dataclass(frozen=True)
class Move:
    driver: int
    kind: str
    sizes: tuple[int, ...] = ()
    crash_at: tuple[str, Step] | None = None
    overtaken_at: tuple[str, Step] | None = None
    fault: str = "none"
    based: bool = False


class Driver:
    """A run of the pipeline: its committer, and Spark's idea of where it stands."""

    def __init__(self, world: World, number: int) -> None:
        self.world, self.number = world, number
        self.main = world.main.another_client()
        self.sides = {fate: side.another_client() for fate, side in world.sides.items()}
        self.logged = [0] * PARTITIONS
        self.committer: Committer | None = None
        self.move: Move | None = None

    def play(self, move: Move) -> None:
        self.move = move
        try:
            if move.kind == "start":
                self.start()
            elif move.kind == "lose-checkpoint":
                self.logged = self.world.positions()
                self.committer = None
            elif move.kind == "restore-checkpoint":
                self.logged = [max(0, p - 7) for p in self.logged]
            elif self.committer is not None:
                self.write(move)
        except (Crash, Fenced, Gap, TransientError) as end:
            self.world.ends.append(type(end).__name__)
            self.committer = None
        finally:
            self.move = None

    def start(self) -> None:
        committer = Committer("p", self.main, self.sides, self.on_step)
        committer.claim(ORIGIN, {TopicPartition("t", p): 0 for p in range(PARTITIONS)})
        committer.finish()
        self.committer = committer

    def write(self, move: Move) -> None:
        ends = [start + size for start, size in zip(self.logged, move.sizes, strict=True)]
        ranges = {
            TopicPartition("t", p): Span(start, end)
            for p, (start, end) in enumerate(zip(self.logged, ends, strict=True))
        }
        self.main.faults.lose_answer = move.fault == "lose-answer"
        self.main.faults.fail_cleanly = move.fault == "fail-cleanly"
        first, second = self.sides.values()
        table = {"slip-in": self.main, "slip-in-side": first}.get(move.fault)
        if move.fault == "crash-between-sides":
            second.faults.slip_in = _crash
        if table is not None:
            table.faults.slip_in = lambda: self.world.other(self).play(Move(0, "start"))
        if move.fault == "somebody-else":
            self.main.faults.slip_in = self.main.shared.commit_of_somebody_else
        assert self.committer is not None
        self.committer.commit(ranges, stage_based if move.based else stage)
        self.logged = ends

    def on_step(self, when: str, step: Step) -> None:
        move = self.move
        if move is None:
            return
        if move.overtaken_at == (when, step):
            other = self.world.other(self)
            other.play(Move(0, "start"))
            other.play(Move(0, "write", sizes=(2,) * PARTITIONS))
        if move.crash_at == (when, step):
            raise Crash


def _crash() -> None:
    raise Crash


class World:
    def __init__(self) -> None:
        self.main = MemoryTable("main")
        self.sides = {fate: MemoryTable(fate) for fate in SIDES}
        self.drivers = [Driver(self, 0), Driver(self, 1)]
        self.ends: list[str] = []

    def other(self, driver: Driver) -> Driver:
        return self.drivers[1 - driver.number]

    def progress(self) -> Progress | None:
        text = self.main.shared.current.properties.get(progress_key("p"))
        return None if text is None else Progress.from_text(text)

    def positions(self) -> list[int]:
        progress = self.progress()
        at = progress.next_offset if progress else lambda tp: 0
        return [at(TopicPartition("t", p)) for p in range(PARTITIONS)]


def stage(placement: Placement) -> Staging:
    """Every offset of the ranges is a row; of five one is bad and one is late."""
    rows = [(tp.partition, o) for tp, s in placement.todo.items() for o in range(s.start, s.end)]
    good = tuple(row for row in rows if _is_good(row))
    aside = {fate: tuple(row for row in rows if _is(fate, row)) for fate in SIDES}
    by_fate = {fate: len(held) for fate, held in aside.items()}
    counts = Counts(read=len(rows), written=len(good), **by_fate)
    sides = {
        fate: Staged((MemoryFile(held),)) if held else Staged() for fate, held in aside.items()
    }
    newest = max(offset for _, offset in rows)
    watermark = max(newest, placement.watermark or 0)
    return Staging(Staged((MemoryFile(good),)), counts, sides, watermark)


def _is(fate: str, row: tuple[int, int]) -> bool:
    return row[1] % BAD_EVERY == SIDES[fate]


def _is_good(row: tuple[int, int]) -> bool:
    return not any(_is(fate, row) for fate in SIDES)


def stage_based(placement: Placement) -> Staging:
    """The same, for one snapshot only: as an upsert, which names rows of files by position."""
    staging = stage(placement)
    assert placement.base is not None
    return replace(staging, main=replace(staging.main, base=placement.base))


def check(world: World) -> None:
    """The laws, from the tables alone."""
    progress = world.progress()
    if progress is None:
        return
    dealt = {(p, o) for p, end in enumerate(world.positions()) for o in range(end)}
    main = world.main.shared.current.rows
    assert sorted(main) == sorted(row for row in dealt if _is_good(row)), "lost or doubled"
    for fate, side in world.sides.items():
        pending = {
            tuple(row)
            for p in progress.pending
            if p.fate == fate and p.sequence > _followed(side)
            for f in side.files_from_text(p.files)
            for row in f.rows
        }
        held = (*side.shared.current.rows, *pending)
        assert sorted(held) == sorted(row for row in dealt if _is(fate, row)), fate
    assert progress.watermark == max((offset for _, offset in dealt), default=None)
    assert progress.totals.read == len(dealt)
    assert progress.totals.balanced
    chain = [_link(a.stamp) for a in world.main.shared.current.history if a.stamp]
    assert [sequence for sequence, _, _ in chain] == list(range(1, len(chain) + 1))
    assert [previous for _, previous, _ in chain] == ["", *(digest for _, _, digest in chain[:-1])]


@lru_cache(maxsize=1000)
def _link(stamp: str) -> tuple[int, str, str]:
    """What chains a stamp to its neighbours; remembered, for a history is checked many times."""
    read = Stamp.from_text(stamp)
    return read.sequence, read.previous, read.digest


def _followed(side: MemoryTable) -> int:
    from oncelake.follow import _followed as followed

    return followed(side.shared.current.properties, "oncelake.followed.p")


points = st.one_of(st.none(), st.sampled_from(POINTS))
sizes = st.tuples(*[st.integers(0, 9)] * PARTITIONS)
starts = st.builds(Move, st.integers(0, 1), st.just("start"), crash_at=points, overtaken_at=points)
writes = st.builds(
    Move,
    st.integers(0, 1),
    st.just("write"),
    sizes,
    points,
    points,
    st.sampled_from(FAULTS),
    st.booleans(),
)
losses = st.builds(
    Move, st.integers(0, 1), st.sampled_from(["lose-checkpoint", "restore-checkpoint"])
)
schedules = st.lists(st.one_of(starts, writes, writes, writes, losses), min_size=2, max_size=14)


@pytest.fixture(autouse=True)
def _no_back_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oncelake.commit.BACK_OFF_SECONDS", (0.0, 0.0))
    monkeypatch.setattr("oncelake.follow.BACK_OFF_SECONDS", (0.0, 0.0))


@settings(
    max_examples=SCHEDULES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(schedules)
@example([Move(0, "start"), Move(0, "write", (9, 9, 9), overtaken_at=("before", Step.PUBLISH))])
@example([Move(0, "start"), Move(0, "write", (9, 9, 9), fault="lose-answer")])
def test_no_schedule_loses_or_doubles_a_row(moves: list[Move]) -> None:
    world = World()
    for move in moves:
        world.drivers[move.driver].play(move)
        check(world)
    heal(world)


def heal(world: World) -> None:
    """After everything, one fresh run brings the rest in, and nothing twice."""
    survivor = Driver(world, 0)
    survivor.play(Move(0, "start"))
    survivor.logged = world.positions()
    survivor.play(Move(0, "write", (3, 3, 3)))
    check(world)
    assert survivor.committer is not None, world.ends
    assert survivor.logged == world.positions()
    progress = world.progress()
    assert progress is not None
    assert all(p.sequence <= _followed(world.sides[p.fate]) for p in progress.pending)


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
