"""Late rows and versions: what is behind the watermark is kept apart, the latest survives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from oncelake.errors import TableUnfit
from tests.advice import advised
from tests.spark.records import MINUTE, NOON, PARTITIONS, Record, Records

UPSERT = """\
mode: upsert
key: id
order: published_at
"""
TWO_HOURS = "watermark: {column: published_at, delay: 2 hours}\n"
DROPPED = "watermark: {column: published_at, delay: 2 hours, late: drop}\n"
DELAY = 120

Make = Callable[[str], Records]


@pytest.fixture
def make(spark: SparkSession, warehouse: Path, tmp_path: Path) -> Make:
    return lambda more: Records(spark, warehouse, tmp_path, more)


def _assert_as_expected(records: Records, keep: bool = True) -> None:
    assert records.held() == records.expected(DELAY, keep=keep)
    assert records.progress.totals.balanced
    report = records.audit()
    assert report.verdict == "clean", report.findings


def _at(minute: float, name: str = "a", partition: int = 0) -> Record:
    return Record(partition, name, at=minute, sent=minute)


@pytest.mark.parametrize("mode", ["", UPSERT], ids=["append", "upsert"])
def test_rows_behind_the_watermark_are_kept_in_the_late_table(make: Make, mode: str) -> None:
    records = make(TWO_HOURS + mode)
    records.send(_at(0, "a"), _at(300, "b"))
    assert records.write().counts.late == 0, "in the first batch nothing is late"
    # Of delay exactly two hours: not more than that.
    records.send(_at(180, "c"), _at(179.999, "d"), _at(10, "e", partition=1), _at(400, "f"))
    counts = records.write().counts
    assert (counts.written, counts.late, counts.dropped) == (2, 2, 0)
    _assert_as_expected(records)
    assert set(records.held().main) == {"a", "b", "c", "f"}


@pytest.mark.faults
def test_late_rows_say_what_they_were_behind(make: Make, spark: SparkSession) -> None:
    records = make(TWO_HOURS)
    records.send(_at(300))
    records.write()
    records.send(_at(0))
    records.write()
    row = spark.sql(f"SELECT unix_micros(watermark) w FROM {records.table}_late").collect()[0]
    assert row["w"] == NOON + 180 * MINUTE


@pytest.mark.faults
def test_late_rows_are_dropped_by_choice_and_counted(make: Make) -> None:
    records = make(DROPPED + UPSERT)
    records.send(_at(300, "a"))
    records.write()
    records.send(_at(0, "b"), _at(310, "c"))
    counts = records.write().counts
    assert (counts.written, counts.late, counts.dropped) == (1, 1, 1)
    _assert_as_expected(records, keep=False)


def test_one_record_of_the_year_9999_makes_no_other_late(make: Make, spark: SparkSession) -> None:
    records = make(TWO_HOURS)
    year_9999 = (253_370_764_800_000_000 - NOON) / MINUTE
    far, ahead = Record(0, "far", at=year_9999, sent=1), Record(1, "ahead", at=5.01, sent=0)
    just_so = Record(1, "just so", at=5, sent=0)
    records.send(_at(0, "a"), far, _at(1, "b"), ahead, just_so)
    records.write()
    records.send(_at(2, "c"), _at(3, "d", partition=1))
    assert records.write().counts.late == 0
    _assert_as_expected(records)
    bad = spark.table(f"{records.table}_quarantine").select("reason").collect()
    assert {row["reason"] for row in bad} == {
        "published_at is more than 300 s ahead of its time in Kafka"
    }


def test_a_record_without_its_time_is_quarantined(make: Make) -> None:
    records = make(TWO_HOURS + UPSERT)
    records.send(Record(0, "a", at=None), _at(0, "b"), Record(0, None), Record(1, "x", kind="gone"))
    assert records.write().counts.quarantined == 3
    _assert_as_expected(records)


def test_a_batch_that_comes_again_is_judged_as_before(make: Make) -> None:
    """The checkpoint is lost after each batch, and batches are planned anew."""
    records = make(TWO_HOURS + UPSERT)
    records.send(_at(0), _at(300, "b"))
    records.write()
    records.send(_at(10, "c"), _at(310), _at(200, "d", partition=1))
    records.write([3, 0])
    held = records.held()
    records.restart()
    assert records.write([3, 0]).kind == "skipped"
    assert records.held() == held
    records.restart()
    assert records.write().kind == "trimmed"
    _assert_as_expected(records)


@pytest.mark.faults
def test_the_watermark_never_goes_back(make: Make) -> None:
    records = make(TWO_HOURS)
    marks = []
    for minute in (100, 500, 400, 450, 501):
        records.send(_at(minute, str(minute)))
        records.write()
        records.restart()
        marks.append(records.progress.watermark)
    minutes = [None if mark is None else (mark - NOON) / MINUTE for mark in marks]
    assert minutes == [-20, 380, 380, 380, 381]
    _assert_as_expected(records)


def test_superseded_and_late_and_bad_in_one_batch(make: Make) -> None:
    records = make(TWO_HOURS + UPSERT)
    records.send(_at(300, "a"), _at(290, "b"))
    records.write()
    records.send(
        _at(310, "a"), _at(305, "a"), _at(280, "b"), _at(0, "c"), Record(0, "x", kind="corrupt"),
        Record(1, None, 300, 300), _at(310, "a", partition=1), _at(400, "d", partition=1),
    )  # fmt: skip
    counts = records.write().counts
    assert (counts.written, counts.superseded, counts.late, counts.quarantined) == (2, 3, 1, 2)
    assert (counts.inserted, counts.updated) == (1, 1)
    _assert_as_expected(records)


def test_a_table_that_keeps_no_bounds_is_refused(make: Make) -> None:
    records = make(TWO_HOURS)
    records.spark.sql(
        f"ALTER TABLE {records.table} SET TBLPROPERTIES ('write.metadata.metrics.default'='none')"
    )
    with pytest.raises(TableUnfit, match="no bounds of the column published_at") as refused:
        records.restart()
    records.spark.sql(advised(refused.value))
    records.restart()


@pytest.fixture
def zone(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    before = spark.conf.get("spark.sql.session.timeZone")
    yield lambda name: spark.conf.set("spark.sql.session.timeZone", name)
    assert before is not None
    spark.conf.set("spark.sql.session.timeZone", before)


@pytest.mark.faults
@pytest.mark.parametrize("name", ["America/New_York", "Pacific/Kiritimati"])
def test_time_zones_and_their_summer_time_play_no_part(
    make: Make, zone: Callable[[str], None], name: str
) -> None:
    """Over the hour that New York repeats on the first of November 2026, and a session's change."""
    repeated = (1_793_509_200_000_000 - NOON) / MINUTE
    zone(name)
    records = make(TWO_HOURS + UPSERT)
    records.send(_at(repeated, "a"), _at(repeated + 60, "b"))
    records.write()
    records.send(_at(repeated - 60, "edge"), _at(repeated - 61, "late"), _at(repeated + 120, "c"))
    assert records.write().counts.late == 1
    zone("UTC")
    records.send(_at(repeated, "edge2"), _at(repeated - 1, "late2"))
    assert records.write().counts.late == 1
    _assert_as_expected(records)


minutes = st.integers(0, 600)
records_of = st.lists(
    st.builds(
        Record,
        partition=st.integers(0, PARTITIONS - 1),
        id=st.sampled_from(["a", "b", "c", "d", "e", None]),
        at=st.one_of(minutes, st.none(), st.just(10**9)),
        sent=st.sampled_from([600, 600, 600, 0]),
        kind=st.sampled_from(["article"] * 8 + ["corrupt", "gone"]),
    ),
    max_size=12,
)
batches_of = st.lists(st.tuples(records_of, st.booleans()), min_size=1, max_size=5)


@pytest.mark.faults
@pytest.mark.parametrize("deletes", ["", "deletes: tombstone\n"], ids=["kept", "deleted"])
@settings(
    max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(batches=batches_of)
def test_any_sequence_is_as_the_oracle_says(
    make: Make, deletes: str, batches: list[tuple[list[Record], bool]]
) -> None:
    """Duplicates, reordering, ties, late, corrupt, null keys, tombstones, restarts."""
    records = make(TWO_HOURS + UPSERT + deletes)
    for sent, restart in batches:
        records.send(*sent)
        if restart:
            records.restart()
        records.write()
    _assert_as_expected(records)
