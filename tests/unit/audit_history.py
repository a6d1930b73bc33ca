"""A pipeline's history, acted out in memory and turned into the evidence an audit would gather."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from oncelake.model import (
    SIDE_FATES,
    Counts,
    Origin,
    Pending,
    Progress,
    Ranges,
    Span,
    Stamp,
    TopicPartition,
    compact,
    non_empty,
)
from oncelake.ops.audit.evidence import (
    NO_END,
    Evidence,
    Foreign,
    RowFacts,
    Side,
    Slice,
    Suspect,
    Tally,
    TopicFacts,
)
from oncelake.ops.audit.judge import judge
from oncelake.ops.audit.report import Verdict
from tests.unit.audit_table import Coordinate, Table

TOPIC, PIPELINE = "articles.raw.v1", "articles"
ORIGIN = Origin("cluster-1", {TOPIC: "topic-1"})
SIDES = {
    "quarantined": "demo.news.t_quarantine",
    "late": "demo.news.t_late",
    "deleted": "demo.news.t_tombstones",
}
KEPT = {"bad": "quarantined", "late": "late", "deleted": "deleted"}
NOT_WRITTEN = (*KEPT, "dropped", "filtered")
"""A batch's words for records that are not written; those kept in a side table, by their fate."""


def partition(number: int) -> TopicPartition:
    return TopicPartition(TOPIC, number)


P0, P1 = partition(0), partition(1)


class Scene:
    """One pipeline on main and its side tables, driven by hand; `fates`: whose the audit knows."""

    def __init__(self, starts: Mapping[int, int] | None = None,
                 fates: Sequence[str] = SIDE_FATES) -> None:  # fmt: skip
        self.main, self.fates = Table("demo.news.t"), tuple(fates)
        self.sides = {fate: Table(name) for fate, name in SIDES.items()}
        self.quarantine, self.late = self.sides["quarantined"], self.sides["late"]
        self.tombstones = self.sides["deleted"]
        positions = {partition(p): Span(s, s) for p, s in (starts or {0: 0, 1: 0}).items()}
        self.progress = Progress(PIPELINE, ORIGIN, positions=positions)
        self.followed: dict[str, str] = {}
        self.away: dict[str, set[Coordinate]] = {}
        self.claim()

    def claim(self) -> None:
        stamp = self.stamp("claim", self.progress.generation + 1, {}, Counts())
        self.main.append(stamp, ())
        self.progress = self.progress.after(stamp, self.progress.pending)

    def batch(self, lengths: Mapping[int, int], follow: bool = True,
              replaces: Collection[Coordinate] = (), removes: Collection[Coordinate] = (),
              watermark: int | None = None, **words: Iterable[Coordinate]) -> None:  # fmt: skip
        """The next `lengths` offsets of each partition; `words` says which are not to be written.

        As an upsert, they replace rows that were there, and tombstones remove some.
        """
        self.follow()
        at = {partition(p): self.progress.next_offset(partition(p)) for p in lengths}
        ranges = non_empty({tp: Span(s, s + lengths[tp.partition]) for tp, s in at.items()})
        read = {(tp, o) for tp, span in ranges.items() for o in range(span.start, span.end)}
        apart = _apart(read, words)
        good = read.difference(*apart.values())
        counts = replace(
            _counts(apart),
            read=len(read),
            written=len(good),
            updated=len(replaces),
            removed=len(removes),
            inserted=len(good) - len(replaces) if replaces or removes else 0,
        )
        stamp = self.stamp("batch", self.progress.generation, ranges, counts)
        stamp = replace(stamp, watermark=watermark)
        if replaces or removes:
            self.main.lose(*replaces, *removes)
            self.main.commit("append", {})
        self.main.append(stamp, good)
        self.away = {fate: apart[word] for word, fate in KEPT.items() if apart[word]}
        pending = [
            Pending(SIDES[fate], stamp.sequence, stamp.attempt, (), len(rows), fate)
            for fate, rows in self.away.items()
        ]
        self.progress = self.progress.after(stamp, pending)
        if follow:
            self.follow()

    def follow(self, fates: Sequence[str] = SIDE_FATES) -> None:
        for pending in self.progress.pending:
            fate, done = pending.fate, self.followed.get(pending.fate)
            if fate in fates and (done is None or pending.sequence > _sequence(done)):
                counts = Counts.from_json({"read": pending.rows, fate: pending.rows})
                stamp = replace(
                    self.stamp("follow", self.progress.generation, {}, counts),
                    sequence=pending.sequence,
                    attempt=pending.attempt,
                    previous="",
                )
                self.sides[fate].append(stamp, self.away[fate])
                mark = compact({"sequence": pending.sequence, "attempt": pending.attempt})
                self.followed[fate] = mark

    def stamp(self, kind: str, generation: int, ranges: Ranges, counts: Counts) -> Stamp:
        sequence = self.progress.sequence + 1
        return Stamp(kind, PIPELINE, generation, sequence, f"attempt-{sequence}", ORIGIN, ranges,
                     counts, self.progress.digest)  # fmt: skip

    def topic(self, lag: int = 0) -> TopicFacts:
        offsets = {tp: Span(s.start, s.end + lag) for tp, s in self.progress.positions.items()}
        return TopicFacts(ORIGIN.cluster_id, ORIGIN.topic_ids, offsets)

    def evidence(self) -> Evidence:
        return Evidence(
            pipeline=PIPELINE,
            main=self.main.history(),
            sides=tuple(
                Side(fate, self.sides[fate].history(), self.followed.get(fate))
                for fate in self.fates
            ),
            progress_text=self.progress.to_text(),
            rows=self._rows(),
            topic=self.topic(),
        )

    def _rows(self) -> RowFacts:
        every = [(tp, offset, *self._found((tp, offset))) for tp, offset in self._coordinates()]
        found = (Suspect(*each) for each in every)
        return RowFacts(
            slices=tuple(self._slices()),
            foreign=Foreign(without=self.main.foreign),
            foreign_sides={f: Foreign(without=self.sides[f].foreign) for f in self.fates},
            suspects=tuple(s for s in found if s.shared or max(s.main, *s.sides.values(), 0) > 1),
        )

    def _coordinates(self) -> list[Coordinate]:
        tables = (self.main, *(self.sides[fate] for fate in self.fates))
        return sorted({each for table in tables for each in table.rows})

    def _found(self, at: Coordinate) -> tuple[int, dict[str, int]]:
        return self.main.rows[at], {fate: self.sides[fate].rows[at] for fate in self.fates}

    def _slices(self) -> Iterable[Slice]:
        """Cut at every boundary anyone ever named, independently of how the audit cuts."""
        marks: dict[TopicPartition, set[int]] = {}
        stamps = [s.stamp_text for s in self.main.snapshots]
        ranges = [Stamp.from_text(text).ranges for text in stamps if text]
        for spans in (*ranges, self.progress.positions):
            for tp, span in spans.items():
                marks.setdefault(tp, {0, NO_END}).update(span)
        for tp, found in marks.items():
            edges = sorted(found)
            for start, end in pairwise(edges):
                yield self._slice(tp, Span(start, end))

    def _slice(self, tp: TopicPartition, span: Span) -> Slice:
        inside = [
            self._found(each)
            for each in self._coordinates()
            if each[0] == tp and span.start <= each[1] < span.end
        ]
        return Slice(
            tp=tp,
            span=span,
            main=_tally(main for main, _ in inside),
            sides={fate: _tally(sides[fate] for _, sides in inside) for fate in self.fates},
            both=sum((main > 0) + sum(n > 0 for n in sides.values()) > 1 for main, sides in inside),
        )


