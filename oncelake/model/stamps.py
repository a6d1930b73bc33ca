"""What the summary of each snapshot of ours says: the stamp, and whose offsets it speaks of."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from oncelake.model.counts import Counts
from oncelake.model.epochs import Epochs
from oncelake.model.offsets import Json, Ranges, spans_from_json, spans_to_json

STAMP_KEY = "oncelake.stamp"
FORMAT = 1
LOSSES = ("gap", "rollback")
"""Kinds of stamps by which a person accepts that their ranges are lost to the table."""
REWINDS = ("rewind", "rollback")
"""Kinds of stamps after a rollback: the sequences that main has lost are missing before them."""
CLAIMS = ("claim", "gap", "rebase", "rewind", "rollback")
"""Kinds of stamps that raise the generation: a run's, and those of what a person decides."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Which Kafka the offsets belong to: names alone do not survive a recreated topic."""

    cluster_id: str
    topic_ids: Mapping[str, str] = field(default_factory=dict)

    @property
    def epochs(self) -> Epochs:
        return Epochs.of(self.topic_ids)

    def known_as(self, epochs: Epochs) -> Origin:
        """Kafka's word under the names of a ledger; a ledger's own word has them already."""
        if self.epochs.names:
            return self
        ids = {epochs.ledger_name(topic): number for topic, number in self.topic_ids.items()}
        return Origin(self.cluster_id, ids)

    def joined_by(self, live: Origin) -> Origin:
        """All topics there have been, and the cluster they are in now."""
        return Origin(live.cluster_id, {**self.topic_ids, **live.topic_ids})

    def to_json(self) -> Json:
        return {"cluster": self.cluster_id, "topics": dict(sorted(self.topic_ids.items()))}

    @classmethod
    def from_json(cls, data: Json) -> Origin:
        return cls(cluster_id=data["cluster"], topic_ids=dict(data["topics"]))


@dataclass(frozen=True, slots=True)
class Stamp:
    """What one snapshot of ours did. `kind` is one of CLAIMS, batch, replay (of rows in quarantine)
    or, of a side table, follow (rows came) or revise (rows went, or were marked). The ranges of
    LOSSES are those that a person has accepted to be without.

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


def compact(value: Json) -> str:
    """One spelling for one value, so that digests and comparisons are exact."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
