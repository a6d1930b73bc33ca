"""Two things that Spark's planner does to a plan, and how to keep it from them."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def never() -> Column:
    """False, but neither constant nor deterministic for Spark.

    It leaves an expression that holds this where it stands: neither worked out beforehand, nor
    copied into every place that uses it.
    """
    return F.spark_partition_id() < 0


def batch_time() -> Column:
    """The time of the batch: `current_timestamp()`, but not part of the generated code.

    Spark writes a number into the code it generates, so that a batch with another time is other
    code, which the JVM has to compile and warm up once more: for batches of a few seconds that
    took a quarter of the throughput. An array it passes to the code as a value.
    """
    now = F.array(F.current_timestamp())
    return F.when(never(), F.array(F.lit(None).cast("timestamp"))).otherwise(now)[0]
