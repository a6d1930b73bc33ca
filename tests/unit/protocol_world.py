"""Two drivers on one pipeline in memory: what they may do, what befalls them, and the laws."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from oncelake.amend import Change, accept_rollback, rewrite
from oncelake.commit import Committer, Staging, Step
from oncelake.errors import Fenced, Gap, RolledBack, TransientError
from oncelake.lake import LakeTable, Staged
from oncelake.ledger import Placement, look_unquestioned
from oncelake.model import (
    FAILED,
    REWINDS,
    TAKEN,
    Counts,
    Origin,
    Progress,
    Span,
    Stamp,
    TopicPartition,
    marks_of,
)
from oncelake.refusals import progress_key
from tests.unit.memory_lake import MemoryFile, MemoryTable, revised

PARTITIONS = 3
BAD_EVERY, LATE_AFTER = 5, 1
SIDES = {"quarantined": 0, "late": LATE_AFTER}
"""The side tables by fate; in each are offsets that leave so much, divided by BAD_EVERY."""
ORIGIN = Origin("cluster", {"t": "topic-id"})


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
            elif move.kind == "roll-back" and self.world.main.shared.current.history:
                self.world.main.shared.roll_back(move.sizes[0])
                self.decide(accept_rollback if move.based else rewrite)
            elif move.kind == "replay" and self.world.main.shared.current.history:
                self.replay(move)
            elif self.committer is not None:
                self.write(move)
        except (Crash, Fenced, Gap, RolledBack, TransientError) as end:
            self.world.ends.append(type(end).__name__)
            self.committer = None
        finally:
            self.move = None

    def start(self) -> None:
        committer = Committer("p", self.main, self.sides, self.on_step)
        committer.claim(ORIGIN, {TopicPartition("t", p): 0 for p in range(PARTITIONS)})
        committer.finish()
        self.committer = committer

    def decide(self, how: Callable[[LakeTable, Mapping[str, LakeTable]], Change]) -> None:
        """What a person types after a rollback; the checkpoint is set aside by it."""
        self.committer = None
        if self.world.rolled_back():
            change = how(self.main, self.sides)
            person = Committer("p", self.main, self.sides, self.on_step, look_unquestioned)
            person.amend(change)
            person.finish()
        self.logged = self.world.positions()

    def replay(self, move: Move) -> None:
        """What a person types after a fix; of the rows in quarantine every other one is good now.

        Some of those that are not taken yet make a step.
        """
        self.committer = None
        committer = Committer("p", self.main, self.sides, self.on_step)
        committer.claim(ORIGIN, {})
        committer.finish()
        held = self.sides["quarantined"]
        held.refresh()
        waiting = [row[:2] for row in sorted(held.shared.current.rows) if TAKEN not in row]
        step = waiting[: 1 + move.sizes[0]]
        self._befall(move)
        committer.replay(lambda placement: stage_replay(step))

    def _befall(self, move: Move) -> None:
        """What befalls the next commit."""
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

    def write(self, move: Move) -> None:
        ends = [start + size for start, size in zip(self.logged, move.sizes, strict=True)]
        ranges = {
            TopicPartition("t", p): Span(start, end)
            for p, (start, end) in enumerate(zip(self.logged, ends, strict=True))
        }
        self._befall(move)
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
        return None if text is None else _progress(text)

    def rolled_back(self) -> bool:
        progress, shared = self.progress(), self.main.shared
        held = [a.stamp for a in shared.current.history if a.stamp]
        return progress is not None and not any(progress.attempt in stamp for stamp in held)

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


def stage_replay(rows: list[tuple[int, int]]) -> Staging:
    outcomes = [(partition, o, TAKEN if o % 2 else FAILED) for partition, o in rows]
    taken = tuple((partition, offset) for partition, offset, what in outcomes if what == TAKEN)
    counts = Counts(written=len(taken), replayed=len(taken))
    marks = marks_of((TopicPartition("t", p), offset, what) for p, offset, what in outcomes)
    return Staging(Staged((MemoryFile(taken),)), counts, {}, marks=marks)


def check(world: World) -> None:
    """The laws, from the tables alone."""
    progress = world.progress()
    if progress is None or world.rolled_back():
        return
    read = {(p, o) for p, end in enumerate(world.positions()) for o in range(end)}
    lost = {
        (tp.partition, offset)
        for each in progress.accepted
        for tp, span in each.ranges.items()
        for offset in range(*span)
    }
    dealt = read - lost
    taken = []
    for fate, side in world.sides.items():
        held = side.shared.current.rows
        for pending in progress.pending:
            if pending.fate == fate and pending.sequence > followed(side):
                came = (row for f in side.files_from_text(pending.files) for row in f.rows)
                held = (*revised(held, pending), *came)
        assert sorted(row[:2] for row in held) == sorted(r for r in dealt if _is(fate, r)), fate
        taken += [row[:2] for row in held if TAKEN in row]
    main = world.main.shared.current.rows
    good = [row for row in dealt if _is_good(row)]
    assert sorted(main) == sorted([*good, *taken]), "lost or doubled"
    assert progress.totals.replayed == len(taken)
    assert progress.watermark == max((offset for _, offset in read), default=None)
    assert progress.totals.read == len(dealt)
    assert progress.totals.balanced
    chain = [_link(a.stamp) for a in world.main.shared.current.history if a.stamp]
    for older, newer in pairwise([Link("claim", 0, "", ""), *chain]):
        assert newer.previous == older.digest
        step = newer.sequence - older.sequence
        assert step == 1 or (step > 1 and newer.kind in REWINDS)


class Link(NamedTuple):
    """What chains a stamp to its neighbours."""

    kind: str
    sequence: int
    previous: str
    digest: str


@lru_cache(maxsize=1000)
def _progress(text: str) -> Progress:
    """Remembered, for it is asked for between any two moves."""
    return Progress.from_text(text)


@lru_cache(maxsize=1000)
def _link(stamp: str) -> Link:
    """Remembered, for a history is checked many times."""
    read = Stamp.from_text(stamp)
    return Link(read.kind, read.sequence, read.previous, read.digest)


def followed(side: MemoryTable) -> int:
    """How far a side table has followed main."""
    from oncelake.follow import _followed as sequence

    return sequence(side.shared.current.properties, "oncelake.followed.p")


def heal(world: World) -> None:
    """After everything, one fresh run brings the rest in, and nothing twice."""
    survivor = Driver(world, 0)
    survivor.decide(rewrite)
    survivor.play(Move(0, "start"))
    survivor.logged = world.positions()
    survivor.play(Move(0, "write", (3, 3, 3)))
    check(world)
    assert survivor.committer is not None, world.ends
    assert survivor.logged == world.positions()
    progress = world.progress()
    assert progress is not None
    assert all(p.sequence <= followed(world.sides[p.fate]) for p in progress.pending)
