"""With a horizon a key is looked for only near a row's own time, and only those files are read."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import DataFrame, SparkSession

from oncelake.rules import Versions
from oncelake.sinks.lookup import DAY, MOST_SPANS, Horizon, Lookup, spans_of
from tests.spark.records import MINUTE, NOON, Record, Records

DAYS = 24 * 60
VERSIONS = Versions(("id",), ("published_at",))
HORIZON = """\
mode: upsert
key: id
order: published_at
horizon: 3 days
"""


@pytest.fixture
def records(spark: SparkSession, warehouse: Path, tmp_path: Path) -> Records:
    return Records(spark, warehouse, tmp_path, HORIZON)


def _article(name: str, day: float) -> Record:
    return Record(0, name, at=day * DAYS, sent=day * DAYS)


def _rows(records: Records, spark: SparkSession) -> list[tuple[str, int]]:
    rows = spark.table(records.table).select("id", "kafka_offset").collect()
    return sorted((row["id"], row["kafka_offset"]) for row in rows)


def test_within_it_the_latest_version_survives(records: Records, spark: SparkSession) -> None:
    records.send(_article("a", 3), _article("b", 3))
    records.write()
    records.send(_article("a", 6), _article("b", 0.5))
    counts = records.write().counts
    assert (counts.updated, counts.superseded) == (1, 1)
    assert _rows(records, spark) == [("a", 2), ("b", 1)]
    assert records.audit().verdict == "clean"


@pytest.mark.faults
def test_beyond_it_a_key_may_stand_twice_and_the_audit_says_why(
    records: Records, spark: SparkSession
) -> None:
    records.send(_article("a", 0))
    records.write()
    records.send(_article("a", 30))
    assert records.write().counts.inserted == 1
    assert _rows(records, spark) == [("a", 0), ("a", 1)]
    report = records.audit()
    assert (report.verdict, [f.kind for f in report.findings]) == ("explained", ["key-twice"])


@pytest.mark.faults
def test_a_session_elsewhere_looks_into_the_same_days(
    records: Records, spark: SparkSession
) -> None:
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        for name in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
            spark.conf.set("spark.sql.session.timeZone", name)
            # At eight in the morning in UTC, when both zones are on another day than at noon.
            records.send(_article(name, 3 - 4 / 24))
            records.write()
            records.send(_article(name, 0 - 4 / 24))
            assert records.write().counts.superseded == 1
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone or "UTC")


@pytest.mark.faults
def test_a_tombstone_deletes_a_row_beyond_it(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    """It tells nothing of the time of its row: one that was kept would be a deletion not done."""
    records = Records(spark, warehouse, tmp_path, HORIZON + "deletes: tombstone\n")
    records.send(_article("old", 0), Record(0, "timeless", at=None, sent=0), _article("new", 29))
    records.write()
    gone = [Record(0, name, sent=30 * DAYS, kind="gone") for name in ("old", "timeless")]
    records.send(*gone, _article("new", 30))
    counts = records.write().counts
    assert (counts.deleted, counts.removed, counts.updated) == (2, 2, 1)
    assert [name for name, _ in _rows(records, spark)] == ["new"]
    assert records.audit().verdict == "clean"


@pytest.mark.faults
def test_rows_without_a_time_meet_their_like(records: Records) -> None:
    records.send(Record(0, "a", at=None))
    records.write()
    records.send(Record(0, "a", at=None))
    assert records.write().counts.updated == 1


@pytest.mark.faults
def test_only_files_near_by_are_read(records: Records, spark: SparkSession) -> None:
    for day in (0, 10, 20, 30):
        records.send(_article(f"d{day}", day))
        records.write()
    head = records.main.head()
    assert head is not None
    day_20 = (NOON // DAY) + 20
    lookup = Lookup(VERSIONS, records.main, None, Horizon("published_at", 3 * DAY))
    assert _files_read(lookup.there(spark, head, [day_20])) == 1
    assert _files_read(lookup.there(spark, head, [day_20, day_20 + 10])) == 2


def _files_read(rows: DataFrame) -> int:
    """As the scan itself counts them."""
    plan = rows._jdf.queryExecution().executedPlan()
    rows.collect()
    plan.execute().count()
    return int(plan.collectLeaves().head().metrics().apply("resultDataFiles").value())


@pytest.mark.parametrize("micros", [-(2**63), -1, 2**63 - 1])
def test_the_first_and_the_last_time_there_is_are_times_like_others(
    records: Records, spark: SparkSession, micros: int
) -> None:
    at = cast(float, Fraction(micros - NOON, MINUTE))  # a float itself is not that exact
    records.send(Record(0, "a", at=at), _article("b", 3))
    records.write()
    records.send(Record(0, "a", at=at), _article("b", 2))
    counts = records.write().counts
    assert (counts.updated, counts.superseded) == (1, 1)
    assert _rows(records, spark) == [("a", 2), ("b", 1)]
    assert records.audit().verdict == "clean"


def test_stretches_of_days_are_put_together_and_not_too_many() -> None:
    assert list(spans_of([3, 4], DAY)) == [(2 * DAY, 6 * DAY)]
    assert list(spans_of([3, 5], DAY)) == [(2 * DAY, 7 * DAY)]
    assert list(spans_of([7, 3], DAY)) == [(2 * DAY, 5 * DAY), (6 * DAY, 9 * DAY)]
    far = list(spans_of(range(0, 10 * MOST_SPANS, 10), 0))
    assert len(far) == MOST_SPANS
    assert far[0][0] == 0
    assert far[-1][1] == (10 * MOST_SPANS - 9) * DAY
