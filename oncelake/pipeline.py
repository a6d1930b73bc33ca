"""Wiring: the parts that a spec names put together into a running query."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from oncelake import checkpoint, events, lake, layout, owner, source
from oncelake.batch import After, BatchWriter, Stage, TableWriter
from oncelake.checkpoint import Checkpoint, Found
from oncelake.commit import Committer, Staging
from oncelake.errors import TableMissing
from oncelake.events import Tell
from oncelake.follow import following
from oncelake.lake import LakeTable
from oncelake.ledger import Placement
from oncelake.model import Progress, Ranges, TopicPartition
from oncelake.origin import OriginWatch
from oncelake.planner import in_few_tasks
from oncelake.query import RunningQuery
from oncelake.reading import Reading
from oncelake.refusals import refuse_gone
from oncelake.rules import MICROS, EventTime, Versions
from oncelake.sinks.append import AppendSink
from oncelake.sinks.intake import Due
from oncelake.sinks.lookup import Horizon
from oncelake.sinks.upsert import UpsertSink
from oncelake.spec import PipelineSpec

if TYPE_CHECKING:
    from oncelake.forward import Forward

EARLIEST = -2


@dataclass(frozen=True, slots=True)
class Running:
    """How a query is to run, and whom it tells."""

    checkpoint: str
    trigger_seconds: float = 0.0
    once: bool = False
    tell: Tell = lambda event: None
    on_step: Callable[[str, Any], None] = lambda when, step: None


def start(spark: SparkSession, spec: PipelineSpec, running: Running) -> RunningQuery:
    """Claim the table and begin to write. Raises before anything is read if it must not."""
    lake.require_iceberg(spark)
    topics = source.describe_topic(spec.source)
    reading = Reading.of(spark, spec)
    checkpoint.prepare(running.checkpoint)
    if said := checkpoint.remark(running.checkpoint):
        running.tell(events.remarked(said))
    folder = lake.Folder(spark, running.checkpoint)
    owner.require_own(folder, spec.name)
    logs = Checkpoint(folder)
    found = logs.look()
    checkpoint.require_ours(running.checkpoint, found, spec.source.topic)
    _require_not_lost(spark, spec, found)
    tables = layout.make_tables(spark, spec, reading.record)
    committer = Committer(spec.name, tables.main, tables.sides, running.on_step)
    progress = claim(committer, topics, topics.starts(spec.source.start), running)
    forwards = _forwards(spark, spec, reading, running)
    written = progress.positions
    for forward in forwards:
        reached = forward.start(progress, topics.offsets, running.tell)
        written = {tp: min(span, reached[tp]) for tp, span in written.items()}
    progress = replace(progress, positions=written)
    whole = "the table with its sinks" if forwards else "the table"
    if fault := found.fault(progress, topics.offsets, whole):
        committer.require_ownership()
        running.tell(events.set_aside(running.checkpoint, logs.set_aside(), fault))
    epochs = committer.epochs
    if epochs.names:
        layout.name_topics(spark, tables)
    stage_rows = stager(spec, reading, tables)

    def stage(batch: DataFrame, placement: Placement) -> Staging:
        rows = _rows(batch, spec, epochs.in_kafka(placement.todo))
        return stage_rows(layout.in_epochs(rows, epochs), placement)

    stream = source.open_stream(spark, spec.source, spec.limits, _begin(progress, topics))
    between = _between(spark, spec, tables, running)

    watch = OriginWatch(source.client_config(spec.source), topics.origin)

    def after(rows: DataFrame, ranges: Ranges, number: int) -> None:
        for forward in forwards:
            # It reads them once more: by now they may be another topic's.
            watch.require_unchanged()
            forward.write(rows, ranges, number, running.tell)
        between()

    owner.own(folder, spec.name)
    return launch(stream, committer, stage, running, watch, after)


def _forwards(spark: SparkSession, spec: PipelineSpec, reading: Reading,
              running: Running) -> list[Forward]:  # fmt: skip
    if not spec.sinks:
        return []
    # What sends to Kafka needs Arrow and numpy, a second of everybody's start.
    from oncelake.forward import Forward

    return [Forward(spark, spec, sink, reading, running.on_step) for sink in spec.sinks]


def _require_not_lost(spark: SparkSession, spec: PipelineSpec, found: Found) -> None:
    """A table that is made is filled from the topic's beginning, or what is left of that: not
    where another had been filled before, unless a person says so."""
    if lake.table_exists(spark, spec.table.name):
        return
    sides = following(spark, spec.sides.values(), spec.name)
    if found.resumes or sides:
        witness = (
            f"Spark's checkpoint {spec.checkpoint} says"
            if found.resumes
            else (f"what it had put aside in {', '.join(sides)} says")
        )
        raise TableMissing(
            f"table {spec.table.name} does not exist, and {witness} that it was written to: it "
            "was dropped or renamed, or catalog.uri leads to another catalog. Nothing was written. "
            "Rename it back, or set table.name (ICEBERG_TABLE) to what it is called now. To fill "
            "one from the topic's beginning, type: oncelake recover PIPELINE.yaml, and run again"
        )


def claim(committer: Committer, topics: source.Topics, starts: Mapping[TopicPartition, int],
          running: Running) -> Progress:  # fmt: skip
    """Own the pipeline, and publish what a former run had decided but not finished."""
    progress = committer.claim(topics.origin, starts)
    running.tell(events.claimed(committer.table, progress))
    refuse_gone(progress, topics.offsets)
    committer.finish()
    return progress


def launch(stream: DataFrame, committer: Committer, stage: Stage, running: Running,
           watch: OriginWatch,
           after: After = lambda rows, ranges, number: None) -> RunningQuery:  # fmt: skip
    """Start the query whose batches go through the protocol."""

    def stage_ours(batch: DataFrame, placement: Placement) -> Staging:
        staging = stage(batch, placement)
        watch.require_unchanged()
        return staging

    def require_ours() -> None:
        committer.require_ownership()
        watch.refuse_changed()

    logs = Checkpoint(lake.Folder(stream.sparkSession, running.checkpoint))
    writer = TableWriter(committer, stage_ours, logs, running.tell, after)
    return query(stream, writer, running, require_ours)


def query(stream: DataFrame, writer: BatchWriter, running: Running,
          require_ownership: Callable[[], None]) -> RunningQuery:  # fmt: skip
    """Spark's query, as it is to run."""
    made = stream.writeStream.option("checkpointLocation", running.checkpoint).foreachBatch(writer)
    if running.once:
        made = made.trigger(availableNow=True)
    else:
        milliseconds = round(running.trigger_seconds * 1000)
        made = made.trigger(processingTime=f"{milliseconds} milliseconds")
    return RunningQuery(made.start, writer, require_ownership, running.tell)


