"""A record without a value deletes its key, and an older version does not bring it back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

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
