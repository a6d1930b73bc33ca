"""The look-up joins by a hash of the key, and yet the key alone decides."""

from __future__ import annotations

import itertools

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from oncelake import lake
from oncelake.lake import LakeTable
from oncelake.planner import local_rows
from oncelake.rules import Versions
from oncelake.sinks.lookup import RANK, Lookup

VERSIONS = Versions(key=("id",), order=("version",))
_numbers = itertools.count(1)


def _table(spark: SparkSession) -> LakeTable:
    name = f"demo.lookups.t{next(_numbers)}"
    columns = "id bigint, version int, kafka_partition int, kafka_offset bigint"
    lake.create_table(spark, name, columns)
    rows = ", ".join(f"({number}, 5, 0, {number})" for number in range(6))
    spark.sql(f"INSERT INTO {name} SELECT /*+ COALESCE(1) */ * FROM VALUES {rows}")
    return LakeTable(spark, name)


def _newest(spark: SparkSession, kind: str) -> DataFrame:
    """A later version of 2, one of 4 that comes too late, and one that is new."""
    rows = local_rows(
        spark, [(2, 6, 10), (4, 1, 11), (9, 1, 12)], f"id {kind}, version int, offset bigint"
    )
    rank = VERSIONS.rank([F.col("version")], F.lit(0), F.col("offset"))
    return rows.select("id", rank.alias(RANK))


@pytest.mark.parametrize("kind", ["bigint", "int", "smallint"])
def test_a_key_is_found_whatever_its_type_in_the_batch(spark: SparkSession, kind: str) -> None:
    _assert_found(spark, kind)


def test_keys_of_one_hash_are_told_apart(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def alike(self: Lookup, rows: DataFrame, there: DataFrame) -> Column:
        del self, there
        return F.pmod(rows["id"], F.lit(1)).cast("bigint")

    monkeypatch.setattr(Lookup, "_hash_of", alike)
    _assert_found(spark, "bigint")


def _assert_found(spark: SparkSession, kind: str) -> None:
    table = _table(spark)
    head = table.head()
    assert head is not None
    found = Lookup(VERSIONS, table, None, None).find(_newest(spark, kind), head, None)
    assert list(found.gone.values()) == [[2]]
    assert found.stale == [(0, 11)]
