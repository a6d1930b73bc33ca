"""The sides that are compared: each starts a query on what the topic holds, and can wait for it.

All read the same topic in batches of the same size, in one session, into tables of the same
columns. What differs is said at each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.window import Window

from bench.steps import StepClock
from oncelake import decode, lake, layout, pipeline, planner, source
from oncelake.commit import Step
from oncelake.pipeline import Running
from oncelake.spec import PipelineSpec

OURS, PLAIN, UNCHECKED = "oncelake", "plain", "unchecked"
NATIVE, TUNED = "native", "native_tuned"
COMMON = "common_merge"
Wait = Callable[[], Sequence[float]]
"""Waits for a query's end and gives the seconds that each of its batches took, by Spark's word."""
Start = Callable[[SparkSession, PipelineSpec], Wait]

# Iceberg's documentation on streaming writes names the fan-out writer; no distribution spares
# the shuffle it would ask for on a partitioned table.
TUNED_WRITER = {"fanout-enabled": "true", "distribution-mode": "none"}


Before = Callable[[], None]
"""Called by a side as it begins a batch."""


@dataclass(frozen=True, slots=True)
class Side:
    name: str
    about: str
    start: Start


@dataclass(frozen=True, slots=True)
class Duellist:
    """A side that can be told when to begin each of its batches."""

    name: str
    about: str
    start: Callable[[SparkSession, PipelineSpec, Before], Wait]


def sides(clock: StepClock) -> tuple[Side, ...]:
    return (
        Side(OURS, "oncelake, exactly once", _oncelake(clock)),
        Side(UNCHECKED, "plain append, no quarantine", _unchecked),
        Side(NATIVE, "Spark's Iceberg sink, defaults", _native),
        Side(TUNED, "Spark's Iceberg sink, tuned", _native_tuned),
    )


def duellists() -> tuple[Duellist, ...]:
    """Ours, and the same job without what makes it exactly once."""

    def ours(spark: SparkSession, spec: PipelineSpec, before: Before) -> Wait:
        def on_step(when: str, step: Step) -> None:
            if (when, step) == ("before", Step.PLACE):
                before()

        return _started(spark, spec, Running(spec.checkpoint, once=True, on_step=on_step))

    return (
        Duellist(OURS, "oncelake, exactly once", ours),
        Duellist(PLAIN, "the same job, plain append", _plain),
    )


def upsert_sides(clock: StepClock) -> tuple[Side, ...]:
    ours = _oncelake(clock)

    def upsert(spark: SparkSession, spec: PipelineSpec) -> Wait:
        return ours(spark, replace(spec, mode="upsert", key=("id",), order=("published_at",)))

    return (
        Side(OURS, "oncelake, latest wins, exactly once", upsert),
        Side(COMMON, "foreachBatch + MERGE", _common_merge),
    )


def _common_merge(spark: SparkSession, spec: PipelineSpec) -> Wait:
    """As it is commonly written: the batch's duplicates by row_number, then MERGE by the key alone
    into a table of Iceberg's defaults."""
    _create(spark, spec, {})
    newest = Window.partitionBy("id").orderBy(F.col("published_at").desc())

    def merge(batch: DataFrame, batch_id: int) -> None:
        numbered = batch.withColumn("n", F.row_number().over(newest))
        numbered.filter("n = 1").drop("n").createOrReplaceTempView("updates")
        batch.sparkSession.sql(
            f"MERGE INTO {spec.table.name} t USING updates s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    rows = _decoded_stream(spark, spec, {})
    return _end_of(_bounded(rows.writeStream.foreachBatch(merge), spec).start())


def _oncelake(clock: StepClock) -> Start:
    def start(spark: SparkSession, spec: PipelineSpec) -> Wait:
        running = Running(spec.checkpoint, once=True, tell=clock.tell, on_step=clock.on_step)
        return _started(spark, spec, running)

    return start


def _started(spark: SparkSession, spec: PipelineSpec, running: Running) -> Wait:
    query = pipeline.start(spark, spec, running)

    def wait() -> Sequence[float]:
        query.wait()
        return batch_seconds(query.query)

    return wait


def _plain(spark: SparkSession, spec: PipelineSpec, before: Before) -> Wait:
    """Fetching, decoding and its checks, table and writer as ours; nothing that makes it once."""
    decoder = decode.Decoder(spec.decode, lake.utf8_check(spark))
    return _appended(
        spark, spec, lambda batch: decoder.decode(batch).filter(F.isnull(decode.REASON)), before
    )


def _unchecked(spark: SparkSession, spec: PipelineSpec) -> Wait:
    """As `_plain`, but the first bad record stops it: nothing is checked, counted or put aside."""
    record = from_avro(F.col("value"), spec.decode.schema).alias(decode.RECORD)
    return _appended(spark, spec, lambda batch: batch.select("*", record))


def _appended(spark: SparkSession, spec: PipelineSpec,
              decoded: Callable[[DataFrame], DataFrame],
              before: Before = lambda: None) -> Wait:  # fmt: skip
    _create(spark, spec, {**layout.TABLE_PROPERTIES, **spec.table.properties})
    starts = source.describe_topic(spec.source).starts(spec.source.start)
    stream = source.open_stream(spark, spec.source, spec.limits, starts)
    columns = _columns(decoded(stream), planner.batch_time())

    def append(batch: DataFrame, batch_id: int) -> None:
        before()
        rows = planner.in_few_tasks(decoded(batch).select(*columns))
        writer = rows.write.format("iceberg").mode("append")
        writer.options(**lake.STAGING_OPTIONS).saveAsTable(spec.table.name)

    return _end_of(_bounded(stream.writeStream.foreachBatch(append), spec).start())


def _native(spark: SparkSession, spec: PipelineSpec) -> Wait:
    """Spark's and Iceberg's defaults throughout."""
    return _native_with(spark, spec, fetch={}, writer={})


def _native_tuned(spark: SparkSession, spec: PipelineSpec) -> Wait:
    """What their documentation offers for speed, and our larger fetches."""
    return _native_with(spark, spec, fetch=source.FETCH_OPTIONS, writer=TUNED_WRITER)


def _native_with(spark: SparkSession, spec: PipelineSpec, fetch: Mapping[str, str],
                 writer: Mapping[str, str]) -> Wait:  # fmt: skip
    _create(spark, spec, {})
    rows = _decoded_stream(spark, spec, fetch)
    query = rows.writeStream.format("iceberg").outputMode("append")
    return _end_of(_bounded(query.options(**writer), spec).toTable(spec.table.name))


def _decoded_stream(spark: SparkSession, spec: PipelineSpec,
                    fetch: Mapping[str, str]) -> DataFrame:  # fmt: skip
    """The table's columns, read and decoded as Spark's documentation does."""
    stream = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", spec.source.bootstrap)
        .option("subscribe", spec.source.topic)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", spec.limits.max_offsets or 0)
        .options(**fetch)
        .load()
    )
    rows = stream.withColumn(decode.RECORD, from_avro(F.col("value"), spec.decode.schema))
    return rows.select(*_columns(rows, F.current_timestamp()))