def _apart(read: set[Coordinate], words: Mapping[str, Iterable[Coordinate]]
           ) -> dict[str, set[Coordinate]]:  # fmt: skip
    """What is not written, by the word for it; a record that is in two of them is in the first."""
    assert words.keys() <= set(NOT_WRITTEN)
    apart: dict[str, set[Coordinate]] = {}
    for word in NOT_WRITTEN:
        apart[word] = (read & set(words.get(word, ()))).difference(*apart.values())
    return apart


def _counts(apart: Mapping[str, set[Coordinate]]) -> Counts:
    return Counts(
        quarantined=len(apart["bad"]),
        late=len(apart["late"]) + len(apart["dropped"]),
        dropped=len(apart["dropped"]),
        deleted=len(apart["deleted"]),
        filtered=len(apart["filtered"]),
    )


def _tally(found: Iterable[int]) -> Tally:
    rows = list(found)
    return Tally(sum(n > 0 for n in rows), sum(rows))


def _sequence(followed: str) -> int:
    return int(json.loads(followed)["sequence"])


def scene(fates: Sequence[str] = SIDE_FATES) -> Scene:
    """Two claims and four batches; offsets 12 and 31 of partition 0 are bad."""
    made = Scene(fates=fates)
    made.batch({0: 10, 1: 10})
    made.batch({0: 10, 1: 5}, bad=[(P0, 12)])
    made.claim()
    made.batch({0: 10})
    made.batch({0: 10, 1: 10}, bad=[(P0, 31)])
    return made


def kinds(evidence: Evidence, severity: Verdict = Verdict.VIOLATED) -> set[str]:
    return {f.kind for f in judge(evidence).findings if f.severity is severity}
