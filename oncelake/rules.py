"""Rules for decoded rows: what one must have to be taken, which is newest, which comes too late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from oncelake import planner
from oncelake.decode import REASON, RECORD, TextCheck

LATE, WATERMARK, TOMBSTONE = "late", "watermark", "tombstone"
MICROS = 1_000_000
EARLIEST = -(2**63)
"""The first time that Spark knows."""


@dataclass(frozen=True, slots=True)
class Versions:
    """Rows of one `key` are versions of one thing; the greatest by `order` is its newest.

    Where `order` says nothing, Kafka's coordinates do: of two versions with equal order the one of
    the greater partition, then of the greater offset. So any two rows compare, always alike. Nulls
    are less than anything.
    """

    key: tuple[str, ...]
    order: tuple[str, ...]

    def rank(self, of: Sequence[Column], partition: Column, offset: Column,
             told: Mapping[str, Column] = MappingProxyType({})) -> Column:  # fmt: skip
        """What rows are compared by; `of` are their order columns.

        Besides what is `told` of the row. It comes last, where no comparison gets to: no two rows
        have the same coordinates.
        """
        ordered = (column.alias(f"o{number}") for number, column in enumerate(of))
        others = (column.alias(name) for name, column in told.items())
        return F.struct(*ordered, partition.alias("partition"), offset.alias("offset"), *others)


@dataclass(frozen=True, slots=True)
class Rule:
    """What must hold of a record for its row to be taken, and what is said otherwise."""

    holds: Column
    otherwise: str


@dataclass(frozen=True, slots=True)
class EventTime:
    """An event's own time; `delay` and `skew` in microseconds.

    The watermark is `delay` behind the newest row that was written, and never goes back. It is
    kept in the table's progress, so a batch that comes again is judged by it again: no wall clock
    and no zone plays a part. A time more than `skew` ahead of the record's own time in Kafka is
    not believed: one record of the year 9999 would make all others late.
    """

    column: str
    delay: int
    skew: int

    def following(self, watermark: int | None, newest: int | None) -> int | None:
        """The watermark of the next batch, once rows as new as `newest` were written."""
        marks = (watermark, None if newest is None else max(newest - self.delay, EARLIEST))
        return max((mark for mark in marks if mark is not None), default=None)


def key_is_there(key: Sequence[str]) -> list[Rule]:
    """A row without its key is no version of anything."""
    return [Rule(_field(name).isNotNull(), f"key {name} is null") for name in key]


def time_can_be(event: EventTime) -> list[Rule]:
    """A row's time must be there, and not be far ahead of its record's."""
    time = _field(event.column)
    latest = F.timestamp_micros(F.unix_micros("timestamp") + event.skew)
    ahead = f"{event.column} is more than {event.skew / MICROS:g} s ahead of its time in Kafka"
    return [
        Rule(time.isNotNull(), f"{event.column} is null"),
        Rule(F.coalesce(time <= latest, F.lit(True)), ahead),
    ]


def require(rows: DataFrame, every: Sequence[Rule]) -> DataFrame:
    """Where there is a record and nothing is wrong with it yet, the first broken rule is."""
    broken = [
        F.when(F.col(RECORD).isNotNull() & ~rule.holds, F.lit(rule.otherwise)) for rule in every
    ]
    return rows.withColumn(REASON, F.coalesce(F.col(REASON), *broken)) if broken else rows


def mark_late(rows: DataFrame, event: EventTime, watermark: int | None) -> DataFrame:
    """Say of each row whether it is behind the watermark; of bad rows it is not asked."""
    at = F.lit(None).cast("timestamp")
    if watermark is not None:
        at = F.timestamp_micros(F.lit(watermark))
    rows = rows.withColumn(WATERMARK, planner.passed(at, "timestamp"))
    behind = F.isnull(REASON) & (_field(event.column) < F.col(WATERMARK))
    return rows.withColumn(LATE, F.coalesce(behind, F.lit(False)))


def admit_tombstones(rows: DataFrame, is_utf8: TextCheck) -> DataFrame:
    """A record without a value deletes what has its key, and is no bad row. Unless that is no
    text: then it is one for its key, since having no value is what it is for."""
    key = F.col("key").cast("string")
    is_one = F.col("value").isNull() & F.coalesce(is_utf8(key), F.lit(False))
    rows = rows.withColumn(TOMBSTONE, is_one)
    reason = (
        F.when(F.col(TOMBSTONE), F.lit(None).cast("string"))
        .when(F.col("value").isNotNull(), F.col(REASON))
        .when(key.isNull(), F.lit("a tombstone whose key is null"))
    )
    return rows.withColumn(REASON, reason.otherwise("a tombstone whose key is not valid UTF-8"))


def _field(name: str) -> Column:
    return F.col(RECORD)[name]