def _end_of(query: StreamingQuery) -> Wait:
    def wait() -> Sequence[float]:
        query.awaitTermination()
        return batch_seconds(query)

    return wait


def batch_seconds(query: StreamingQuery) -> Sequence[float]:
    return [each.durationMs["triggerExecution"] / 1000 for each in query.recentProgress
            if each.numInputRows]  # fmt: skip


def _bounded(query: DataStreamWriter, spec: PipelineSpec) -> DataStreamWriter:
    """To the end of what the topic holds at the start."""
    return query.option("checkpointLocation", spec.checkpoint).trigger(availableNow=True)


def _columns(rows: DataFrame, now: Column) -> tuple[Column, ...]:
    """The article's own columns, where it came from, and when."""
    names = rows.select(f"{decode.RECORD}.*").columns
    return (
        *(F.col(decode.RECORD)[name].alias(name) for name in names),
        F.col("partition").alias("kafka_partition"),
        F.col("offset").alias("kafka_offset"),
        now.alias("processed_at"),
    )


def _create(spark: SparkSession, spec: PipelineSpec, properties: Mapping[str, str]) -> None:
    nothing = spark.createDataFrame([], "value binary, partition int, offset bigint")
    record = from_avro(F.col("value"), spec.decode.schema)
    rows = nothing.withColumn(decode.RECORD, record)
    columns = lake.columns_of(rows.select(*_columns(rows, F.current_timestamp())).schema)
    lake.create_table(spark, spec.table.name, columns, spec.table.partition_by, properties)
