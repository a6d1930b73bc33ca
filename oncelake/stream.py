"""A stream of a program's own into a table, exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from oncelake import lake, layout, owner, pipeline, rules, source
from oncelake.batch import Stage
from oncelake.checkpoint import prepare
from oncelake.commit import Committer, Staging
from oncelake.decode import REASON, RECORD
from oncelake.errors import CheckpointUnusable, TerminalError
from oncelake.lake import LakeTable
from oncelake.ledger import Placement
from oncelake.model import Progress, Ranges, show_ranges
from oncelake.origin import OriginWatch
from oncelake.query import RunningQuery
from oncelake.rules import Versions
from oncelake.sinks.append import AppendSink
from oncelake.sinks.intake import Aside, Due, Shape
from oncelake.sinks.upsert import UpsertSink

# Kafka's own names first, then the ones our tables use.
COORDINATES = (("topic", "partition", "offset"), ("kafka_topic", "kafka_partition", "kafka_offset"))


@dataclass(frozen=True, slots=True)
class Kafka:
    """Where a stream's coordinates come from. `options` are librdkafka settings for admin calls."""

    bootstrap: str
    topics: Sequence[str]
    options: Mapping[str, str] | None = None

    @property
    def config(self) -> dict[str, str]:
        return {"bootstrap.servers": self.bootstrap, **(self.options or {})}

    def describe(self) -> source.Topics:
        return source.describe(self.config, self.topics)


def into_table(  # noqa: PLR0913 (most by keyword)
    stream: DataFrame,
    table: str,
    kafka: Kafka,
    running: pipeline.Running,
    *,
    key: str | Sequence[str] = (),
    order: str | Sequence[str] = (),
    pipeline_name: str | None = None,
    partition_by: Sequence[str] = (),
) -> RunningQuery:
    spark = stream.sparkSession
    lake.require_iceberg(spark)
    columns = _Columns.of(stream)
    versions = Versions(names_of(key), names_of(order))
    _require_versions(versions, columns, kafka)
    named = pipeline_name or named_after(table)
    tables = _tables(stream, table, named, columns, partition_by, versions)
    committer = Committer(named, tables.main, tables.sides)
    topics = kafka.describe()
    prepare(running.checkpoint)
    folder = lake.Folder(spark, running.checkpoint)
    owner.require_own(folder, named)
    _require_first_epoch(pipeline.claim(committer, topics, topics.starts("earliest"), running))
    stage = _upserts(columns, versions, tables) if versions.key else _appends(columns, tables)

    def stage_as_logged(batch: DataFrame, placement: Placement) -> Staging:
        _require_as_logged(lake.planned(batch), placement.ranges, running.checkpoint)
        return stage(columns.within(batch, placement.todo), placement)

    owner.own(folder, named)
    watch = OriginWatch(kafka.config, topics.origin)
    return pipeline.launch(stream, committer, stage_as_logged, running, watch)


def named_after(table: str) -> str:
    return table.rsplit(".", 1)[-1]


def quarantine_of(table: str) -> str:
    return f"{table}_quarantine"


