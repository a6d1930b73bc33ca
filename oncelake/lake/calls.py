"""Java's static methods as columns: what Spark has no function for, without leaving the JVM."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.classic.column import Column as ClassicColumn

from oncelake.lake.java import JAVA_ERRORS, JavaObject, java_class

Call = Callable[[Column], Column]
UTF8_CLASS = "com.google.common.base.Utf8"
KAFKA_CLASS = "org.apache.kafka.common.utils.Utils"


def utf8_check(spark: SparkSession) -> Call:
    """Says of a string whether it is valid UTF-8, and of a null nothing.

    Spark's own check walks over a string byte by byte through `Unsafe`: for an article of 500 bytes
    it took a microsecond or more. Guava, which Spark brings along, walks over the array and took a
    fifth.
    """
    try:
        guava = _of_bytes(spark, UTF8_CLASS, "isWellFormed", "BooleanType")
        spark.range(0).select(guava(F.lit("tried once"))).schema  # noqa: B018 (it is analysed)
    except JAVA_ERRORS:
        return F.is_valid_utf8
    return guava


def kafka_hash(spark: SparkSession) -> Call:
    """The hash of a key by which Kafka's Java clients choose its partition; of a null, null."""
    return _of_bytes(spark, KAFKA_CLASS, "murmur2", "IntegerType")


def _of_bytes(spark: SparkSession, name: str, method: str, answers: str) -> Call:
    """A static method of an array of bytes."""
    jvm: JavaObject = spark._jvm
    sql = jvm.org.apache.spark.sql
    static_call = sql.catalyst.expressions.objects.StaticInvoke
    given_class = java_class(spark, name)
    data_type, no_function = _scala(sql.types, answers), _scala(jvm.scala, "None")
    to_seq, of_null_null, deterministic = jvm.PythonUtils.toSeq, True, True

    def call(column: Column) -> Column:
        given = sql.classic.ExpressionUtils.expression(column.cast("binary")._jc)
        called = static_call(
            given_class, data_type, method, to_seq([given]), to_seq([]),
            of_null_null, of_null_null, deterministic, no_function,
        )  # fmt: skip
        return ClassicColumn(sql.classic.ExpressionUtils.column(called))

    return call


def _scala(package: JavaObject, name: str) -> JavaObject:
    """A Scala object."""
    return getattr(getattr(package, f"{name}$"), "MODULE$")
