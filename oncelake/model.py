"""The frozen values of the protocol: ranges, counts, stamps and progress.

A *batch* is a set of half-open offset ranges. A *stamp* travels in the summary of each
snapshot we write and says which ranges it holds. *Progress* is a property of the main table,
changed in the same commit, and says where the next batch must begin. Stamps form a chain: each
names the digest of the one before it, so a stamp that is altered or missing shows.

Everything here is pure and turns to JSON and back without loss.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

STAMP_KEY = "oncelake.stamp"
PROGRESS_PREFIX = "oncelake.progress."
FOLLOWED_PREFIX = "oncelake.followed."
FORMAT = 1

Json = dict[str, Any]


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}[{self.partition}]"


class Span(NamedTuple):
    """Offsets from `start` up to, not including, `end`."""

    start: int
    end: int

    def __str__(self) -> str:
        return f"[{self.start}, {self.end})"

    @property
    def empty(self) -> bool:
        return self.end <= self.start


Ranges = Mapping[TopicPartition, Span]


def non_empty(ranges: Ranges) -> dict[TopicPartition, Span]:
    return {tp: span for tp, span in sorted(ranges.items()) if not span.empty}


def offsets_in(ranges: Ranges) -> int:
    """How many: at least as many as there are records, since offsets may have holes."""
    return sum(max(0, span.end - span.start) for span in ranges.values())


def show_ranges(ranges: Ranges) -> str:
    """For a person: `articles.raw.v1[0] [0, 5), ...`."""
    return ", ".join(f"{tp} {span}" for tp, span in sorted(ranges.items()))


def spans_to_json(ranges: Mapping[TopicPartition, Span]) -> Json:
    nested: Json = {}
    for tp, span in sorted(ranges.items()):
        nested.setdefault(tp.topic, {})[str(tp.partition)] = [span.start, span.end]
    return nested


def spans_from_json(nested: Json) -> dict[TopicPartition, Span]:
    return {
        TopicPartition(topic, int(partition)): Span(int(start), int(end))
        for topic, partitions in nested.items()
        for partition, (start, end) in partitions.items()
    }


BESIDES = ("inserted", "updated", "removed")
_NOT_A_FATE = ("read", *BESIDES)


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows of a batch by what became of them; `read` is the sum of them, those besides apart.

    Besides: what was written was `inserted`, or `updated` a row that was there; `removed` are rows
    of the table that tombstones took away. So the table's rows are inserted less removed.
    """

    read: int = 0
    written: int = 0
    superseded: int = 0
    late: int = 0
    quarantined: int = 0
    filtered: int = 0
    deleted: int = 0
    inserted: int = 0
    updated: int = 0
    removed: int = 0

    def fates(self) -> dict[str, int]:
        """What became of rows that were read: of each exactly one of these."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in _NOT_A_FATE}

    def in_words(self) -> str:
        """`written 990 + quarantined 10`, and what else there was."""
        always = ("written", "quarantined")
        fates = self.fates().items()
        return " + ".join(f"{name} {count:,}" for name, count in fates if count or name in always)

    @property
    def duplicate_rate(self) -> float:
        """The share of rows that were one more version of a row, newer or not."""
        return (self.superseded + self.updated) / self.read if self.read else 0.0

    @property
    def accounted(self) -> int:
        return sum(self.fates().values())

    @property
    def balanced(self) -> bool:
        return self.read == self.accounted

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def to_json(self) -> Json:
        """Those besides only where there are any: an append has none."""
        every = {f.name: getattr(self, f.name) for f in fields(self)}
        return {name: count for name, count in every.items() if count or name not in BESIDES}

    @classmethod
    def from_json(cls, data: Json) -> Counts:
        return cls(**{f.name: int(data.get(f.name, 0)) for f in fields(cls)})


@dataclass(frozen=True, slots=True)
class Origin:
    """Which Kafka the offsets belong to: names alone do not survive a recreated topic."""

    cluster_id: str
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> Json:
        return {"cluster": self.cluster_id, "topics": dict(sorted(self.topic_ids.items()))}

    @classmethod
    def from_json(cls, data: Json) -> Origin:
        return cls(cluster_id=data["cluster"], topic_ids=dict(data["topics"]))


@dataclass(frozen=True, slots=True)
class Pending:
    """Data files staged for a side table, to be published there after main has decided.

    `sequence` and `attempt` are those of the main commit that decided them; a side table that
    has followed to this sequence has these files already.
    """

    table: str
    sequence: int
    attempt: str
    files: tuple[str, ...]
    rows: int

    def to_json(self) -> Json:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_json(cls, data: Json) -> Pending:
        return cls(**{**data, "files": tuple(data["files"])})


@dataclass(frozen=True, slots=True)
class Stamp:
    """What one snapshot of ours did. `kind` is claim, batch or follow (a side table's)."""

    kind: str
    pipeline: str
    generation: int
    sequence: int
    attempt: str
    origin: Origin
    ranges: Ranges = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    previous: str = ""

    def _body(self) -> Json:
        return {
            "format": FORMAT,
            "kind": self.kind,
            "pipeline": self.pipeline,
            "generation": self.generation,
            "sequence": self.sequence,
            "attempt": self.attempt,
            "origin": self.origin.to_json(),
            "ranges": spans_to_json(self.ranges),
            "counts": self.counts.to_json(),
            "previous": self.previous,
        }

    @property
    def digest(self) -> str:
        return hashlib.sha256(compact(self._body()).encode()).hexdigest()

    def to_text(self) -> str:
        return compact({**self._body(), "digest": self.digest})

    @classmethod
    def from_text(cls, text: str) -> Stamp:
        data = json.loads(text)
        return cls(
            kind=data["kind"],
            pipeline=data["pipeline"],
            generation=int(data["generation"]),
            sequence=int(data["sequence"]),
            attempt=data["attempt"],
            origin=Origin.from_json(data["origin"]),
            ranges=spans_from_json(data["ranges"]),
            counts=Counts.from_json(data["counts"]),
            previous=data["previous"],
        )


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a pipeline stands: the only truth about what has been written.

    `positions` maps a partition to [first, next): everything in it has been dealt with.
    """

    pipeline: str
    origin: Origin
    generation: int = 0
    sequence: int = 0
    attempt: str = ""
    digest: str = ""
    positions: Ranges = field(default_factory=dict)
    totals: Counts = field(default_factory=Counts)
    batches: int = 0
    pending: tuple[Pending, ...] = ()

    def next_offset(self, tp: TopicPartition) -> int:
        """A partition we have not met yet was added later: it is due from its beginning."""
        position = self.positions.get(tp)
        return position.end if position else 0

    def after(self, stamp: Stamp, pending: Iterable[Pending] = ()) -> Progress:
        """Progress once `stamp` has landed."""
        moved = dict(self.positions)
        for tp, span in stamp.ranges.items():
            first = moved[tp].start if tp in moved else span.start
            moved[tp] = Span(first, span.end)
        return replace(
            self,
            origin=stamp.origin,
            generation=stamp.generation,
            sequence=stamp.sequence,
            attempt=stamp.attempt,
            digest=stamp.digest,
            positions=moved,
            totals=self.totals + stamp.counts,
            batches=self.batches + (1 if stamp.kind == "batch" else 0),
            pending=tuple(pending),
        )

    def to_text(self) -> str:
        return compact(
            {
                "format": FORMAT,
                "pipeline": self.pipeline,
                "origin": self.origin.to_json(),
                "generation": self.generation,
                "sequence": self.sequence,
                "attempt": self.attempt,
                "digest": self.digest,
                "positions": spans_to_json(self.positions),
                "totals": self.totals.to_json(),
                "batches": self.batches,
                "pending": [p.to_json() for p in self.pending],
            }
        )

    @classmethod
    def from_text(cls, text: str) -> Progress:
        data = json.loads(text)
        return cls(
            pipeline=data["pipeline"],
            origin=Origin.from_json(data["origin"]),
            generation=int(data["generation"]),
            sequence=int(data["sequence"]),
            attempt=data["attempt"],
            digest=data["digest"],
            positions=spans_from_json(data["positions"]),
            totals=Counts.from_json(data["totals"]),
            batches=int(data["batches"]),
            pending=tuple(Pending.from_json(p) for p in data["pending"]),
        )


def compact(value: Json) -> str:
    """One spelling for one value, so that digests and comparisons are exact."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
