"""How a batch's rows become messages, and come to their slots: the same way every time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType

from oncelake import source
from oncelake.errors import TerminalError
from oncelake.kafka_sink.landed import VERSIONS
from oncelake.kafka_sink.parts import PART
from oncelake.kafka_sink.send import DIGEST
from oncelake.model import Ranges
from oncelake.planner import in_few_tasks

BYTES: tuple[type[DataType], ...] = (StringType, BinaryType)
TAKEN: dict[str, tuple[type[DataType], ...]] = {
    "key": BYTES,
    "value": BYTES,
    "headers": (ArrayType,),
    "topic": (StringType,),
    "partition": (IntegerType,),
}
"""The columns of Spark's own sink, and what each may be."""
COORDINATES = ("kafka_topic", "kafka_partition", "kafka_offset")
ORDER, SLOT = "_order", "_slot"

ORDERED = ("key", "value", "headers")
"""All that tells one message from another, once its partition is chosen."""

JSON = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}
"""Rows as JSON, with all that a timestamp holds: Spark's default ends at milliseconds."""

Messages = Callable[[DataFrame], DataFrame]


def slots_of(spark: SparkSession) -> int:
    """Into how many slots rows are dealt by their keys: as many as can be sent at once."""
    return max(2, spark.sparkContext.defaultParallelism)


def messages(stream: DataFrame, key: str | None) -> Messages:
    """How a stream's rows become messages: columns as Spark's own sink takes them; where there is
    no `value`, all columns as JSON. `key` names the column that is the message's key. Kafka's
    coordinates, where the stream has them, stay beside the message."""
    names = stream.columns
    if key is not None and key not in names:
        raise TerminalError(f"{key} is no column of the stream, which has {', '.join(names)}")
    if key is None and "value" not in names:
        raise TerminalError(
            f"the stream has the columns {', '.join(names)}, but no value: give it one, or say "
            "which column is the key, and every row is sent as JSON"
        )
    for name, types in TAKEN.items():
        if name in names and "value" in names:
            _require_type(stream, name, types)
    columns = _columns(names, key) + [F.col(name) for name in COORDINATES if name in names]
    return lambda rows: rows.select(*columns)


def _columns(names: Sequence[str], key: str | None) -> list[Column]:
    if "value" not in names:
        assert key is not None
        kept = [F.col(f"`{name}`") for name in names if name not in COORDINATES]
        return [
            F.col(f"`{key}`").cast("string").cast("binary").alias("key"),
            F.to_json(F.struct(*kept), JSON).cast("binary").alias("value"),
        ]
    keyed = [F.col(f"`{key}`").cast("string").cast("binary").alias("key")] if key else []
    plain = [F.col("key").cast("binary").alias("key")] if "key" in names and not key else []
    rest = [F.col(name) for name in ("headers", "topic", "partition") if name in names]
    return [*keyed, *plain, F.col("value").cast("binary").alias("value"), *rest]


def _require_type(stream: DataFrame, name: str, types: tuple[type[DataType], ...]) -> None:
    found = stream.schema[name].dataType
    if not isinstance(found, types):
        raise TerminalError(
            f"the column {name} is {found.simpleString()}; Kafka takes "
            f"{' or '.join(each.typeName() for each in types)}"
        )


def within(rows: DataFrame, ranges: Ranges) -> DataFrame:
    """Only rows of these offsets of their source."""
    if not set(COORDINATES[1:]) <= set(rows.columns):
        raise TerminalError(
            "Spark's checkpoint was lost or is an old copy: of this batch only a part is to be "
            "sent, and the rows do not tell which. Nothing was sent. Keep Kafka's coordinates in "
            "the stream, as columns kafka_partition and kafka_offset, or restore the checkpoint"
        )
    topic = F.col("kafka_topic") if "kafka_topic" in rows.columns else None
    return rows.filter(
        source.within(ranges, F.col("kafka_partition"), F.col("kafka_offset"), topic)
    )


def without_coordinates(rows: DataFrame) -> DataFrame:
    return rows.drop(*COORDINATES)


def hashed(rows: DataFrame) -> DataFrame:
    """With a hash of each message, by which a slot's can be compared with what it sent."""
    names = [name for name in rows.columns if name not in COORDINATES]
    return rows.withColumn(DIGEST, F.xxhash64(*names))


def as_read(rows: DataFrame) -> DataFrame:
    """Rows as Spark reads them: what each of its tasks reads is a part. On one machine a task has
    several parts, one after the other, as many tasks do nothing but begin and end."""
    told = rows.withColumn(PART, F.spark_partition_id())
    return without_coordinates(in_few_tasks(told))


def dealt_by_key(rows: DataFrame, slots: int) -> DataFrame:
    """Rows of one key in one slot, in the order in which they were read: by their coordinates,
    where they have them, since a step on the way may have put some rows behind others."""
    # Without a key there is no order to keep: such rows are spread by what they hold.
    by = F.coalesce(F.col("key"), F.col("value")) if "key" in rows.columns else F.col("value")
    slot = F.pmod(F.xxhash64(by), F.lit(slots)).cast("int")
    numbered = rows.withColumns({ORDER: F.monotonically_increasing_id(), PART: slot})
    dealt = numbered.repartitionById(slots, PART)
    places = [name for name in COORDINATES if name in rows.columns]
    return without_coordinates(dealt.sortWithinPartitions(*places, ORDER).drop(ORDER))


def dealt_by_target(
    rows: DataFrame, partitions: int, key_hash: Callable[[Column], Column]
) -> DataFrame:
    """Rows in the partition that they will be sent to, in an order that is always the same: of one
    key only the newest, with the number of those it stands for; then by key, and where there is no
    key by all that a row holds. Rows that are still alike are the same message."""
    names = [name for name in ORDERED if name in rows.columns]
    key = F.col("key") if "key" in names else F.lit(None).cast("binary")
    ranked = [*(name for name in COORDINATES if name in rows.columns), *names]
    placed = rows.withColumn(SLOT, _partition(rows, key, partitions, key_hash))
    # Rows without a key are not versions of each other: apart, each by what it holds.
    alike = Window.partitionBy(SLOT, key, F.when(F.isnull(key), F.xxhash64("value")))
    newest = F.row_number().over(alike.orderBy(*(F.desc(name) for name in ranked)))
    keyed = F.isnotnull(key)
    kept = placed.select(
        *ranked,
        SLOT,
        F.when(keyed, F.count(F.lit(1)).over(alike)).otherwise(1).alias(VERSIONS),
        F.when(keyed, newest).otherwise(1).alias(ORDER),
    ).filter(F.col(ORDER) == 1)
    dealt = kept.repartitionById(partitions, SLOT)
    return dealt.sortWithinPartitions(key, *ranked).select(*names, VERSIONS)


def _partition(rows: DataFrame, key: Column, partitions: int,
               key_hash: Callable[[Column], Column]) -> Column:  # fmt: skip
    """As Kafka's Java clients choose it; without a key, by what the row holds."""
    by_key = key_hash(key).bitwiseAND(F.lit(0x7FFFFFFF)) % partitions
    by_value = F.pmod(F.xxhash64("value"), F.lit(partitions)).cast("int")
    if "partition" not in rows.columns:
        return F.coalesce(by_key, by_value)
    given = F.col("partition")
    wrong = F.concat(F.lit("the topic has no partition "), given.cast("string"))
    there = F.isnull(given) | ((given >= 0) & (given < partitions))
    return F.when(there, F.coalesce(given, by_key, by_value)).otherwise(F.raise_error(wrong))
