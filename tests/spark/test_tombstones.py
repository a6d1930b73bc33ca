"""A record without a value deletes its key, and an older version does not bring it back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oncelake.decode import REASON
from oncelake.reading import Reading
from tests.spark.records import Record, Records

UPSERT = """\
mode: upsert
key: id
order: published_at
deletes: tombstone
"""
Make = Callable[[str], Records]


@pytest.fixture
def records(spark: SparkSession, warehouse: Path, tmp_path: Path) -> Records:
    return Records(spark, warehouse, tmp_path, UPSERT)


def _article(name: str, minute: float, partition: int = 0) -> Record:
    return Record(partition, name, at=minute, sent=minute)


def _gone(name: str | None, minute: float, partition: int = 0) -> Record:
    return Record(partition, name, sent=minute, kind="gone")


def _assert_as_expected(records: Records) -> None:
    assert records.held() == records.expected()
    report = records.audit()
    assert report.verdict == "clean", report.findings


@pytest.mark.faults
def test_a_tombstone_takes_its_row_away(records: Records) -> None:
    records.send(_article("a", 1), _article("b", 1))
    records.write()
    records.send(_gone("a", 2), _article("c", 2))
    counts = records.write().counts
    assert (counts.deleted, counts.removed, counts.written) == (1, 1, 1)
    assert set(records.held().main) == {"b", "c"}
    _assert_as_expected(records)


def test_an_older_version_does_not_bring_the_row_back_and_a_newer_one_does(
    records: Records,
) -> None:
    records.send(_article("a", 1), _gone("a", 10), _article("another", 1))
    assert records.write().counts.deleted == 1
    records.send(_article("a", 9), _article("a", 5, partition=1))
    assert records.write().counts.superseded == 2
    assert set(records.held().main) == {"another"}
    records.restart()
    records.send(_article("a", 11))
    assert records.write().counts.inserted == 1
    records.send(_article("a", 9.5), _gone("a", 10.5))
    assert records.write().counts.superseded == 2
    _assert_as_expected(records)


@pytest.mark.faults
def test_a_tombstone_of_a_key_that_is_not_there_is_remembered(records: Records) -> None:
    records.send(_gone("a", 10))
    counts = records.write().counts
    assert (counts.deleted, counts.removed) == (1, 0)
    records.send(_article("a", 9))
    records.write()
    assert not records.held().main
    _assert_as_expected(records)


def test_a_tombstone_without_a_key_is_quarantined(records: Records) -> None:
    records.send(_gone(None, 1), _article("a", 1))
    assert records.write().counts.quarantined == 1
    _assert_as_expected(records)
    assert _reasons(records) == ["a tombstone whose key is null"]


def test_what_is_wrong_with_a_record_that_deletes_nothing_is_said(records: Records) -> None:
    read = Reading.of(records.spark, records.spec)
    kinds = "topic string, partition int, offset bigint, timestamp timestamp, key binary, "
    values = [(None, None), (b"\xff", None), (b"\xff", b"\xff"), (b"", None), (b"a", None)]
    rows = records.spark.createDataFrame(
        [("t", 0, offset, None, key, value) for offset, (key, value) in enumerate(values)],
        f"{kinds}value binary",
    )
    said = read.due(rows, None).rows().orderBy("offset").select(REASON).collect()
    assert [row[0] for row in said] == [
        "a tombstone whose key is null",
        "a tombstone whose key is not valid UTF-8",
        "not an Avro Article: its bytes do not fit the schema",
        None,
        None,
    ]


def test_an_empty_key_is_a_key_like_any_other(records: Records) -> None:
    records.send(_article("", 1), _article("a", 1))
    records.write()
    records.send(_gone("", 2))
    assert records.write().counts.removed == 1
    assert set(records.held().main) == {"a"}
    _assert_as_expected(records)


def test_a_tombstone_is_never_late(spark: SparkSession, warehouse: Path, tmp_path: Path) -> None:
    """However far behind the watermark, and it does not move that."""
    mark = "watermark: {column: published_at, delay: 5 minutes}\n"
    records = Records(spark, warehouse, tmp_path, UPSERT + mark)
    records.send(_article("a", 1), _article("b", 100))
    records.write()
    before = records.progress.watermark
    records.send(_gone("a", 2), _article("c", 2), _gone("b", 10_000))
    counts = records.write().counts
    assert (counts.removed, counts.deleted, counts.late) == (2, 2, 1)
    assert records.progress.watermark == before
    assert records.held() == records.expected(delay=5)


def _reasons(records: Records) -> list[str]:
    rows = records.spark.table(f"{records.table}_quarantine").collect()
    return [row["reason"] for row in rows]


@pytest.mark.faults
def test_many_deleted_and_many_again(records: Records) -> None:
    names = [f"n{number}" for number in range(40)]
    records.send(*(_article(name, 1, number % 2) for number, name in enumerate(names)))
    records.write()
    records.send(*(_gone(name, 2, number % 2) for number, name in enumerate(names[::2])))
    records.send(*(_article(name, 3, number % 2) for number, name in enumerate(names[1::2])))
    counts = records.write().counts
    assert (counts.removed, counts.updated) == (20, 20)
    records.send(*(_article(name, 1.5) for name in names), *(_article(name, 4) for name in names))
    assert records.write().counts.inserted == 20
    _assert_as_expected(records)
