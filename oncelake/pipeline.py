"""Wiring: the parts that a spec names put together into a running query."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlparse

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from oncelake import decode, events, lake, planner, source
from oncelake.batch import BatchWriter, Stage
from oncelake.commit import Committer, OnStep, Staging
from oncelake.errors import CheckpointUnusable
from oncelake.events import Tell
from oncelake.lake import LakeTable
from oncelake.ledger import Placement
from oncelake.model import Progress, Ranges, TopicPartition
from oncelake.query import RunningQuery
from oncelake.rules import Versions, require_key
from oncelake.sinks.append import AppendSink
from oncelake.sinks.intake import QUARANTINE_COLUMNS, Shape
from oncelake.sinks.upsert import UpsertSink
from oncelake.spec import PipelineSpec

EARLIEST = -2
COORDINATE_COLUMNS = "kafka_partition int, kafka_offset bigint, processed_at timestamp"
# Every commit writes a metadata file: keep the newest hundred.
TABLE_PROPERTIES = {
    "format-version": "2",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
    "commit.manifest.target-size-bytes": "134217728",
    # A micro-batch's files are small. In them a dictionary of unique values is only overhead:
    # give up on one early. And with zstd's second level the tasks took an eighth less time than
    # with its third, the default, for files that were a fourteenth larger.
    "write.parquet.dict-size-bytes": "262144",
    "write.parquet.compression-codec": "zstd",
    "write.parquet.compression-level": "2",
}
# Deletion vectors, which mark a row of a file as gone, came with the third version of the format.
MODE_PROPERTIES: Mapping[str, Mapping[str, str]] = {
    "append": {},
    "upsert": {"format-version": "3"},
}


@dataclass(frozen=True, slots=True)
class Running:
    """How a query is to run, and whom it tells."""

    checkpoint: str
    trigger_seconds: float = 0.0
    once: bool = False
    tell: Tell = lambda event: None
    on_step: OnStep = lambda when, step: None


def start(spark: SparkSession, spec: PipelineSpec, running: Running) -> RunningQuery:
    """Claim the table and begin to write. Raises before anything is read if it must not."""
    lake.require_iceberg(spark)
    topics = source.describe_topic(spec.source)
    decoder = decode.Decoder(spec.decode, lake.utf8_check(spark))
    record = decoder.record_schema(spark)
    main, quarantine = _tables(spark, spec, record)
    committer = Committer(spec.name, main, {quarantine.name: quarantine}, running.on_step)
    progress = claim(committer, topics, topics.starts(spec.source.start), running)
    write = _sink(spec, _shape(record), main, quarantine)

    def stage(batch: DataFrame, placement: Placement) -> Staging:
        return write(decoder.decode(_rows(batch, spec, placement.todo)), placement)

    stream = source.open_stream(spark, spec.source, spec.limits, _begin(progress, topics))
    return launch(stream, committer, stage, running)


def claim(committer: Committer, topics: source.Topics, starts: Mapping[TopicPartition, int],
          running: Running) -> Progress:  # fmt: skip
    """Own the pipeline, and publish what a former run had decided but not finished."""
    prepare_checkpoint(running.checkpoint)
    progress = committer.claim(topics.origin, starts)
    running.tell(events.claimed(committer.table, progress))
    committer.finish()
    return progress


def launch(stream: DataFrame, committer: Committer, stage: Stage,
           running: Running) -> RunningQuery:  # fmt: skip
    """Start the query whose batches go through the protocol."""
    log = source.OffsetLog(stream.sparkSession, running.checkpoint)
    writer = BatchWriter(committer, stage, log, running.tell)
    query = stream.writeStream.option("checkpointLocation", running.checkpoint).foreachBatch(writer)
    if running.once:
        query = query.trigger(availableNow=True)
    else:
        milliseconds = round(running.trigger_seconds * 1000)
        query = query.trigger(processingTime=f"{milliseconds} milliseconds")
    return RunningQuery(query.start, writer, committer.require_ownership)


def prepare_checkpoint(checkpoint: str) -> None:
    """A local checkpoint folder must be there and writable; elsewhere Spark will say."""
    parts = urlparse(checkpoint)
    if parts.scheme not in {"", "file"}:
        return
    folder = Path(parts.path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CheckpointUnusable(
            f"the checkpoint folder {folder} cannot be made: {error.strerror}. Type: sudo mkdir -p "
            f"{folder} && sudo chown $USER {folder}, or set CHECKPOINT_LOCATION to another"
        ) from error
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise CheckpointUnusable(
            f"the checkpoint folder {folder} is not writable by this user. Type: sudo chown -R "
            f"$USER {folder}, or set CHECKPOINT_LOCATION to another"
        )


def _sink(spec: PipelineSpec, shape: Shape, main: LakeTable, quarantine: LakeTable) -> Stage:
    if spec.mode == "append":
        append = AppendSink(shape, main, quarantine)
        return lambda rows, placement: append.stage(rows, placement.todo)
    upsert = UpsertSink(shape, Versions(spec.key, spec.order), main, quarantine)
    return lambda rows, placement: upsert.stage(require_key(rows, spec.key), placement)


def _rows(batch: DataFrame, spec: PipelineSpec, todo: Ranges) -> DataFrame:
    """The batch as Spark planned it, where that is just what is stamped.

    It is not when part of the batch is there already, or when another driver wrote to the
    checkpoint: then the stamped offsets are read again from Kafka.
    """
    if lake.planned(batch) == todo:
        return batch
    return source.read_ranges(batch.sparkSession, spec.source, spec.limits, todo)


def _tables(spark: SparkSession, spec: PipelineSpec,
            record: StructType) -> tuple[LakeTable, LakeTable]:  # fmt: skip
    columns = lake.columns_of(record)
    properties = {**TABLE_PROPERTIES, **MODE_PROPERTIES[spec.mode], **spec.table.properties}
    lake.create_table(
        spark,
        spec.table.name,
        f"{columns}, {COORDINATE_COLUMNS}",
        spec.table.partition_by,
        properties,
    )
    lake.create_table(spark, spec.table.quarantine, QUARANTINE_COLUMNS, (), properties)
    return LakeTable(spark, spec.table.name), LakeTable(spark, spec.table.quarantine)


def _begin(progress: Progress, topics: source.Topics) -> Mapping[TopicPartition, int]:
    """Where Spark starts without a checkpoint: where the table ends."""
    return {
        tp: progress.next_offset(tp) if tp in progress.positions else EARLIEST
        for tp in topics.offsets
    }


def _shape(record: StructType) -> Shape:
    fields = tuple(F.col(decode.RECORD)[name].alias(name) for name in record.names)
    coordinates: tuple[Column, ...] = (
        F.col("partition").alias("kafka_partition"),
        F.col("offset").alias("kafka_offset"),
    )
    now = planner.batch_time().alias("processed_at")
    whole = (
        F.col("topic").alias("kafka_topic"),
        *coordinates,
        F.col("timestamp").alias("kafka_timestamp"),
        *(F.col(name) for name in ("key", "value", "headers", decode.REASON)),
        now,
    )
    return Shape(
        good=(*fields, *coordinates, now),
        reason=decode.REASON,
        bad=whole,
    )
