"""What Spark's planner is kept from: see oncelake/planner.py."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from oncelake import lake, planner
from oncelake.decode import REASON, Decoder
from oncelake.samples import articles
from oncelake.spec import DecodeSpec


def _generated_code(spark: SparkSession, now: Column) -> str:
    rows = spark.range(1).select("id", now.alias("now"))
    stages = rows._jdf.queryExecution().debug().codegenToSeq()
    assert stages.size() == 1
    return str(stages.apply(0)._2())


def test_two_batches_share_their_generated_code(spark: SparkSession) -> None:
    first, second = (_generated_code(spark, planner.batch_time()) for _ in range(2))
    assert first == second
    first, second = (_generated_code(spark, F.current_timestamp()) for _ in range(2))
    assert first != second, "Spark has mended this: batch_time is not needed any more"


def test_the_batch_time_is_one_and_of_now(spark: SparkSession) -> None:
    before = datetime.now(UTC).timestamp()
    rows = spark.range(100).repartition(4).select(planner.batch_time().alias("now"))
    times = {row.now.timestamp() for row in rows.collect()}
    assert len(times) == 1
    assert before - 0.001 <= times.pop() <= datetime.now(UTC).timestamp()


def test_one_machine_reads_with_a_task_a_core(spark: SparkSession) -> None:
    cores = spark.sparkContext.defaultParallelism
    for parts in (1, cores + 4):
        rows = planner.in_few_tasks(spark.range(100).repartition(parts))
        assert rows.rdd.getNumPartitions() == min(parts, cores)


def test_plans_run_as_they_are_written_and_only_for_so_long(spark: SparkSession) -> None:
    def adaptive() -> bool:
        return "AdaptiveSparkPlan" in _executed(spark.range(9).groupBy("id").count())

    def compressed() -> bool:
        return spark.conf.get("spark.sql.inMemoryColumnarStorage.compressed") == "true"

    def interrupted() -> None:
        with planner.as_written(spark):
            assert not adaptive()
            assert not compressed()
            raise ZeroDivisionError

    assert adaptive()
    with pytest.raises(ZeroDivisionError):
        interrupted()
    assert adaptive()
    assert compressed()


def test_a_record_is_decoded_once(spark: SparkSession) -> None:
    """A filter on the reason must not be pushed below the decoding."""
    schema = articles.SCHEMA_FILE
    decoder = Decoder(DecodeSpec("avro", schema, schema.read_text()))
    rows = spark.createDataFrame([(b"x",)], "value binary").repartition(1)
    good = decoder.decode(rows).filter(F.isnull(REASON)).select("record.*")
    assert _executed(good).count("from_avro(") == 1


def _executed(rows: DataFrame) -> str:
    return str(rows._jdf.queryExecution().executedPlan().toString())


EDGES = (
    b"", b"plain", "é€😀".encode(), b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
    b"\xf0\x9f\x98", b"\x80", b"a\xff", b"\xe2\x82", b"\xef\xbf\xbd", b"\xf8\x88\x80\x80\x80",
)  # fmt: skip


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _checked(spark: SparkSession, values: list[bytes]) -> list[bool | None]:
    rows = spark.createDataFrame([(i, v) for i, v in enumerate([*values, None])], "i int, v binary")
    valid = lake.utf8_check(spark)(F.col("v").cast("string"))
    return [row.valid for row in rows.select("i", valid.alias("valid")).orderBy("i").collect()]


def test_text_is_checked_as_python_would(spark: SparkSession) -> None:
    assert _checked(spark, list(EDGES)) == [*(_is_utf8(value) for value in EDGES), None]


@settings(max_examples=5, deadline=None)
@given(st.lists(st.binary(max_size=6) | st.text(max_size=6).map(str.encode), min_size=200))
def test_any_bytes_are_checked_as_python_would(spark: SparkSession, values: list[bytes]) -> None:
    assert _checked(spark, values) == [*(_is_utf8(value) for value in values), None]


def test_the_quick_check_is_the_one_in_use(spark: SparkSession) -> None:
    assert "isWellFormed" in _executed(
        spark.createDataFrame([("a",)], "v string").select(lake.utf8_check(spark)(F.col("v")))
    )


def test_without_guava_sparks_own_check_is_taken(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake.calls, "UTF8_CLASS", "com.example.NoSuchClass")
    assert lake.utf8_check(spark) is F.is_valid_utf8
