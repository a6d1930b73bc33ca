"""The append sink: what became of each row is known, by one job a batch wherever it can be."""

from __future__ import annotations

import itertools

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from oncelake import lake
from oncelake.errors import Unaccounted
from oncelake.lake import LakeTable, Staged
from oncelake.model import Counts, Span, TopicPartition
from oncelake.sinks.append import AppendSink
from oncelake.sinks.intake import Aside, Due, Shape

TP = TopicPartition("t", 0)
_numbers = itertools.count(1)


class Watched(LakeTable):
    """Remembers how often it was staged to: each is a job that reads the batch."""

    staged = 0

    def stage(self, rows: DataFrame) -> Staged:
        self.staged += 1
        return super().stage(rows)


class Leaky(LakeTable):
    """Loses rows."""

    def stage(self, rows: DataFrame) -> Staged:
        return super().stage(rows.limit(3))


class Site:
    def __init__(self, spark: SparkSession, judged: bool = True,
                 leaky: bool = False) -> None:  # fmt: skip
        name = f"demo.sink.t{next(_numbers)}"
        lake.create_table(spark, name, "offset bigint", (), {})
        lake.create_table(spark, f"{name}_bad", "offset bigint, reason string", (), {})
        self.main, self.bad = Watched(spark, name), Watched(spark, f"{name}_bad")
        bad = Leaky(spark, f"{name}_bad") if leaky else self.bad
        columns = F.col("offset"), F.col("reason")
        aside = Aside("quarantined", F.isnotnull("reason"), columns, bad)
        self.judged = judged
        self.sink = AppendSink(Shape(columns[:1], (aside,) if judged else ()), self.main)

    def stage(self, rows: DataFrame, offsets: int) -> Counts:
        due = Due(rows, one_an_offset=self.judged)
        return self.sink.stage(due, {TP: Span(0, offsets)}).counts


@pytest.fixture
def site(spark: SparkSession) -> Site:
    return Site(spark)


def _rows(spark: SparkSession, every_bad: int = 10**9, every_missing: int = 10**9) -> DataFrame:
    """A hundred offsets, less those missing."""
    bad = (F.col("id") + 1) % every_bad == 0
    rows = spark.range(100).filter((F.col("id") + 1) % every_missing != 0)
    return rows.select(
        F.col("id").alias("offset"), F.when(bad, F.lit("is bad")).alias("reason")
    ).repartition(2)


def test_a_batch_that_fills_its_offsets_is_read_once(spark: SparkSession, site: Site) -> None:
    assert site.stage(_rows(spark), 100) == Counts(read=100, written=100)
    assert (site.main.staged, site.bad.staged) == (1, 0)


def test_bad_rows_are_read_a_second_time(spark: SparkSession, site: Site) -> None:
    for _ in range(2):
        counts = site.stage(_rows(spark, every_bad=10), 100)
        assert counts == Counts(read=100, written=90, quarantined=10)
    assert (site.main.staged, site.bad.staged) == (2, 2)


def test_a_batch_of_bad_rows_alone(spark: SparkSession, site: Site) -> None:
    assert site.stage(_rows(spark, every_bad=1), 100) == Counts(read=100, quarantined=100)


def test_after_a_batch_with_holes_rows_are_counted_on_the_way(
    spark: SparkSession, site: Site
) -> None:
    for _ in range(3):
        assert site.stage(_rows(spark, every_missing=4), 100) == Counts(read=75, written=75)
    assert (site.main.staged, site.bad.staged) == (3, 1)


def test_holes_and_bad_rows(spark: SparkSession, site: Site) -> None:
    for _ in range(2):
        counts = site.stage(_rows(spark, every_bad=10, every_missing=4), 100)
        assert counts == Counts(read=75, written=70, quarantined=5)


def test_an_empty_batch_of_holes(spark: SparkSession, site: Site) -> None:
    for _ in range(2):
        assert site.stage(_rows(spark, every_missing=1), 100) == Counts()


def test_a_users_rows_need_not_be_one_an_offset(spark: SparkSession) -> None:
    site = Site(spark, judged=False)
    rows = _rows(spark)
    for due, count in ((rows, 100), (rows.union(rows), 200), (rows.filter("offset < 7"), 7)):
        assert site.stage(due, 100) == Counts(read=count, written=count)
    assert site.bad.staged == 0


def test_rows_that_end_nowhere_are_refused(spark: SparkSession) -> None:
    site = Site(spark, leaky=True)
    with pytest.raises(
        Unaccounted, match=r"100 rows were read from t\[0\] \[0, 100\), but written 90 "
    ):
        site.stage(_rows(spark, every_bad=10), 100)
