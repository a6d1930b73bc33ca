"""What an audit says: a verdict, the partitions, the totals, and every finding by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from oncelake.model import SIDE_FATES, Counts, Span, TopicPartition


class Verdict(StrEnum):
    """clean: the table is what its stamps say. explained: it is not, by acts of others that its
    history names. violated: rows are lost, doubled or unaccounted for, or the ledger is broken."""

    CLEAN = "clean"
    EXPLAINED = "explained"
    VIOLATED = "violated"

    @property
    def exit_code(self) -> int:
        return {Verdict.CLEAN: 0, Verdict.EXPLAINED: 3, Verdict.VIOLATED: 4}[self]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as the stamps say; `severity` is explained or violated."""

    kind: str
    severity: Verdict
    where: str
    message: str


def explained(kind: str, where: object, message: str) -> Finding:
    return Finding(kind, Verdict.EXPLAINED, str(where), message)


def violated(kind: str, where: object, message: str) -> Finding:
    return Finding(kind, Verdict.VIOLATED, str(where), message)


@dataclass(frozen=True, slots=True)
class PartitionReport:
    """One partition: the offsets dealt with, what the topic holds, and what became of them.

    `sides` are the rows found in side tables, by fate.
    """

    tp: TopicPartition
    covered: Span
    topic: Span | None
    gaps: tuple[Span, ...]
    overlaps: tuple[Span, ...]
    rows: int
    sides: Mapping[str, int]

    @property
    def lag(self) -> int | None:
        """Offsets of the topic that are yet to be read; None where Kafka was not asked."""
        if self.topic is None:
            return None
        return max(0, self.topic.end - max(self.covered.end, self.topic.start))

    def to_json(self) -> dict[str, Any]:
        return {
            "topic": self.tp.topic,
            "partition": self.tp.partition,
            "covered": list(self.covered),
            "topic_low": self.topic.start if self.topic else None,
            "topic_high": self.topic.end if self.topic else None,
            "lag": self.lag,
            "gaps": [list(gap) for gap in self.gaps],
            "overlaps": [list(overlap) for overlap in self.overlaps],
            "rows": self.rows,
            **_by_fate(self.sides),
        }


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome. `rows` of main and those of `sides`, by fate, were counted in the tables,
    `totals` are what the pipeline says of itself; `stamps` are those of this pipeline that main
    still has."""

    table: str
    pipeline: str
    snapshot_id: int | None
    partitions: tuple[PartitionReport, ...]
    totals: Counts
    findings: tuple[Finding, ...] = ()
    batches: int = 0
    stamps: int = 0
    rows: int = 0
    sides: Mapping[str, int] = field(default_factory=dict)
    pending: int = 0
    foreign: int = 0
    topic_compared: bool = field(default=False)

    @property
    def verdict(self) -> Verdict:
        severities = {finding.severity for finding in self.findings}
        for severity in (Verdict.VIOLATED, Verdict.EXPLAINED):
            if severity in severities:
                return severity
        return Verdict.CLEAN

    @property
    def gaps(self) -> int:
        return sum(len(partition.gaps) for partition in self.partitions)

    @property
    def overlaps(self) -> int:
        return sum(len(partition.overlaps) for partition in self.partitions)

    @property
    def headline(self) -> str:
        shown = [f"{v} {k}" for k, v in self.totals.fates().items() if v or k == "written"]
        read = [f"{self.totals.read} read"]
        if self.totals.replayed:
            read.append(f"{self.totals.replayed} replayed")
        return (
            f"audit: {self.verdict} — {' + '.join(read)} = {' + '.join(shown)}; "
            f"{len(self.partitions)} partitions, gaps {self.gaps}, overlaps {self.overlaps}"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "table": self.table,
            "pipeline": self.pipeline,
            "snapshot": self.snapshot_id,
            "verdict": self.verdict.value,
            "totals": self.totals.to_json(),
            "batches": self.batches,
            "stamps": self.stamps,
            "rows": self.rows,
            **_by_fate(self.sides),
            "pending": self.pending,
            "foreign": self.foreign,
            "gaps": self.gaps,
            "overlaps": self.overlaps,
            "topic_compared": self.topic_compared,
            "partitions": [partition.to_json() for partition in self.partitions],
            "findings": [asdict(finding) for finding in self.findings],
        }


def _by_fate(sides: Mapping[str, int]) -> dict[str, int]:
    """Every fate, so that who reads it need not know which tables there are."""
    return {fate: sides.get(fate, 0) for fate in SIDE_FATES}
