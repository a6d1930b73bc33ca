"""Count the rows of all tables by slice, in one pass over two or three columns of each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.window import Window

from oncelake.errors import TableUnfit
from oncelake.model import Span, TopicPartition, kafka_name
from oncelake.ops.audit.evidence import SAMPLE, Foreign, History, RowFacts, Slice, Suspect, Tally
from oncelake.ops.audit.slicing import BELOW, BEYOND, Grid
from oncelake.ops.audit.tables import quoted

COLUMNS = ("kafka_topic", "kafka_partition", "kafka_offset")
COORDINATE = "topic string, partition int, offset bigint"
MAIN = "main"
"""Main among the side tables, which go by their rows' fate."""
HOLES_IN = 100
"""How many ranges are searched for holes; SAMPLE of them are named."""


@dataclass(frozen=True, slots=True)
class Pinned:
    """A table at a fixed snapshot, so that a running pipeline does not disturb the count."""

    name: str
    snapshot_id: int

    @classmethod
    def newest(cls, history: History) -> Pinned | None:
        """At the head of this history; None for a table without rows, or that is not there."""
        ancestors = history.ancestors
        return cls(history.table, ancestors[-1].snapshot_id) if ancestors else None


def has_topic_column(spark: SparkSession, name: str) -> bool:
    return COLUMNS[0] in spark.table(quoted(name)).columns


def read_coordinates(spark: SparkSession, table: Pinned, topics: Sequence[str]) -> DataFrame:
    """The topic, partition and offset of every row; the topic is known where there is but one,
    or but one until it was made anew: only rows since then name it."""
    rows = spark.sql(f"SELECT * FROM {quoted(table.name)} VERSION AS OF {table.snapshot_id}")
    missing = [column for column in COLUMNS[1:] if column not in rows.columns]
    named = COLUMNS[0] in rows.columns
    names = sorted({kafka_name(topic) for topic in topics})
    if missing or (len(names) > 1 and not named):
        raise TableUnfit(
            f"{table.name} cannot be audited: it has no column "
            f"{' and no column '.join(missing or COLUMNS[:1])}, so a row's place in "
            f"{', '.join(topics) or 'Kafka'} is not known"
        )
    # Where no topic is known any more, the rows still have a place: of a topic without a name.
    first = F.lit(names[0] if names else "")
    topic = first if not named else F.col(COLUMNS[0])
    if named and len(topics) > len(names):
        topic = F.coalesce(topic, first)
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
    """The coordinates of all tables side by side, with a column a table: how often each is in it.

    Tables go by the fate of their rows, and the first is MAIN; None is one that has no rows.
    """

    def __init__(self, spark: SparkSession, tables: Mapping[str, DataFrame | None]) -> None:
        self._spark = spark
        self._names = tuple(tables)
        every = _frame(spark, [], COORDINATE).select("*", *self._tags(None))
        for name, rows in tables.items():
            if rows is not None:
                every = every.union(rows.select("*", *self._tags(name)))
        self._coordinates = every.groupBy("topic", "partition", "offset").agg(
            *(F.sum(name).alias(name) for name in self._names)
        )

    def count(self, grids: Sequence[Grid]) -> RowFacts:
        """Every row in its slice; suspects are looked up only where there are any."""
        rows = self._by_slice(grids).collect()
        slices = tuple(self._slice(row) for row in rows if row.start is not None)
        foreign = self._foreign([row for row in rows if row.start is None])
        found = (tally for s in slices for tally in (s.main, *s.sides.values()))
        suspicious = any(tally.copies for tally in found) or any(s.both for s in slices)
        return RowFacts(
            slices=slices,
            foreign=foreign.pop(MAIN),
            foreign_sides=foreign,
            suspects=self._suspects(grids) if suspicious else (),
        )

    def holes(self, spans: Sequence[tuple[TopicPartition, Span]]
              ) -> tuple[tuple[TopicPartition, Span], ...]:  # fmt: skip
        """Offsets of these spans that are in none of the tables, the first few."""
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
                *(F.count_if(F.col(name) > 0).alias(f"{name}_coordinates") for name in self._names),
                *(F.sum(name).alias(f"{name}_rows") for name in self._names),
                F.count_if(F.expr(self._shared)).alias("both"),
            )
        )

    def _tags(self, table: str | None) -> list[Column]:
        return [F.lit(int(name == table)).alias(name) for name in self._names]

    @property
    def _shared(self) -> str:
        """Whether a coordinate is in more than one table."""
        return f"{' + '.join(f'int({name} > 0)' for name in self._names)} > 1"

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
            .select("row.topic", "row.partition", "row.offset", *self._names, "start", "end")
        )

    def _suspects(self, grids: Sequence[Grid]) -> tuple[Suspect, ...]:
        copied = " OR ".join(f"{name} > 1" for name in self._names)
        twice = f"start IS NOT NULL AND ({copied} OR {self._shared})"
        found = self._located(grids).filter(twice).orderBy("topic", "partition", "offset")
        return tuple(
            Suspect(
                TopicPartition(row.topic, row.partition),
                row.offset,
                row[MAIN],
                {fate: row[fate] for fate in self._fates},
            )
            for row in found.limit(SAMPLE).collect()
        )

    @property
    def _fates(self) -> tuple[str, ...]:
        return tuple(name for name in self._names if name != MAIN)

    def _slice(self, row: Row) -> Slice:
        return Slice(
            tp=TopicPartition(row.topic, row.partition),
            span=Span(row.start, row.end),
            main=_tally(row, MAIN),
            sides={fate: _tally(row, fate) for fate in self._fates},
            both=row.both,
        )

    def _foreign(self, rows: Sequence[Row]) -> dict[str, Foreign]:
        """Of each table the rows that lie in no slice."""
        return {
            name: Foreign(
                without=sum(row[f"{name}_rows"] for row in rows if row.without),
                unknown=sum(row[f"{name}_rows"] for row in rows if not row.without),
            )
            for name in self._names
        }


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


def _tally(row: Row, name: str) -> Tally:
    return Tally(row[f"{name}_coordinates"], row[f"{name}_rows"])
