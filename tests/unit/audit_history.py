"""A pipeline's history, acted out in memory and turned into the evidence an audit would gather."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from oncelake.model import (
    STAMP_KEY,
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
    History,
    RowFacts,
    Slice,
    Snapshot,
    Suspect,
    Tally,
    TopicFacts,
)
from oncelake.ops.audit.judge import judge
from oncelake.ops.audit.report import Verdict

TOPIC, PIPELINE = "articles.raw.v1", "articles"
ORIGIN = Origin("cluster-1", {TOPIC: "topic-1"})
BEGAN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

Coordinate = tuple[TopicPartition, int]


def partition(number: int) -> TopicPartition:
    return TopicPartition(TOPIC, number)


P0, P1 = partition(0), partition(1)


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


class Scene:
    """One pipeline on main and quarantine, driven by hand."""

    def __init__(self, starts: Mapping[int, int] | None = None) -> None:
        self.main, self.quarantine = Table("demo.news.t"), Table("demo.news.t_quarantine")
        positions = {partition(p): Span(s, s) for p, s in (starts or {0: 0, 1: 0}).items()}
        self.progress = Progress(PIPELINE, ORIGIN, positions=positions)
        self.followed: str | None = None
        self.claim()

    def claim(self) -> None:
        stamp = self._stamp("claim", self.progress.generation + 1, {}, Counts())
        self.main.append(stamp, ())
        self.progress = self.progress.after(stamp, self.progress.pending)

    def batch(self, lengths: Mapping[int, int], bad: Iterable[Coordinate] = (),
              filtered: Iterable[Coordinate] = (), follow: bool = True,
              replaces: Sequence[Coordinate] = ()) -> None:  # fmt: skip
        """The next `lengths` offsets of each partition, some of them bad or filtered.

        As an upsert, they replace rows that were there.
        """
        self.follow()
        at = {partition(p): self.progress.next_offset(partition(p)) for p in lengths}
        ranges = non_empty({tp: Span(s, s + lengths[tp.partition]) for tp, s in at.items()})
        read = {(tp, o) for tp, span in ranges.items() for o in range(span.start, span.end)}
        away, dropped = read & set(bad), read & set(filtered) - set(bad)
        counts = Counts(
            read=len(read),
            written=len(read - away - dropped),
            quarantined=len(away),
            filtered=len(dropped),
            updated=len(replaces),
            inserted=len(read - away - dropped) - len(replaces) if replaces else 0,
        )
        stamp = self._stamp("batch", self.progress.generation, ranges, counts)
        if replaces:
            self.main.lose(*replaces)
            self.main.commit("append", {})
        self.main.append(stamp, read - away - dropped)
        pending = [Pending(self.quarantine.name, stamp.sequence, stamp.attempt, (), len(away))]
        self.progress = self.progress.after(stamp, pending if away else ())
        self._away = away
        if follow:
            self.follow()

    def follow(self) -> None:
        done = 0 if self.followed is None else _sequence(self.followed)
        for pending in self.progress.pending:
            if pending.sequence > done:
                counts = Counts(read=pending.rows, quarantined=pending.rows)
                stamp = replace(
                    self._stamp("follow", self.progress.generation, {}, counts),
                    sequence=pending.sequence,
                    attempt=pending.attempt,
                    previous="",
                )
                self.quarantine.append(stamp, self._away)
                self.followed = compact({"sequence": pending.sequence, "attempt": pending.attempt})

    def _stamp(self, kind: str, generation: int, ranges: Ranges, counts: Counts) -> Stamp:
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
            quarantine=self.quarantine.history(),
            progress_text=self.progress.to_text(),
            followed_text=self.followed,
            rows=self._rows(),
            topic=self.topic(),
        )

    def _rows(self) -> RowFacts:
        main, quarantine = self.main.rows, self.quarantine.rows
        suspects = [
            Suspect(tp, offset, main[tp, offset], quarantine[tp, offset])
            for tp, offset in sorted(main.keys() | quarantine.keys())
            if main[tp, offset] > 1 or quarantine[tp, offset] > 1
            or (main[tp, offset] and quarantine[tp, offset])
        ]  # fmt: skip
        return RowFacts(
            slices=tuple(self._slices()),
            foreign=Foreign(without=self.main.foreign),
            foreign_quarantine=Foreign(without=self.quarantine.foreign),
            suspects=tuple(suspects),
        )

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
            (self.main.rows[c], self.quarantine.rows[c])
            for c in self.main.rows.keys() | self.quarantine.rows.keys()
            if c[0] == tp and span.start <= c[1] < span.end
        ]
        return Slice(
            tp=tp,
            span=span,
            main=Tally(sum(m > 0 for m, _ in inside), sum(m for m, _ in inside)),
            quarantine=Tally(sum(q > 0 for _, q in inside), sum(q for _, q in inside)),
            both=sum(m > 0 and q > 0 for m, q in inside),
        )


def _sequence(followed: str) -> int:
    return int(json.loads(followed)["sequence"])


def scene() -> Scene:
    """Two claims and four batches; offsets 12 and 31 of partition 0 are bad."""
    made = Scene()
    made.batch({0: 10, 1: 10})
    made.batch({0: 10, 1: 5}, bad=[(P0, 12)])
    made.claim()
    made.batch({0: 10})
    made.batch({0: 10, 1: 10}, bad=[(P0, 31)])
    return made


def kinds(evidence: Evidence, severity: Verdict = Verdict.VIOLATED) -> set[str]:
    return {f.kind for f in judge(evidence).findings if f.severity is severity}


def restamp(evidence: Evidence, index: int, change: Callable[[Stamp], Stamp]) -> Evidence:
    """Change a stamp, digest and all, as someone who knows the format would."""
    snapshot = evidence.main.ancestors[index]
    assert snapshot.stamp_text is not None
    return resummarise(evidence, index, change(Stamp.from_text(snapshot.stamp_text)).to_text())


def resummarise(evidence: Evidence, index: int, text: str | None) -> Evidence:
    ancestors = list(evidence.main.ancestors)
    summary = {k: v for k, v in ancestors[index].summary.items() if k != STAMP_KEY}
    if text is not None:
        summary[STAMP_KEY] = text
    ancestors[index] = replace(ancestors[index], summary=summary)
    return replace(evidence, main=replace(evidence.main, ancestors=tuple(ancestors)))


def with_progress(evidence: Evidence, change: Callable[[Progress], Progress]) -> Evidence:
    assert evidence.progress_text is not None
    changed = change(Progress.from_text(evidence.progress_text))
    return replace(evidence, progress_text=changed.to_text())
