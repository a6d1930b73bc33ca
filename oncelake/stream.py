"""Three lines around a stream you have: `write` makes it land exactly once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from oncelake import lake, layout, pipeline, source
from oncelake.commit import Committer, Staging
from oncelake.errors import CheckpointUnusable, TerminalError
from oncelake.lake import LakeTable
from oncelake.ledger import Placement
from oncelake.model import Ranges, show_ranges
from oncelake.query import RunningQuery
from oncelake.sinks.append import AppendSink
from oncelake.sinks.intake import Due, Shape

# Kafka's own names first, then the ones our tables use.
COORDINATES = (("topic", "partition", "offset"), ("kafka_topic", "kafka_partition", "kafka_offset"))


@dataclass(frozen=True, slots=True)
class Kafka:
    """Where a stream's coordinates come from. `options` are librdkafka settings for admin calls."""

    bootstrap: str
    topics: Sequence[str]
    options: Mapping[str, str] | None = None

    def describe(self) -> source.Topics:
        config = {"bootstrap.servers": self.bootstrap, **(self.options or {})}
        return source.describe(config, self.topics)


def write(  # noqa: PLR0913 (all but two by keyword)
    stream: DataFrame,
    table: str,
    *,
    kafka: Kafka,
    checkpoint: str,
    pipeline_name: str | None = None,
    partition_by: Sequence[str] = (),
    once: bool = False,
    trigger_seconds: float = 0.0,
) -> RunningQuery:
    """Append a streaming DataFrame to an Iceberg table, each row exactly once.

    The stream must still have Kafka's `topic`, `partition` and `offset`; they are stored as
    `kafka_topic`, `kafka_partition` and `kafka_offset`, every other column under its own name.
    The table is created when missing. It begins where the table ends: a stream that starts
    later than that is refused as a gap, one that starts earlier has its replay left out.
    """
    spark = stream.sparkSession
    lake.require_iceberg(spark)
    columns = _Columns.of(stream)
    lake.create_table(
        spark,
        table,
        lake.columns_of(stream.select(*columns.stored).schema),
        partition_by,
        layout.TABLE_PROPERTIES,
    )
    main = LakeTable(spark, table)
    name = pipeline_name or table.rsplit(".", 1)[-1]
    committer = Committer(name, main, {})
    running = pipeline.Running(checkpoint, trigger_seconds, once)
    topics = kafka.describe()
    pipeline.claim(committer, topics, topics.starts("earliest"), running)
    sink = AppendSink(Shape(columns.stored), main)

    def stage(batch: DataFrame, placement: Placement) -> Staging:
        _require_as_logged(lake.planned(batch), placement.ranges, checkpoint)
        rows = columns.within(batch, placement.todo)
        # They are as their user made them: of an offset none, or many.
        return sink.stage(Due(rows, one_an_offset=False), placement.todo)

    return pipeline.launch(stream, committer, stage, running)


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
    stored: tuple[Column, ...]

    @classmethod
    def of(cls, stream: DataFrame) -> _Columns:
        for names in COORDINATES:
            if set(names) <= set(stream.columns):
                others = (F.col(f"`{c}`") for c in stream.columns if c not in names)
                renamed = zip(names, COORDINATES[1], strict=True)
                return cls(*names, (*others, *(F.col(n).alias(to) for n, to in renamed)))
        raise TerminalError(
            f"the stream has the columns {', '.join(stream.columns)}, but not Kafka's topic, "
            "partition and offset: without them no row can be told from its replay. Keep them in "
            'your select, e.g. .select("topic", "partition", "offset", ...)'
        )

    def within(self, rows: DataFrame, ranges: Ranges) -> DataFrame:
        """Only rows of these ranges: what is stamped is what is written."""
        keep = F.lit(False)
        for tp, span in ranges.items():
            here = (F.col(self.topic) == tp.topic) & (F.col(self.partition) == tp.partition)
            keep |= here & (F.col(self.offset) >= span.start) & (F.col(self.offset) < span.end)
        return rows.filter(keep)
