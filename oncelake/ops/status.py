"""Where a pipeline stands: what the table says, beside what the topic holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession

from oncelake import ledger
from oncelake.follow import followed_to
from oncelake.lake import LakeTable
from oncelake.model import Progress, Ranges, Span, TopicPartition
from oncelake.spec import PipelineSpec

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    partition: TopicPartition
    done: Span
    topic: Span

    @property
    def lag(self) -> int:
        return max(0, self.topic.end - self.done.end)


@dataclass(frozen=True, slots=True)
class Status:
    """`progress` is None for a table that no run has claimed yet."""

    table: str
    progress: Progress | None
    partitions: tuple[PartitionStatus, ...]
    pending: int = 0

    @property
    def lag(self) -> int:
        return sum(p.lag for p in self.partitions)

    @property
    def watermark(self) -> str | None:
        """Rows of an earlier time are late now; None where there is no watermark yet."""
        micros = self.progress.watermark if self.progress else None
        if micros is None:
            return None
        try:
            return f"{EPOCH + timedelta(microseconds=micros):%Y-%m-%d %H:%M:%S} UTC"
        except OverflowError:  # a time that Spark can hold, and Python cannot
            return f"{micros} microseconds from 1970"

    def to_json(self) -> Mapping[str, Any]:
        progress = self.progress
        return {
            "table": self.table,
            "pipeline": progress and progress.pipeline,
            "generation": progress and progress.generation,
            "sequence": progress and progress.sequence,
            "batches": progress and progress.batches,
            "totals": progress and {**progress.totals.to_json(), **progress.totals.of_the_table()},
            "duplicate_rate": progress and round(progress.totals.duplicate_rate, 6),
            "watermark": self.watermark,
            "pending": progress and self.pending,
            "lag": self.lag,
            "partitions": [
                {
                    "topic": p.partition.topic,
                    "partition": p.partition.partition,
                    "first": p.done.start,
                    "next": p.done.end,
                    "topic_low": p.topic.start,
                    "topic_high": p.topic.end,
                    "lag": p.lag,
                }
                for p in self.partitions
            ],
        }


def status(spark: SparkSession, spec: PipelineSpec, live: Ranges) -> Status:
    """What the table says, beside the offsets the topic holds; changes nothing."""
    progress = ledger.look(LakeTable(spark, spec.table.name), spec.name).progress
    waiting = _pending(spark, progress) if progress else 0
    return Status(spec.table.name, progress, _partitions(progress, live), waiting)


def _pending(spark: SparkSession, progress: Progress) -> int:
    """The rows that main has decided and side tables do not show yet: progress names them until
    the next commit, also where they have been published since."""
    tables = {each.table for each in progress.pending}
    come = {name: followed_to(spark, name, progress.pipeline) for name in tables}
    return sum(each.rows for each in progress.pending if each.sequence > come[each.table])


def _partitions(progress: Progress | None, live: Ranges) -> tuple[PartitionStatus, ...]:
    done: Ranges = progress.positions if progress else {}
    live = progress.origin.epochs.in_ledger(live) if progress else live
    return tuple(
        PartitionStatus(tp, done.get(tp, Span(0, 0)), live.get(tp, Span(0, 0)))
        for tp in sorted({*done, *live})
    )
