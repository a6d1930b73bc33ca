"""Count the rows of both tables by slice, in one pass over two or three columns of each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from oncelake.errors import TableUnfit
from oncelake.model import Span, TopicPartition
from oncelake.ops.audit.evidence import SAMPLE, Foreign, RowFacts, Slice, Suspect, Tally
from oncelake.ops.audit.slicing import BELOW, BEYOND, Grid
from oncelake.ops.audit.tables import quoted

COLUMNS = ("kafka_topic", "kafka_partition", "kafka_offset")
HOLES_IN = 100
"""How many ranges are searched for holes; SAMPLE of them are named."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """A table at a fixed snapshot, so that a running pipeline does not disturb the count."""

    name: str
    snapshot_id: int


def has_topic_column(spark: SparkSession, name: str) -> bool:
    return COLUMNS[0] in spark.table(quoted(name)).columns


def read_coordinates(spark: SparkSession, table: Pinned, topics: Sequence[str]) -> DataFrame:
    """The topic, partition and offset of every row; the topic is known where there is but one."""
    rows = spark.sql(f"SELECT * FROM {quoted(table.name)} VERSION AS OF {table.snapshot_id}")
    missing = [column for column in COLUMNS[1:] if column not in rows.columns]
    named = COLUMNS[0] in rows.columns
    if missing or (len(topics) > 1 and not named):
        raise TableUnfit(
            f"{table.name} cannot be audited: it has no column "
            f"{' and no column '.join(missing or COLUMNS[:1])}, so a row's place in "
            f"{', '.join(topics) or 'Kafka'} is not known"
        )
    topic = F.col(COLUMNS[0]) if named else F.lit(topics[0] if topics else None)
    return rows.select(
        topic.cast("string").alias("topic"),
        F.col(COLUMNS[1]).cast("int").alias("partition"),
        F.col(COLUMNS[2]).cast("bigint").alias("offset"),
    )


def repeated_keys(spark: SparkSession, table: Pinned, key: Sequence[str]
                  ) -> tuple[int, tuple[str, ...]]:  # fmt: skip
    """How many keys have more than one row, and some of them by name."""
    rows = spark.sql(f"SELECT * FROM {quoted(table.name)} VERSION AS OF {table.snapshot_id}")
    names = [F.col(f"`{name}`") for name in key]
    named = F.concat_ws(", ", *(F.concat(F.lit(f"{n}="), c.cast("string")) for n, c in
                                zip(key, names, strict=True)))  # fmt: skip
    twice = rows.groupBy(*names).count().filter("count > 1").select(named.alias("key"))
    found = twice.agg(F.count("*"), F.slice(F.array_sort(F.collect_list("key")), 1, SAMPLE))
    count, some = found.collect()[0]
    return int(count), tuple(some)


class Counter:
    """The coordinates of both tables side by side: how often each is in main and quarantine."""

    def __init__(self, spark: SparkSession, main: DataFrame | None,
                 quarantine: DataFrame | None) -> None:  # fmt: skip
        self._spark = spark
        empty = _frame(spark, [], "topic string, partition int, offset bigint")
        tagged = [
            (empty if rows is None else rows).select("*", F.lit(m).alias("m"), F.lit(q).alias("q"))
            for rows, m, q in ((main, 1, 0), (quarantine, 0, 1))
        ]
        self._coordinates = (
            tagged[0]
            .union(tagged[1])
            .groupBy("topic", "partition", "offset")
            .agg(F.sum("m").alias("m"), F.sum("q").alias("q"))
        )

    def count(self, grids: Sequence[Grid]) -> RowFacts:
        """Every row in its slice; suspects are looked up only where there are any."""
        rows = self._by_slice(grids).collect()
        slices = tuple(_slice(row) for row in rows if row.start is not None)
        foreign = {row.without: row for row in rows if row.start is None}
        suspicious = any(s.main.copies or s.quarantine.copies or s.both for s in slices)
        return RowFacts(
            slices=slices,
            foreign=Foreign(_rows(foreign, True, "m_rows"), _rows(foreign, False, "m_rows")),
            foreign_quarantine=Foreign(
                _rows(foreign, True, "q_rows"), _rows(foreign, False, "q_rows")
            ),
            suspects=self._suspects(grids) if suspicious else (),
        )

    def holes(self, spans: Sequence[tuple[TopicPartition, Span]]
              ) -> tuple[tuple[TopicPartition, Span], ...]:  # fmt: skip
        """Offsets of these spans that are in neither table, the first few."""
        asked = _frame(
            self._spark,
            [(*tp, *span) for tp, span in spans[:HOLES_IN]],
            "topic string, partition int, start bigint, end bigint",
        )
        inside = (F.col("offset") >= F.col("start")) & (F.col("offset") < F.col("end"))
        there = self._coordinates.join(F.broadcast(asked), ["topic", "partition"]).filter(inside)
        fences = asked.withColumn("offset", F.explode(F.array(F.expr("start - 1"), F.col("end"))))
        names = ["topic", "partition", "start", "offset"]
        order = Window.partitionBy("topic", "partition", "start").orderBy("offset")
        found = (
            there.select(names)
            .union(fences.select(names))
            .withColumn("next", F.lead("offset").over(order))
            .filter("next - offset > 1")
            .orderBy("topic", "partition", "offset")
            .limit(SAMPLE)
        )
        return tuple(
            (TopicPartition(row.topic, row.partition), Span(row.offset + 1, row.next))
            for row in found.collect()
        )

    def _by_slice(self, grids: Sequence[Grid]) -> DataFrame:
        without = F.isnull("topic") | F.isnull("partition") | F.isnull("offset")
        return (
            self._located(grids)
            .withColumn("without", F.when(F.isnull("start"), without))
            .withColumn("topic", _if_ours("topic"))
            .withColumn("partition", _if_ours("partition"))
            .groupBy("topic", "partition", "start", "end", "without")
            .agg(
                F.count_if(F.col("m") > 0).alias("m_coordinates"),
                F.sum("m").alias("m_rows"),
                F.count_if(F.col("q") > 0).alias("q_coordinates"),
                F.sum("q").alias("q_rows"),
                F.count_if((F.col("m") > 0) & (F.col("q") > 0)).alias("both"),
            )
        )

    def _located(self, grids: Sequence[Grid]) -> DataFrame:
        """Each coordinate with the slice it lies in, or none."""
        zones = _frame(
            self._spark,
            [(*grid.tp, grid.low, grid.high, grid.width) for grid in grids],
            "topic string, partition int, low bigint, high bigint, width bigint",
        )
        pieces = _frame(
            self._spark,
            [(*grid.tp, zone, *span) for grid in grids for zone, span in grid.zoned()],
            "topic string, partition int, zone bigint, start bigint, end bigint",
        ).alias("piece")
        zone = F.expr(
            f"CASE WHEN offset < low THEN {BELOW} WHEN offset >= high THEN {BEYOND} "
            "ELSE (offset - low) div width END"
        )
        on = F.expr(
            "row.topic = piece.topic AND row.partition = piece.partition AND row.zone = piece.zone "
            "AND row.offset >= piece.start AND row.offset < piece.end"
        )
        rows = self._coordinates.join(F.broadcast(zones), ["topic", "partition"], "left")
        return (
            rows.withColumn("zone", zone)
            .alias("row")
            .join(F.broadcast(pieces), on, "left")
            .select("row.topic", "row.partition", "row.offset", "m", "q", "start", "end")
        )

    def _suspects(self, grids: Sequence[Grid]) -> tuple[Suspect, ...]:
        twice = "start IS NOT NULL AND (m > 1 OR q > 1 OR (m > 0 AND q > 0))"
        found = self._located(grids).filter(twice).orderBy("topic", "partition", "offset")
        return tuple(
            Suspect(TopicPartition(row.topic, row.partition), row.offset, row.m, row.q)
            for row in found.limit(SAMPLE).collect()
        )


def _frame(spark: SparkSession, rows: Sequence[tuple[object, ...]], fields: str) -> DataFrame:
    """Rows of ours as a DataFrame, by JSON: createDataFrame would start Python workers for them."""
    names = [field.split()[0] for field in fields.split(", ")]
    text = json.dumps([dict(zip(names, row, strict=True)) for row in rows])
    parsed = F.from_json(
        F.lit(text), f"array<struct<{fields.replace(' ', ':').replace(',:', ',')}>>"
    )
    return spark.range(1).select(F.inline(parsed))


def _if_ours(column: str) -> Column:
    """Rows that are not ours need no names: there could be any number of them."""
    return F.when(F.col("start").isNotNull(), F.col(column))


def _slice(row: Row) -> Slice:
    return Slice(
        tp=TopicPartition(row.topic, row.partition),
        span=Span(row.start, row.end),
        main=Tally(row.m_coordinates, row.m_rows),
        quarantine=Tally(row.q_coordinates, row.q_rows),
        both=row.both,
    )


def _rows(foreign: dict[bool, Row], without: bool, column: str) -> int:
    return int(foreign[without][column]) if without in foreign else 0
