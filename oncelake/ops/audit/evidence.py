"""What an audit looks at: frozen facts about the tables and the topic, and no judgement.

Rows are counted in *slices*: stretches of one partition's offsets between two neighbouring
boundaries of any stamp or of progress. A slice thus lies wholly inside or wholly outside of each
stamp, whatever the stamps say, and the judgement can be made from a handful of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from oncelake.model import STAMP_KEY, Span, TopicPartition

NO_END = 2**63 - 1
"""The end of the slice that holds every offset past the last boundary."""

SAMPLE = 10
"""How many offsets are named in a finding; their number is always told in full."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One entry of a table's history, as Iceberg recorded it."""

    snapshot_id: int
    parent_id: int | None
    operation: str
    summary: Mapping[str, str]
    committed_at: datetime

    def __str__(self) -> str:
        return f"snapshot {self.snapshot_id} of {self.committed_at:%Y-%m-%d %H:%M:%S} UTC"

    def number(self, key: str) -> int:
        """A count of the summary; Iceberg leaves zeros out."""
        return int(self.summary.get(key, "0"))

    @property
    def stamp_text(self) -> str | None:
        return self.summary.get(STAMP_KEY)

    @property
    def gain(self) -> int:
        """Rows the table had more (or, below zero, fewer) after it; a rewrite changes none."""
        if self.operation == "replace":
            return 0
        hidden = self.number("added-position-deletes") - self.number("removed-position-deletes")
        return self.number("added-records") - self.number("deleted-records") - hidden

    @property
    def withdrawn(self) -> int:
        """Rows that were taken out, those among them that were put back."""
        return self.number("deleted-records") + self.number("added-position-deletes")

    @property
    def changed(self) -> bool:
        """Whether rows came or went; a rewrite only moves them."""
        rows = self.number("added-records") + self.number("added-equality-deletes")
        return self.operation != "replace" and rows + self.withdrawn > 0

    @property
    def added(self) -> int:
        return max(0, self.gain)

    @property
    def removed(self) -> int:
        """Rows it took away. Deletes by equality do not say how many: at most all there were."""
        if self.number("added-equality-deletes"):
            return self.number("total-records")
        return max(0, -self.gain)


@dataclass(frozen=True, slots=True)
class History:
    """The snapshots a table still has: those main descends from, oldest first, and the others."""

    table: str
    exists: bool = True
    ancestors: tuple[Snapshot, ...] = ()
    others: tuple[Snapshot, ...] = ()

    @property
    def complete(self) -> bool:
        """Nothing was expired: the oldest ancestor kept is the table's first."""
        return not self.ancestors or self.ancestors[0].parent_id is None


class Tally(NamedTuple):
    """Rows, and how many different coordinates they have: the rest are copies."""

    coordinates: int = 0
    rows: int = 0

    @property
    def copies(self) -> int:
        return self.rows - self.coordinates

    def plus(self, other: Tally) -> Tally:
        return Tally(self.coordinates + other.coordinates, self.rows + other.rows)


NOTHING = Tally()


@dataclass(frozen=True, slots=True)
class Side:
    """The table that keeps the rows of one fate; `followed_text` says how far it follows main."""

    fate: str
    history: History
    followed_text: str | None = None

    @property
    def table(self) -> str:
        return self.history.table


@dataclass(frozen=True, slots=True)
class Slice:
    """The rows of main and, by their fate, of the side tables whose offsets lie in `span`.

    `both`: coordinates that are in more than one of the tables.
    """

    tp: TopicPartition
    span: Span
    main: Tally = NOTHING
    sides: Mapping[str, Tally] = field(default_factory=dict)
    both: int = 0

    def side(self, fate: str) -> Tally:
        return self.sides.get(fate, NOTHING)


class Foreign(NamedTuple):
    """Rows that carry no coordinates, or those of a topic or partition that is not ours."""

    without: int = 0
    unknown: int = 0

    @property
    def rows(self) -> int:
        return self.without + self.unknown


NOBODY = Foreign()


@dataclass(frozen=True, slots=True)
class Suspect:
    """One coordinate that is in a table more than once, or in more than one; `sides` by fate."""

    tp: TopicPartition
    offset: int
    main: int
    sides: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        found = {"in main": self.main, **self.sides}
        named = ", ".join(f"{rows} {place}" for place, rows in found.items() if rows)
        return f"{self.tp} offset {self.offset} ({named})"

    @property
    def shared(self) -> bool:
        return sum(rows > 0 for rows in (self.main, *self.sides.values())) > 1


@dataclass(frozen=True, slots=True)
class RowFacts:
    """Every row of all tables, counted; `suspects`, `holes` and `repeated` name at most SAMPLE.

    `foreign_sides` are by fate. `keys_twice`: keys of an upsert's table that have more than one
    row.
    """

    slices: tuple[Slice, ...] = ()
    foreign: Foreign = NOBODY
    foreign_sides: Mapping[str, Foreign] = field(default_factory=dict)
    suspects: tuple[Suspect, ...] = ()
    holes: tuple[tuple[TopicPartition, Span], ...] = ()
    keys_twice: int = 0
    repeated: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What Kafka holds: the first and the next offset of each partition, and whose they are."""

    cluster_id: str
    topic_ids: Mapping[str, str]
    offsets: Mapping[TopicPartition, Span]


@dataclass(frozen=True, slots=True)
class Evidence:
    """All there is to judge. `topic` is None where Kafka was not asked; `neighbours` are other
    pipelines that keep progress in the same table, `topic_column` says whether its rows name
    their topic; `bounded`: a key is looked for only so far back."""

    pipeline: str
    main: History
    sides: tuple[Side, ...] = ()
    progress_text: str | None = None
    rows: RowFacts = field(default_factory=RowFacts)
    topic: TopicFacts | None = None
    topic_column: bool = True
    neighbours: tuple[str, ...] = ()
    bounded: bool = False
