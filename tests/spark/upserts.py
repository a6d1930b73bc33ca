"""Upserts without Kafka: batches made by hand go through the sink and the real protocol."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from oncelake import lake
from oncelake.commit import Committer, OnStep, Outcome, Staging
from oncelake.lake import LakeTable
from oncelake.ledger import Placement
from oncelake.model import Origin, Ranges, Span, TopicPartition
from oncelake.planner import local_rows
from oncelake.rules import Versions
from oncelake.sinks.intake import Aside, Due, Shape
from oncelake.sinks.upsert import UpsertSink

PARTITIONS = 2
COLUMNS = "id string, version int, kafka_partition int, kafka_offset bigint"
ORIGIN = Origin("cluster", {"t": "topic"})
_numbers = itertools.count(1)


class Event(NamedTuple):
    """A record of the topic: `id` None is bad; `version` None is older than any."""

    partition: int
    id: str | None
    version: int | None


class Row(NamedTuple):
    id: str
    version: int | None
    partition: int | None
    offset: int | None


class Upserts:
    """A topic that is a list of events, a table, and a pipeline between them."""

    def __init__(self, spark: SparkSession, on_step: OnStep = lambda when, step: None) -> None:
        self.spark = spark
        self.name = f"demo.upserts.t{next(_numbers)}"
        for name in (self.name, f"{self.name}_bad"):
            lake.create_table(spark, name, COLUMNS, (), {"format-version": "3"})
        self.topic: list[list[Event]] = [[] for _ in range(PARTITIONS)]
        self.on_step = on_step
        self.restart()

    def restart(self) -> None:
        """As a new run of the pipeline."""
        main, bad = (LakeTable(self.spark, name) for name in (self.name, f"{self.name}_bad"))
        given = (
            F.col("record")["id"],
            F.col("record")["version"],
            F.col("partition"),
            F.col("offset"),
        )
        names = (column.split()[0] for column in COLUMNS.split(", "))
        columns = tuple(each.alias(name) for each, name in zip(given, names, strict=True))
        shape = Shape(columns, (Aside("quarantined", F.isnotnull("reason"), columns, bad),))
        self.sink = UpsertSink(shape, Versions(("id",), ("version",)), main)
        self.committer = Committer("p", main, {"quarantined": bad}, self.on_step)
        starts = {TopicPartition("t", number): 0 for number in range(PARTITIONS)}
        self.committer.claim(ORIGIN, starts)
        self.committer.finish()

    def send(self, events: Iterable[Event]) -> None:
        for event in events:
            self.topic[event.partition].append(event)

    def write(self, ends: Sequence[int], starts: Sequence[int] = (0,) * PARTITIONS) -> Outcome:
        """One batch from `starts` to `ends`; what the table has of it already is left out."""
        spans = enumerate(zip(starts, ends, strict=True))
        ranges = {TopicPartition("t", number): Span(*span) for number, span in spans}
        return self.committer.commit(ranges, self._stage)

    def write_all(self) -> Outcome:
        return self.write([len(events) for events in self.topic])

    def _stage(self, placement: Placement) -> Staging:
        return self.sink.stage(Due(self._rows(placement.todo)), placement)

    def _rows(self, ranges: Ranges) -> DataFrame:
        rows = [
            (tp.partition, offset, *self.topic[tp.partition][offset][1:])
            for tp, span in ranges.items()
            for offset in range(span.start, span.end)
        ]
        given = local_rows(self.spark, rows, "partition int, offset bigint, id string, version int")
        reason = F.when(F.isnull("id"), F.lit("key id is null"))
        return given.select(
            "partition", "offset", F.struct("id", "version").alias("record"), reason.alias("reason")
        )

    def table(self) -> list[Row]:
        rows = self.spark.table(self.name).select(*(c.split()[0] for c in COLUMNS.split(", ")))
        return sorted((Row(*row) for row in rows.collect()), key=_place)

    def bad(self) -> int:
        return self.spark.table(f"{self.name}_bad").count()

    def expected(self) -> list[Row]:
        """What the table must hold: a dictionary, and the order of versions."""
        newest: dict[str, Row] = {}
        for number, events in enumerate(self.topic):
            for offset, event in enumerate(events):
                if event.id is not None:
                    row = Row(event.id, event.version, number, offset)
                    newest[event.id] = max(newest.get(event.id, row), row, key=_rank)
        return sorted(newest.values(), key=_place)


def _place(row: Row) -> tuple[int, int]:
    """Rows that somebody else wrote have none: they come first."""
    if row.partition is None or row.offset is None:
        return -1, -1
    return row.partition, row.offset


def _rank(row: Row) -> tuple[int, int, int]:
    return (-1 if row.version is None else row.version, *_place(row))