def _between(spark: SparkSession, spec: PipelineSpec, tables: layout.Tables,
             running: Running) -> Callable[[], None]:  # fmt: skip
    """Maintenance, as often as the spec says; nothing else is being written meanwhile."""
    every = spec.maintenance.every_seconds
    if every is None:
        return lambda: None
    maintenance = layout.maintenance(spark, spec, tables)
    due = time.monotonic() + every

    def between() -> None:
        nonlocal due
        if time.monotonic() >= due:
            for done in maintenance.run():
                running.tell(events.maintained(done))
            due = time.monotonic() + every

    return between


def stager(spec: PipelineSpec, reading: Reading, tables: layout.Tables) -> Stage:
    """Stages records as Kafka gives them: decoded, judged, written by mode."""
    write = _sink(spec, reading.record, tables)
    few = spec.limits.min_partitions is None

    def stage(rows: DataFrame, placement: Placement) -> Staging:
        layout.require_columns(tables.main, reading.record)
        due = reading.due(rows, placement.watermark)
        staging = write(replace(due, gathered=in_few_tasks) if few else due, placement)
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
    if lake.planned(batch) != todo:
        return source.read_ranges(batch.sparkSession, spec.source, spec.limits, todo)
    return batch


def _begin(progress: Progress, topics: source.Topics) -> Mapping[TopicPartition, int]:
    """Where Spark starts without a checkpoint: where the table ends."""
    ends = progress.origin.epochs.in_kafka(progress.positions)
    return {tp: ends[tp].end if tp in ends else EARLIEST for tp in topics.offsets}
