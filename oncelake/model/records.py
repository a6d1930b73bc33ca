"""What is written into a table: the stamp of a snapshot, and the progress of a pipeline."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace

from oncelake.model.counts import Counts
from oncelake.model.offsets import (
    Json,
    Ranges,
    Span,
    TopicPartition,
    spans_from_json,
    spans_to_json,
)

STAMP_KEY = "oncelake.stamp"
PROGRESS_PREFIX = "oncelake.progress."
FOLLOWED_PREFIX = "oncelake.followed."
FORMAT = 1


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
    has followed to this sequence has these files already. `fate` is what became of the rows.
    """

    table: str
    sequence: int
    attempt: str
    files: tuple[str, ...]
    rows: int
    fate: str = "quarantined"

    def to_json(self) -> Json:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_json(cls, data: Json) -> Pending:
        return cls(**{**data, "files": tuple(data["files"])})


@dataclass(frozen=True, slots=True)
class Stamp:
    """What one snapshot of ours did. `kind` is claim, batch or follow (a side table's).

    `watermark` is that of the next batch, in microseconds since 1970 in UTC. `read_to` is the
    snapshot that was read, where the source is a table.
    """

    kind: str
    pipeline: str
    generation: int
    sequence: int
    attempt: str
    origin: Origin
    ranges: Ranges = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    previous: str = ""
    watermark: int | None = None
    read_to: int | None = None

    def _body(self) -> Json:
        rare = {"watermark": self.watermark, "read_to": self.read_to}
        return {
            **{name: value for name, value in rare.items() if value is not None},
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
            watermark=data.get("watermark"),
            read_to=data.get("read_to"),
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
    watermark: int | None = None
    read_to: int | None = None

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
            watermark=self.watermark if stamp.watermark is None else stamp.watermark,
            read_to=self.read_to if stamp.read_to is None else stamp.read_to,
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
                "watermark": self.watermark,
                "read_to": self.read_to,
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
            watermark=data.get("watermark"),
            read_to=data.get("read_to"),
        )


def compact(value: Json) -> str:
    """One spelling for one value, so that digests and comparisons are exact."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
