"""Where a pipeline stands: a property of the main table, changed in the commit of each batch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, replace

from oncelake.model.counts import Counts
from oncelake.model.marks import Mark, marks_from_json, marks_to_json
from oncelake.model.offsets import (
    Json,
    Ranges,
    Span,
    TopicPartition,
    spans_from_json,
    spans_to_json,
)
from oncelake.model.stamps import FORMAT, LOSSES, Origin, Stamp, compact

PROGRESS_PREFIX = "oncelake.progress."
FOLLOWED_PREFIX = "oncelake.followed."


@dataclass(frozen=True, slots=True)
class Pending:
    """What a side table is to do after main has decided: take data files that are staged, give up
    the rows of ranges that main no longer has (`without`), mark rows with what became of them
    (`marks`), or take back the marks that such commits of main had made (`unmarked`).

    `sequence` and `attempt` are those of the main commit that decided it; a side table that
    has followed to this sequence has done it already. `fate` is what became of the rows.
    """

    table: str
    sequence: int
    attempt: str
    files: tuple[str, ...]
    rows: int
    fate: str = "quarantined"
    without: Ranges = field(default_factory=dict)
    marks: tuple[Mark, ...] = ()
    unmarked: tuple[int, ...] = ()

    @property
    def revises(self) -> bool:
        """Whether rows that are in the table change, or go."""
        return bool(self.without or self.marks or self.unmarked)

    def to_json(self) -> Json:
        rare = {
            "without": spans_to_json(self.without),
            "marks": marks_to_json(self.marks),
            "unmarked": list(self.unmarked),
        }
        every = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in rare}
        return {**every, **{name: value for name, value in rare.items() if value}}

    @classmethod
    def from_json(cls, data: Json) -> Pending:
        read = {
            "files": tuple(data["files"]),
            "without": spans_from_json(data.get("without", {})),
            "marks": marks_from_json(data.get("marks", {})),
            "unmarked": tuple(data.get("unmarked", ())),
        }
        return cls(**{**data, **read})


@dataclass(frozen=True, slots=True)
class Accepted:
    """Offsets without which a person let the pipeline go on: kept for ever, unlike its stamp."""

    kind: str
    sequence: int
    ranges: Ranges

    def to_json(self) -> Json:
        ranges = spans_to_json(self.ranges)
        return {"kind": self.kind, "sequence": self.sequence, "ranges": ranges}

    @classmethod
    def from_json(cls, data: Json) -> Accepted:
        return cls(data["kind"], int(data["sequence"]), spans_from_json(data["ranges"]))


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
    accepted: tuple[Accepted, ...] = ()

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
        lost = [Accepted(stamp.kind, stamp.sequence, stamp.ranges)] if stamp.kind in LOSSES else []
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
            accepted=(*self.accepted, *lost),
        )

    def without(self, lost: Sequence[Stamp]) -> Progress:
        """As it was before these, the newest of its stamps: all but generation, sequence and what
        identifies the last commit. The watermark is the caller's to know."""
        positions = dict(self.positions)
        for stamp in lost:
            for tp, span in stamp.ranges.items():
                positions[tp] = Span(positions[tp].start, min(positions[tp].end, span.start))
        oldest = min((stamp.sequence for stamp in lost), default=self.sequence + 1)
        return replace(
            self,
            positions=positions,
            totals=self.totals - sum((stamp.counts for stamp in lost), Counts()),
            batches=self.batches - sum(stamp.kind == "batch" for stamp in lost),
            pending=tuple(each for each in self.pending if each.sequence < oldest),
            accepted=tuple(each for each in self.accepted if each.sequence < oldest),
        )

    def beginning(self, positions: Ranges) -> Progress:
        """With partitions that are due from here on, and nothing of them before that."""
        return replace(self, positions={**self.positions, **positions})

    def to_text(self) -> str:
        rare = {"accepted": [each.to_json() for each in self.accepted]} if self.accepted else {}
        return compact(
            {
                **rare,
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
            accepted=tuple(Accepted.from_json(each) for each in data.get("accepted", ())),
        )
