"""Wiring: the parts that a spec names put together into a running query."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from oncelake import events, lake, layout, source
from oncelake.batch import BatchWriter, Stage
from oncelake.commit import Committer, OnStep, Staging
from oncelake.errors import CheckpointUnusable
from oncelake.events import Tell
from oncelake.lake import LakeTable
from oncelake.ledger import Placement
from oncelake.model import Progress, Ranges, TopicPartition
from oncelake.query import RunningQuery
from oncelake.reading import Reading
from oncelake.rules import MICROS, EventTime, Versions
from oncelake.sinks.append import AppendSink
from oncelake.sinks.intake import Due
from oncelake.sinks.lookup import Horizon
from oncelake.sinks.upsert import UpsertSink
from oncelake.spec import PipelineSpec

EARLIEST = -2


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
    reading = Reading.of(spark, spec)
    tables = layout.make_tables(spark, spec, reading.record)
    committer = Committer(spec.name, tables.main, tables.sides, running.on_step)
    progress = claim(committer, topics, topics.starts(spec.source.start), running)
    stage_rows = stager(spec, reading, tables)

    def stage(batch: DataFrame, placement: Placement) -> Staging:
        return stage_rows(_rows(batch, spec, placement.todo), placement)

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


def stager(spec: PipelineSpec, reading: Reading, tables: layout.Tables) -> Stage:
    """Stages records as Kafka gives them: decoded, judged, written by mode."""
    write = _sink(spec, reading.record, tables)

    def stage(rows: DataFrame, placement: Placement) -> Staging:
        staging = write(reading.due(rows, placement.watermark), placement)
        return _moved_on(staging, placement, reading.event, tables.main)

    return stage


def _sink(spec: PipelineSpec, record: StructType,
          tables: layout.Tables) -> Callable[[Due, Placement], Staging]:  # fmt: skip
    shape = layout.shape(spec, record, tables)
    if spec.mode == "append":
        append = AppendSink(shape, tables.main)
        return lambda due, placement: append.stage(due, placement.todo)
    return UpsertSink(
        shape,
        Versions(spec.key, spec.order),
        tables.main,
        layout.tombstones(spec, tables),
        Horizon(spec.horizon.column, round(spec.horizon.seconds * MICROS))
        if spec.horizon
        else None,
    ).stage


def _moved_on(staging: Staging, placement: Placement, event: EventTime | None,
              main: LakeTable) -> Staging:  # fmt: skip
    """The staged batch with the watermark that its rows leave for the next one."""
    if event is None:
        return staging
    newest = main.greatest(event.column, staging.main)
    return replace(staging, watermark=event.following(placement.watermark, newest))


def _rows(batch: DataFrame, spec: PipelineSpec, todo: Ranges) -> DataFrame:
    """The batch as Spark planned it, where that is just what is stamped.

    It is not when part of the batch is there already, or when another driver wrote to the
    checkpoint: then the stamped offsets are read again from Kafka.
    """
    if lake.planned(batch) == todo:
        return batch
    return source.read_ranges(batch.sparkSession, spec.source, spec.limits, todo)


def _begin(progress: Progress, topics: source.Topics) -> Mapping[TopicPartition, int]:
    """Where Spark starts without a checkpoint: where the table ends."""
    return {
        tp: progress.next_offset(tp) if tp in progress.positions else EARLIEST
        for tp in topics.offsets
    }
