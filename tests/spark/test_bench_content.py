"""The digest by which benchmarks know that two sides wrote the same rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from bench.content import Content, content

Rows = Sequence[tuple[str, int, int]]
ROWS: Rows = (("a", 0, 0), ("b", 0, 1), ("c", 1, 0))


def content_of(spark: SparkSession, rows: Rows, hour: int = 1) -> Content:
    now = datetime(2026, 1, 5, hour, tzinfo=UTC)
    columns = "title string, kafka_partition int, kafka_offset bigint, processed_at timestamp"
    frame = spark.createDataFrame([(*row, now) for row in rows], columns)
    frame.createOrReplaceTempView("content")
    return content(spark, "content")


def test_neither_order_nor_the_time_of_processing_counts(spark: SparkSession) -> None:
    assert content_of(spark, ROWS) == content_of(spark, ROWS[::-1], hour=2)


def test_a_value_or_a_coordinate_counts(spark: SparkSession) -> None:
    seen = {
        content_of(spark, ROWS),
        content_of(spark, (("x", 0, 0), *ROWS[1:])),
        content_of(spark, (("a", 0, 2), *ROWS[1:])),
    }
    assert len(seen) == 3


def test_a_pair_of_equal_rows_does_not_cancel_out(spark: SparkSession) -> None:
    twice_a, twice_b = (*ROWS, ROWS[0], ROWS[0]), (*ROWS, ROWS[1], ROWS[1])
    assert content_of(spark, twice_a) != content_of(spark, twice_b)


def test_an_empty_table_has_a_content_too(spark: SparkSession) -> None:
    assert content_of(spark, ()) == Content(0, 0, 0)
