"""Iceberg's promise in memory: a commit lands whole, on the newest base, if its guard holds.

With faults on demand: an answer that is lost after the commit landed, a commit that fails
without landing, and another writer that slips in between validation and swap.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from oncelake.lake import Ancestor, LakeTable, Publication, Unanswered
from oncelake.ledger import AlreadyLanded


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
        return iter(self._view.history)

    def files_to_text(self, files: Sequence[Any]) -> tuple[str, ...]:
        return tuple(json.dumps(file.rows) for file in files)

    def files_from_text(self, texts: Sequence[str]) -> tuple[Any, ...]:
        return tuple(MemoryFile(tuple(tuple(row) for row in json.loads(t))) for t in texts)

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


@dataclass(frozen=True)
class MemoryFile:
    rows: tuple[Any, ...]

    def recordCount(self) -> int:
        return len(self.rows)


class _Shared:
    def __init__(self) -> None:
        self.current = Version()

    def commit_of_somebody_else(self) -> None:
        """A snapshot without a stamp: an append or a compaction, say."""
        history = self.current.history
        self.current = replace(self.current, history=(*history, Ancestor(len(history) + 1, None)))

    def swap(self, base: Version, publication: Publication) -> bool:
        if self.current is not base:
            return False
        head = base.history[-1].snapshot_id if base.history else None
        assert publication.base in (None, head), "landed on another snapshot than it was made for"
        snapshot = Ancestor(len(base.history) + 1, publication.stamp)
        self.current = replace(
            base,
            history=(*base.history, snapshot),
            properties={**base.properties, **publication.properties},
            rows=base.rows + tuple(row for file in publication.files for row in file.rows),
        )
        return True
