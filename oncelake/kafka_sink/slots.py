"""How a batch's rows become messages, and come to their slots: the same way every time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, DataType, IntegerType, StringType

from oncelake import source
from oncelake.errors import TerminalError
from oncelake.kafka_sink.send import DIGEST
from oncelake.model import Ranges

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
ORDER = "_order"

Messages = Callable[[DataFrame], DataFrame]


def slots_of(spark: SparkSession) -> int:
    """Into how many slots rows are dealt by their keys: as many as can be sent at once."""
    return max(2, spark.sparkContext.defaultParallelism)


def messages(stream: DataFrame, key: str | None) -> Messages:
    """How a stream's rows become messages: columns as Spark's own sink takes them; where there is
    no `value`, all columns as JSON. `key` names the column that is the message's key."""
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
    columns = _columns(names, key)
    return lambda rows: rows.select(*columns)


def _columns(names: Sequence[str], key: str | None) -> list[Column]:
    if "value" not in names:
        assert key is not None
        kept = [F.col(f"`{name}`") for name in names if name not in COORDINATES]
        return [
            F.col(f"`{key}`").cast("string").cast("binary").alias("key"),
            F.to_json(F.struct(*kept)).cast("binary").alias("value"),
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


def hashed(rows: DataFrame) -> DataFrame:
    """With a hash of each row, by which a slot's rows can be compared with what it sent."""
    return rows.withColumn(DIGEST, F.xxhash64(*(F.col(name) for name in rows.columns)))


def dealt_by_key(rows: DataFrame, slots: int) -> DataFrame:
    """Rows of one key in one slot, in the order in which they came."""
    # Without a key there is no order to keep: such rows are spread by what they hold.
    by = F.coalesce(F.col("key"), F.col("value")) if "key" in rows.columns else F.col("value")
    slot = F.pmod(F.xxhash64(by), F.lit(slots)).cast("int")
    numbered = rows.withColumn(ORDER, F.monotonically_increasing_id())
    dealt = numbered.repartitionById(slots, slot)
    return dealt.sortWithinPartitions(ORDER).drop(ORDER)
