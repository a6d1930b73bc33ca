"""A user's own step: SQL or a function, counted, and named where it fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oncelake.errors import SpecError, Unaccounted
from tests.spark.records import Record, Records

FUNCTIONS = """\
from pyspark.sql import functions as F

def louder(rows):
    return rows.withColumn("title", F.upper("title")).filter("id <> 'ad'")

def twice(rows):
    return rows.union(rows)

def breaks(rows):
    raise ValueError("no such thing")

def nothing(rows):
    return None

@F.udf("string")
def _shout(title):
    return title + "!"

def by_udf(rows):
    return rows.withColumn("title", _shout("title"))
"""


class Made:
    def __init__(self, spark: SparkSession, warehouse: Path, folder: Path) -> None:
        self._parts = spark, warehouse, folder

    def __call__(self, more: str) -> Records:
        return Records(*self._parts, more)


@pytest.fixture
def make(spark: SparkSession, warehouse: Path, tmp_path: Path) -> Made:
    (tmp_path / "newsroom_functions.py").write_text(FUNCTIONS)
    return Made(spark, warehouse, tmp_path)


def _titles(records: Records) -> list[str]:
    return sorted(row["title"] for row in records.spark.table(records.table).collect())


def _send(records: Records) -> None:
    records.send(
        Record(0, "a", title="t"), Record(0, "ad"), Record(1, "b", title="t"),
        Record(1, "x", kind="corrupt"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "transform"),
    [
        ("", "newsroom_functions:louder"),
        (
            "mode: upsert\nkey: id\norder: published_at\n",
            "SELECT id, upper(title) AS title, published_at, kafka FROM rows WHERE id <> 'ad'",
        ),
    ],
    ids=["a function, appended", "SQL, upserted"],
)
def test_what_it_leaves_out_is_counted(make: Made, mode: str, transform: str) -> None:
    records = make(f"{mode}transform: {transform}\n")
    for _ in range(2):
        _send(records)
        counts = records.write().counts
        assert (counts.read, counts.filtered, counts.quarantined) == (4, 1, 1)
    if not mode:
        assert _titles(records) == ["T"] * 4
    else:
        assert _titles(records) == ["T"] * 2
    assert records.audit().verdict == "clean"


def test_the_rules_come_after_it(make: Made) -> None:
    """A key that it makes null is quarantined, whole, as Kafka has it."""
    sql = "SELECT CASE WHEN id <> 'a' THEN id END AS id, title, published_at, kafka FROM rows"
    records = make(f"mode: upsert\nkey: id\ntransform: {sql}\n")
    _send(records)
    counts = records.write().counts
    assert (counts.written, counts.quarantined, counts.filtered) == (2, 2, 0)
    bad = records.spark.table(f"{records.table}_quarantine")
    rows = {row["reason"][:3]: row for row in bad.collect()}
    assert rows["key"]["value"] == Record(0, "a", title="t").value
    assert records.audit().verdict == "clean"


@pytest.mark.faults
def test_it_makes_columns_of_its_own(make: Made) -> None:
    sql = "SELECT id, length(title) AS letters, published_at, kafka FROM rows"
    records = make(f"transform: {sql}\n")
    _send(records)
    records.write()
    assert {row["letters"] for row in records.spark.table(records.table).collect()} == {
        1,
        len("0-1"),
    }


@pytest.mark.faults
def test_tombstones_pass_it_by(make: Made) -> None:
    records = make(
        "mode: upsert\nkey: id\norder: published_at\ndeletes: tombstone\n"
        "transform: newsroom_functions:louder\n"
    )
    _send(records)
    records.write()
    records.send(Record(0, "a", sent=10, kind="gone"))
    counts = records.write().counts
    assert (counts.read, counts.deleted, counts.removed, counts.filtered) == (1, 1, 1, 0)
    assert records.audit().verdict == "clean"


@pytest.mark.faults
def test_its_own_functions_reach_the_workers(make: Made) -> None:
    records = make("transform: newsroom_functions:by_udf\n")
    records.send(Record(0, "a", title="t"))
    records.write()
    assert _titles(records) == ["t!"]


def test_one_that_makes_rows_is_refused(make: Made) -> None:
    records = make("transform: newsroom_functions:twice\n")
    _send(records)
    with pytest.raises(Unaccounted, match="gave 3 rows more than it was given"):
        records.write()
    assert not records.spark.table(records.table).count()


def test_one_that_makes_a_row_and_leaves_out_another_is_refused_where_rows_have_a_key(
    make: Made,
) -> None:
    """As many rows as it was given: by counts alone nothing is wrong."""
    sql = (
        "SELECT id, title, published_at, kafka FROM rows WHERE id <> 'ad' "
        "UNION ALL SELECT 'other', title, published_at, kafka FROM rows WHERE id = 'a'"
    )
    records = make(f"mode: upsert\nkey: id\ntransform: {sql}\n")
    _send(records)
    with pytest.raises(Unaccounted, match="1 are of a record that another row is of already"):
        records.write()
    assert not records.spark.table(records.table).count()


@pytest.mark.parametrize(
    ("transform", "said"),
    [
        ("newsroom_functions:breaks", "no such thing"),
        ("newsroom_functions:nothing", "gave a NoneType"),
        ("newsroom_functions:missing", "has no function missing"),
        ("no_such_module:f", "cannot be imported: .*Put its file into"),
        ("SELECT id FROM rows", "gives id and not the column kafka"),
        ("SELECT id, nonsense, kafka FROM rows", "nonsense"),
        ("SELECT id, 1 AS kafka FROM rows", "kafka"),
        ("SELECT id, 1 AS kafka_offset, kafka FROM rows", "kafka_offset, which the table adds"),
    ],
)
def test_a_wrong_one_is_told_before_anything_is_read(make: Made, transform: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        make(f"transform: {transform}\n")


def test_a_key_that_it_takes_away_is_told(make: Made) -> None:
    with pytest.raises(SpecError, match="key: id is no column of the rows: title, published_at"):
        make("mode: upsert\nkey: id\ntransform: SELECT title, published_at, kafka FROM rows\n")
