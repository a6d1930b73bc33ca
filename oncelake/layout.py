"""The tables of a pipeline, and which columns of a row go where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from oncelake import lake, ledger, planner
from oncelake.decode import REASON, RECORD
from oncelake.errors import TableMissing, TableUnfit, to_type
from oncelake.lake import LakeTable
from oncelake.maintain import Ages, Maintenance
from oncelake.model import QUARANTINED, Epochs, Progress
from oncelake.rules import LATE, WATERMARK
from oncelake.sinks.intake import Aside, Shape
from oncelake.sinks.upsert import Tombstones
from oncelake.source import TOPIC, within
from oncelake.spec import PipelineSpec

# Every commit writes a metadata file: keep the newest hundred.
TABLE_PROPERTIES = {
    "format-version": "2",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
    "commit.manifest.target-size-bytes": "134217728",
    # A micro-batch's files are small. In them a dictionary of unique values is only overhead:
    # give up on one early. And a fifth of a batch's processor time went into zstd, Iceberg's
    # default: that is for those who compact the files later.
    "write.parquet.dict-size-bytes": "65536",
    "write.parquet.compression-codec": "snappy",
}
# Deletion vectors, which mark a row of a file as gone, came with the third version of the format.
MODE_PROPERTIES: Mapping[str, Mapping[str, str]] = {
    "append": {},
    "upsert": {"format-version": "3"},
}
PLACE = "kafka_partition int, kafka_offset bigint"
ADDED = (
    StructType()
    .add("kafka_partition", "integer")
    .add("kafka_offset", "long")
    .add("processed_at", "timestamp")
)
QUARANTINE = (
    f"{TOPIC} string, {PLACE}, kafka_timestamp timestamp, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>, reason string, processed_at timestamp"
)


@dataclass(frozen=True, slots=True)
class Tables:
    """Main, and the side tables by the fate of their rows."""

    main: LakeTable
    sides: Mapping[str, LakeTable]


def make_tables(spark: SparkSession, spec: PipelineSpec, record: StructType) -> Tables:
    """Those that are missing are made."""
    properties = {**TABLE_PROPERTIES, **MODE_PROPERTIES[spec.mode], **spec.table.properties}
    columns = lake.columns_of(_with_added(record))
    ordered = StructType([record[name] for name in (*spec.key, *spec.order)])
    layouts = {
        QUARANTINED: QUARANTINE,
        "late": f"{columns}, {WATERMARK} timestamp",
        "deleted": lake.columns_of(_with_added(ordered)),
    }
    require_sides(
        spark, spec.name, spec.table.name,
        {fate: (name, layouts[fate]) for fate, name in spec.sides.items()},
    )  # fmt: skip
    lake.create_table(spark, spec.table.name, columns, spec.table.partition_by, properties)
    # A property of one column is of the main table's: Iceberg makes no table that lacks it.
    general = {key: value for key, value in properties.items() if ".column." not in key}
    for fate, name in spec.sides.items():
        lake.create_table(spark, name, layouts[fate], (), general)
    main = LakeTable(spark, spec.table.name)
    require_columns(main, record)
    if spec.watermark is not None:
        main.require_bounds(spec.watermark.column)
    return Tables(main, {fate: LakeTable(spark, name) for fate, name in spec.sides.items()})


def require_sides(
    spark: SparkSession, pipeline: str, main: str, sides: Mapping[str, tuple[str, str]]
) -> None:
    """Refuse to make a side table anew in the place of one whose rows are gone with it. Of each
    fate: its table's name and columns."""
    lacking = {f: side for f, side in sides.items() if not lake.table_exists(spark, side[0])}
    if not lacking or not lake.table_exists(spark, main):
        return
    progress = ledger.look(LakeTable(spark, main), pipeline).progress
    for fate, (name, columns) in lacking.items():
        if progress and (rows := progress.totals.kept(fate)):
            anew = to_type(f"CREATE TABLE {name} ({columns}) USING iceberg")
            raise TableMissing(
                f"table {name} does not exist, and {rows} rows of pipeline {pipeline} are "
                f"{fate}, which it is to hold: it was dropped or renamed. Nothing was written. "
                "Rename it back, or name it in the spec as it is called now. To go on without "
                f"those rows, which the audit will then miss, type: {anew}"
            )


def require_columns(table: LakeTable, record: StructType) -> None:
    """Refuse a table that lacks what a row has: at the start, and where a column goes later."""
    there = {name.lower() for name in table.columns()}
    row = _with_added(record)
    lacking = StructType([field for field in row if field.name.lower() not in there])
    if lacking.fields:
        raise TableUnfit(
            f"{table.name} has no column {', '.join(lacking.names)}, which its rows have by the "
            "schema, the transform or as their place in Kafka. Nothing of them was written. Leave "
            "it out of the transform, or type: "
            + to_type(f"ALTER TABLE {table.name} ADD COLUMNS ({lake.columns_of(lacking)})")
        )


