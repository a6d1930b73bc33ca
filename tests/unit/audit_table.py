"""A table acted out in memory: what is done to it, and the history Iceberg would tell of that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from oncelake.model import STAMP_KEY, Stamp, TopicPartition
from oncelake.ops.audit.evidence import History, Snapshot

BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

Coordinate = tuple[TopicPartition, int]


@dataclass
class Table:
    """Snapshots, oldest first, and how often each coordinate is there."""

    name: str
    snapshots: list[Snapshot] = field(default_factory=list)
    rows: Counter[Coordinate] = field(default_factory=Counter)
    foreign: int = 0
    made: int = 0

    def commit(self, operation: str, summary: Mapping[str, int | str]) -> None:
        parent = self.snapshots[-1].snapshot_id if self.snapshots else None
        self.made += 1
        self.snapshots.append(
            Snapshot(
                snapshot_id=1000 + self.made,
                parent_id=parent,
                operation=operation,
                summary={key: str(value) for key, value in summary.items() if value},
                committed_at=BEGAN + timedelta(seconds=self.made),
            )
        )

    def append(self, stamp: Stamp, rows: Iterable[Coordinate]) -> None:
        added = list(rows)
        self.rows.update(added)
        self.commit("append", {STAMP_KEY: stamp.to_text(), "added-records": len(added)})

    def append_foreign(self, rows: int) -> None:
        self.foreign += rows
        self.commit("append", {"added-records": rows})

    def append_copy(self, rows: Iterable[Coordinate]) -> None:
        copied = list(rows)
        self.rows.update(copied)
        self.commit("append", {"added-records": len(copied)})

    def delete(self, *rows: Coordinate) -> None:
        self.lose(*rows)
        self.commit("overwrite", {"deleted-records": len(rows) + 7, "added-records": 7})

    def lose(self, *rows: Coordinate) -> None:
        """Rows vanish, and no snapshot says so."""
        for row in rows:
            assert self.rows[row] == 1
            del self.rows[row]

    def rewrite(self) -> None:
        total = self.rows.total() + self.foreign
        self.commit("replace", {"deleted-records": total, "added-records": total})

    def expire(self, oldest: int) -> None:
        del self.snapshots[:oldest]

    def history(self) -> History:
        return History(self.name, True, tuple(self.snapshots))
