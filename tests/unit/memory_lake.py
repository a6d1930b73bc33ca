"""Iceberg's promise in memory: a commit lands whole, on the newest base, if its guard holds.

With faults on demand: an answer that is lost after the commit landed, a commit that fails
without landing, and another writer that slips in between validation and swap.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from oncelake.lake import Ancestor, LakeTable, Publication, Staged, Unanswered
from oncelake.ledger import AlreadyLanded
from oncelake.model import FAILED, Pending

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Version:
    """One state of the table: what a compare-and-set swaps."""

    history: tuple[Ancestor, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    rows: tuple[Any, ...] = ()


@dataclass
class Faults:
    """What befalls the next publish; each strikes once."""

    lose_answer: bool = False
    fail_cleanly: bool = False
    slip_in: Callable[[], None] | None = None


class MemoryTable(LakeTable):
    def __init__(self, name: str) -> None:
        self.name = name
        self.shared = _Shared()
        self._view = self.shared.current
        self.faults = Faults()

    def another_client(self) -> MemoryTable:
        """The same table as another driver sees it."""
        twin = MemoryTable(self.name)
        twin.shared = self.shared
        return twin

    def refresh(self) -> None:
        self._view = self.shared.current

    def properties(self) -> dict[str, str]:
        return dict(self._view.properties)

    def head(self) -> int | None:
        return self._view.history[-1].snapshot_id if self._view.history else None

    def ancestors(self) -> Iterator[Ancestor]:
        return reversed(self._view.history)

    def stamps(self) -> Iterator[Ancestor]:
        return iter((*self._view.history, *self.shared.rolled_back))

    def stage_revised(self, pending: Pending) -> Staged:
        held = self._view.rows
        made = MemoryFile(revised(held, pending))
        return Staged((made,), base=self.head(), replaced=(MemoryFile(held),))

    def files_to_text(self, files: Sequence[Any]) -> tuple[str, ...]:
        return tuple(json.dumps(file.rows) for file in files)

    def files_from_text(self, texts: Sequence[str]) -> tuple[Any, ...]:
        return tuple(MemoryFile(tuple(tuple(row) for row in json.loads(t))) for t in texts)

    def absent(self, files: Sequence[Any]) -> list[str]:
        return []

    def publish(self, publication: Publication) -> None:
        faults, self.faults = self.faults, Faults()
        while True:
            base = self.shared.current
            try:
                if not publication.guard(base.properties, reversed(base.history)):
                    raise Unanswered("ValidationException")
            except AlreadyLanded as landed:
                raise Unanswered("the guard raised") from landed
            if faults.slip_in:
                slip_in, faults.slip_in = faults.slip_in, None
                slip_in()
            if faults.fail_cleanly:
                raise Unanswered("CommitFailedException")
            if self.shared.swap(base, publication):
                break
        if faults.lose_answer:
            raise Unanswered("connection reset")


def revised(rows: Iterable[Row], pending: Pending) -> tuple[Row, ...]:
    """A row is its partition and offset and, where it is marked, the outcome and the sequence."""
    gone = {(tp.partition, o) for tp, span in pending.without.items() for o in range(*span)}
    marks = {
        (mark.tp.partition, offset): mark.outcome
        for mark in pending.marks
        for offset in range(*mark.span)
    }
    made = []
    for row in rows:
        place, mark = row[:2], row[2:]
        if place in gone:
            continue
        if mark and mark[1] in pending.unmarked:
            mark = ()
        if place in marks and (not mark or mark[0] == FAILED):
            mark = (marks[place], pending.sequence)
        made.append((*place, *mark))
    return tuple(made)


@dataclass(frozen=True)
class MemoryFile:
    rows: tuple[Any, ...]

    def recordCount(self) -> int:
        return len(self.rows)


class _Shared:
    def __init__(self) -> None:
        self.current = Version()
        self.rolled_back: list[Ancestor] = []
        self._states: dict[int, tuple[Any, ...]] = {}

    def roll_back(self, steps: int) -> None:
        """As Iceberg does it: rows go back, properties do not, and the snapshots stay known."""
        history = self.current.history
        kept = history[: max(1, len(history) - steps)]
        self.rolled_back += history[len(kept) :]
        self.current = replace(self.current, history=kept, rows=self._states[kept[-1].snapshot_id])

    def _next_id(self, base: Version) -> int:
        return len(base.history) + len(self.rolled_back) + 1

    def commit_of_somebody_else(self) -> None:
        """A snapshot without a stamp: an append or a compaction, say."""
        snapshot = Ancestor(self._next_id(self.current), None)
        self._states[snapshot.snapshot_id] = self.current.rows
        self.current = replace(self.current, history=(*self.current.history, snapshot))

    def swap(self, base: Version, publication: Publication) -> bool:
        if self.current is not base:
            return False
        head = base.history[-1].snapshot_id if base.history else None
        assert publication.base in (None, head), "landed on another snapshot than it was made for"
        snapshot = Ancestor(self._next_id(base), publication.stamp)
        gone = {row for file in publication.replaced for row in file.rows}
        added = tuple(row for file in publication.files for row in file.rows)
        rows = tuple(row for row in base.rows if row not in gone) + added
        self._states[snapshot.snapshot_id] = rows
        self.current = replace(
            base,
            history=(*base.history, snapshot),
            properties={**base.properties, **publication.properties},
            rows=rows,
        )
        return True