def _with_added(columns: StructType) -> StructType:
    return StructType([*columns, *ADDED])


def maintenance(spark: SparkSession, spec: PipelineSpec, tables: Tables) -> Maintenance:
    ages = Ages(spec.maintenance.expire_seconds, spec.maintenance.orphans_seconds)
    return Maintenance(spark, tables.main, tuple(tables.sides.values()), ages)


def name_topics(spark: SparkSession, tables: Tables) -> None:
    """Where a topic was made anew, a row's partition and offset no longer tell its place alone."""
    for table in (tables.main, *tables.sides.values()):
        lake.add_column(spark, table.name, TOPIC, "string")
        table.refresh()


def make_markable(spark: SparkSession, quarantine: LakeTable) -> None:
    """A quarantine whose rows are read once more says what became of each."""
    for column, kind in lake.MARKS.items():
        lake.add_column(spark, quarantine.name, column, kind)
    quarantine.refresh()


def waiting(spark: SparkSession, quarantine: LakeTable, progress: Progress) -> DataFrame:
    """The pipeline's own rows in quarantine that were not taken yet, as Kafka gave them."""
    quarantine.refresh()
    head = quarantine.head()
    rows = spark.table(quarantine.name).limit(0) if head is None else quarantine.at(head, spark)
    if lake.OUTCOME in rows.columns:
        rows = rows.filter(lake.open_to_replay())
    time, kept = F.col("kafka_timestamp").alias("timestamp"), ("key", "value", "headers")
    place = (F.col("kafka_partition"), F.col("kafka_offset"), F.col(TOPIC))
    ours = rows.filter(within(progress.positions, *place))
    return ours.select(*_as_in_kafka(place[2]), time, *kept)


def places(rows: DataFrame, topic: str) -> DataFrame:
    """Where rows of main are from; `topic`: that of rows which name none."""
    named = F.coalesce(TOPIC, F.lit(topic)) if TOPIC in rows.columns else F.lit(topic)
    return rows.select(*_as_in_kafka(named))


def _as_in_kafka(topic: Column) -> tuple[Column, ...]:
    partition, offset = F.col("kafka_partition"), F.col("kafka_offset")
    return topic.alias("topic"), partition.alias("partition"), offset.alias("offset")


def in_epochs(rows: DataFrame, epochs: Epochs) -> DataFrame:
    """Rows of Kafka under the names that the ledger has for their topics."""
    if not epochs.names:
        return rows
    topic = F.col("topic")
    for name, known in epochs.names.items():
        topic = F.when(F.col("topic") == name, F.lit(known)).otherwise(topic)
    return rows.withColumn("topic", topic)


def shape(spec: PipelineSpec, record: StructType, tables: Tables) -> Shape:
    fields = tuple(F.col(RECORD)[name].alias(name) for name in record.names)
    good = (*fields, *_place(), _now(), *_topic(tables.main))
    quarantine = tables.sides[QUARANTINED]
    bad = Aside(QUARANTINED, F.isnotnull(REASON), _whole(quarantine), quarantine)
    if spec.watermark is None:
        return Shape(good, (bad,))
    late = Aside("late", F.col(LATE), (*good, F.col(WATERMARK)), tables.sides.get("late"))
    return Shape(good, (bad, late))


def tombstones(spec: PipelineSpec, tables: Tables) -> Tombstones | None:
    """A tombstone's key and order come from Kafka: see UpsertSink."""
    if spec.deletes != "tombstone":
        return None
    key = F.col("key").cast("string").alias(spec.key[0])
    order = [F.col("timestamp").alias(name) for name in spec.order[:1]]
    order += [F.col(RECORD)[name].alias(name) for name in spec.order[1:]]
    kept = tables.sides["deleted"]
    return Tombstones(kept, (key, *order, *_place(), _now(), *_topic(kept)))


def _topic(table: LakeTable) -> tuple[Column, ...]:
    """A row's topic, in tables that name it (see `name_topics`)."""
    return (F.col("topic").alias(TOPIC),) if TOPIC in table.columns() else ()


def _place() -> tuple[Column, ...]:
    return F.col("partition").alias("kafka_partition"), F.col("offset").alias("kafka_offset")


def _now() -> Column:
    return planner.batch_time().alias("processed_at")


def _whole(quarantine: LakeTable) -> tuple[Column, ...]:
    """A record as Kafka has it, with the reason that it was not taken."""
    there = quarantine.columns()
    marks = [F.lit(None).cast(kind).alias(name) for name, kind in lake.MARKS.items()
             if name in there]  # fmt: skip
    kept = (F.col(name) for name in ("key", "value", "headers", REASON))
    return (
        F.col("topic").alias(TOPIC),
        *_place(),
        F.col("timestamp").alias("kafka_timestamp"),
        *kept,
        _now(),
        *marks,
    )