def names_of(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _require_versions(versions: Versions, columns: _Columns, kafka: Kafka) -> None:
    if versions.order and not versions.key:
        raise TerminalError("order is for rows of one key: say which columns are the key")
    missing = [n for n in (*versions.key, *versions.order) if n not in columns.names]
    if missing:
        raise TerminalError(
            f"{missing[0]} is no column of the stream, which has {', '.join(columns.names)}"
        )
    if versions.key and REASON in columns.names:
        raise TerminalError(
            f"{REASON} is the column that says why a row is in quarantine: name yours otherwise"
        )
    if versions.key and len(kafka.topics) != 1:
        raise TerminalError(
            "rows of one key are told apart by Kafka's partition and offset, which two topics "
            f"share: give each of {', '.join(kafka.topics)} a table of its own"
        )


def _tables(
    stream: DataFrame, table: str, pipeline_name: str, columns: _Columns,
    partition_by: Sequence[str], versions: Versions,
) -> layout.Tables:  # fmt: skip
    """Those that are missing are made."""
    spark, mode = stream.sparkSession, "upsert" if versions.key else "append"
    properties = {**layout.TABLE_PROPERTIES, **layout.MODE_PROPERTIES[mode]}
    declared = lake.columns_of(stream.select(*columns.stored).schema)
    aside, kept = quarantine_of(table), f"{declared}, {REASON} string"
    if versions.key:
        layout.require_sides(spark, pipeline_name, table, {"quarantined": (aside, kept)})
    lake.create_table(spark, table, declared, partition_by, properties)
    if not versions.key:
        return layout.Tables(LakeTable(spark, table), {})
    lake.create_table(spark, aside, kept, (), properties)
    return layout.Tables(LakeTable(spark, table), {"quarantined": LakeTable(spark, aside)})


def _appends(columns: _Columns, tables: layout.Tables) -> Stage:
    sink = AppendSink(Shape(columns.stored), tables.main)
    # Rows are as their user made them: of an offset none, or many.
    return lambda rows, placement: sink.stage(Due(rows, one_an_offset=False), placement.todo)


def _upserts(columns: _Columns, versions: Versions, tables: layout.Tables) -> Stage:
    record = tuple(F.col(RECORD)[name].alias(name) for name in columns.names)
    keyless = Aside(
        "quarantined", F.isnotnull(REASON), (*record, F.col(REASON)), tables.sides["quarantined"]
    )
    sink = UpsertSink(Shape(record, (keyless,)), versions, tables.main)
    needed = rules.key_is_there(versions.key)

    def stage(rows: DataFrame, placement: Placement) -> Staging:
        read = columns.as_records(rows)
        due = Due(read, lambda rows: rules.require(rows, needed), one_an_offset=False)
        return sink.stage(due, placement)

    return stage


def _require_first_epoch(progress: Progress) -> None:
    """The stream's own columns say which topic a row is from, and know nothing of epochs."""
    if made_anew := progress.origin.epochs.names:
        raise TerminalError(
            f"pipeline {progress.pipeline} was rebased: the ledger knows "
            f"{', '.join(made_anew.values())}, which a stream of your own cannot name. Run it by "
            "a spec, or give the stream a pipeline and table of its own"
        )


def _require_as_logged(planned: Ranges | None, logged: Ranges, checkpoint: str) -> None:
    """What is stamped is the log's ranges: rows of other offsets must not go under that stamp."""
    if planned is not None and planned != logged:
        raise CheckpointUnusable(
            f"the batch reads {show_ranges(planned)}, but Spark's offset log in {checkpoint} says "
            f"{show_ranges(logged)}: another run writes to the same checkpoint. Nothing was "
            "written. Stop it, or give each its own checkpoint, and run again"
        )


@dataclass(frozen=True, slots=True)
class _Columns:
    """A stream's columns: its coordinates under their names there, and all as they are stored."""

    topic: str
    partition: str
    offset: str
    names: tuple[str, ...]
    stored: tuple[Column, ...]

    @classmethod
    def of(cls, stream: DataFrame) -> _Columns:
        for names in COORDINATES:
            if set(names) <= set(stream.columns):
                others = [c for c in stream.columns if c not in names]
                stored = [F.col(f"`{c}`") for c in others]
                stored += [F.col(n).alias(to) for n, to in zip(names, COORDINATES[1], strict=True)]
                return cls(*names, (*others, *COORDINATES[1]), tuple(stored))
        raise TerminalError(
            f"the stream has the columns {', '.join(stream.columns)}, but not Kafka's topic, "
            "partition and offset: without them no row can be told from its replay. Keep them in "
            'your select, e.g. .select("topic", "partition", "offset", ...)'
        )

    def within(self, rows: DataFrame, ranges: Ranges) -> DataFrame:
        """Only rows of these ranges: what is stamped is what is written."""
        places = (F.col(name) for name in (self.partition, self.offset, self.topic))
        return rows.filter(source.within(ranges, *places))

    def as_records(self, rows: DataFrame) -> DataFrame:
        """Rows in the form in which decoded records come: all is well with them so far."""
        return rows.select(
            F.col(self.partition).alias("partition"),
            F.col(self.offset).alias("offset"),
            F.struct(*self.stored).alias(RECORD),
            F.lit(None).cast("string").alias(REASON),
        )
