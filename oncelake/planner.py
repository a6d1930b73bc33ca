"""What Spark's planner does to a plan unasked, and how to keep it from that."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F


def never() -> Column:
    """False, but neither constant nor deterministic for Spark.

    It leaves an expression that holds this where it stands: neither worked out beforehand, nor
    copied into every place that uses it.
    """
    return F.spark_partition_id() < 0


def passed(value: Column, kind: str) -> Column:
    """A value that is passed to generated code, and not part of it.

    Spark writes a number into the code it generates, so that a batch with another one is other
    code, which the JVM has to compile and warm up once more: for batches of two seconds that took
    up to a quarter of the throughput. An array it passes to the code as a value.
    """
    return F.when(never(), F.array(F.lit(None).cast(kind))).otherwise(F.array(value))[0]


def batch_time() -> Column:
    """The time of the batch: `current_timestamp()`, the same for all its rows."""
    return passed(F.current_timestamp(), "timestamp")


def in_few_tasks(rows: DataFrame) -> DataFrame:
    """One machine reads with a task a core, and not with one a partition of Kafka.

    Each task writes files of its own, so this gives fewer and larger ones, which also the next
    batches find faster. How many tasks a cluster can take, whose executors come and go, is not
    known: there each partition stays a task.
    """
    spark = rows.sparkSession
    return rows.coalesce(spark.sparkContext.defaultParallelism) if _is_local(spark) else rows


def _is_local(spark: SparkSession) -> bool:
    """In one JVM, that is: `local-cluster` has several."""
    return (spark.sparkContext.master or "").partition("[")[0] == "local"


@contextmanager
def as_written(spark: SparkSession) -> Iterator[None]:
    """Run plans as they are written, on one machine.

    By default Spark plans a query anew after each of its shuffles, to find the number of tasks that
    fits. Here that number is known, and with a batch's small queries it takes longer than it saves.
    So it is with compressing what is kept in memory for a moment.
    """
    if not _is_local(spark):
        yield
        return
    cores = spark.sparkContext.defaultParallelism
    ours = {
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.inMemoryColumnarStorage.compressed": "false",
        "spark.sql.shuffle.partitions": str(cores),
    }
    before = {key: str(spark.conf.get(key)) for key in ours}
    try:
        for key, value in ours.items():
            spark.conf.set(key, value)
        yield
    finally:
        for key, former in before.items():
            spark.conf.set(key, former)


def local_rows(spark: SparkSession, rows: Sequence[tuple[object, ...]], fields: str) -> DataFrame:
    """Rows of ours as a DataFrame, by JSON: createDataFrame would start Python workers for them."""
    names = [field.split()[0] for field in fields.split(", ")]
    text = json.dumps([dict(zip(names, row, strict=True)) for row in rows])
    parsed = F.from_json(
        F.lit(text), f"array<struct<{fields.replace(' ', ':').replace(',:', ',')}>>"
    )
    return spark.range(1).select(F.inline(parsed))
