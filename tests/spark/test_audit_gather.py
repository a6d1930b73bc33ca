"""The audit on real Iceberg tables, to which is done what people and machines do to tables."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from oncelake.errors import TableMissing, TableUnfit
from oncelake.model import STAMP_KEY, Span
from oncelake.ops.audit import Names, Report, Verdict, audit, gather
from oncelake.ops.audit.tables import TableState, read_table
from tests.spark.handmade import PIPELINE, Handmade, tamper

MERGE_ON_READ = "'write.delete.mode'='merge-on-read'"


@pytest.fixture(scope="module")
def base(spark: SparkSession) -> Handmade:
    return build(spark, "base")


@pytest.fixture
def made(base: Handmade, name: str) -> Handmade:
    """A table that everything may be done to but expiry."""
    return base.copy(name)


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return re.sub(r"\W", "_", request.node.name.removeprefix("test_"))


def build(spark: SparkSession, name: str, properties: str = "") -> Handmade:
    """Two claims and three batches: 38 rows in main, offsets 3 and 15 of partition 0 bad."""
    table = Handmade(spark, name, properties)
    table.batch({0: 10, 1: 10}, bad=[(0, 3)])
    table.claim()
    table.batch({0: 5})
    table.batch({0: 5, 1: 10}, bad=[(0, 15)])
    return table


def audited(made: Handmade) -> Report:
    return audit(made.spark, Names(made.main, PIPELINE, made.sides), kafka=None)


def kinds(report: Report) -> list[str]:
    return [finding.kind for finding in report.findings]


def stamp_at(metadata: dict[str, Any], index: int) -> dict[str, str]:
    summary: dict[str, str] = metadata["snapshots"][index]["summary"]
    return summary


def test_an_untouched_table_is_clean(made: Handmade) -> None:
    report = audited(made)
    assert report.findings == ()
    assert report.headline == (
        "audit: clean — 40 read = 38 written + 2 quarantined; 2 partitions, gaps 0, overlaps 0"
    )
    assert [(p.covered, p.rows, p.sides) for p in report.partitions] == [
        (Span(0, 20), 18, {"quarantined": 2, "late": 0}),
        (Span(0, 20), 20, {"quarantined": 0, "late": 0}),
    ]
    assert (report.rows, report.stamps, report.batches) == (38, 5, 3)
    assert report.sides == {"quarantined": 2, "late": 0}
    assert not report.topic_compared


@pytest.mark.parametrize(
    "properties",
    ["", f"'format-version'='2', {MERGE_ON_READ}", f"'format-version'='3', {MERGE_ON_READ}"],
    ids=["copy-on-write", "position-deletes", "deletion-vectors"],
)
def test_a_row_deleted_by_hand_is_found_and_named(
    spark: SparkSession, name: str, properties: str
) -> None:
    made = build(spark, name, properties)
    spark.sql(f"DELETE FROM {made.main} WHERE kafka_partition = 1 AND kafka_offset = 7")
    report = audited(made)
    assert (kinds(report), report.verdict) == (["rows-deleted"], Verdict.EXPLAINED)
    message = report.findings[0].message
    assert "offsets in no table: articles.raw.v1[1] 7)" in message
    assert f"snapshot {made.snapshots()[-1]} of " in message
    assert message.endswith("removed 1")


def test_a_deleted_row_whose_delete_was_expired_is_a_violation(
    spark: SparkSession, name: str
) -> None:
    made = build(spark, name)
    made.spark.sql(f"DELETE FROM {made.main} WHERE kafka_partition = 1 AND kafka_offset = 7")
    made.batch({0: 5})
    made.expire(retain=1)
    report = audited(made)
    assert (kinds(report), report.verdict) == (["rows-missing"], Verdict.VIOLATED)
    assert "articles.raw.v1[1] 7)" in report.findings[0].message


def test_a_row_copied_in_twice_is_a_violation_and_named(made: Handmade) -> None:
    made.spark.sql(
        f"INSERT INTO {made.main} SELECT * FROM {made.main} "
        "WHERE kafka_partition = 0 AND kafka_offset = 12"
    )
    report = audited(made)
    assert (kinds(report), report.verdict) == (["duplicates"], Verdict.VIOLATED)
    assert "articles.raw.v1[0] offset 12 (2 in main" in report.findings[0].message


def test_an_altered_stamp_is_a_violation(made: Handmade, warehouse: Path) -> None:
    def alter(metadata: dict[str, Any]) -> None:
        summary = stamp_at(metadata, 3)
        assert '"written":5' in summary[STAMP_KEY]
        summary[STAMP_KEY] = summary[STAMP_KEY].replace('"written":5', '"written":6')

    tamper(warehouse / "catalog.db", made.main, alter)
    report = audited(made)
    assert "stamp-altered" in kinds(report)
    assert report.verdict is Verdict.VIOLATED


@pytest.mark.parametrize("index", [0, 2, 4])
def test_a_stamp_taken_away_is_a_violation(made: Handmade, warehouse: Path, index: int) -> None:
    tamper(warehouse / "catalog.db", made.main, lambda found: stamp_at(found, index).pop(STAMP_KEY))
    assert audited(made).verdict is Verdict.VIOLATED


@pytest.mark.parametrize("retain", [3])
def test_expired_snapshots_leave_the_table_clean(
    spark: SparkSession, name: str, retain: int
) -> None:
    made = build(spark, name)
    made.expire(retain)
    report = audited(made)
    assert (report.findings, report.stamps) == ((), retain)


def test_expiry_of_every_stamp_leaves_the_table_clean(spark: SparkSession, name: str) -> None:
    made = build(spark, name)
    made.spark.sql(f"INSERT INTO {made.main} SELECT 'x', NULL, NULL WHERE false")
    made.expire(retain=1)
    report = audited(made)
    assert (report.findings, report.stamps) == ((), 0)


def test_a_compacted_table_is_clean(made: Handmade) -> None:
    done = made.spark.sql(
        f"CALL demo.system.rewrite_data_files(table => '{made.main}', "
        "options => map('rewrite-all', 'true'))"
    ).collect()
    assert done[0].rewritten_data_files_count > 1
    assert audited(made).findings == ()


def test_rows_appended_by_others_are_explained_with_their_number(made: Handmade) -> None:
    made.spark.sql(f"INSERT INTO {made.main} VALUES ('a', NULL, NULL), ('b', 9, 1), ('c', 0, -1)")
    report = audited(made)
    assert (kinds(report), report.verdict) == (["foreign-rows"], Verdict.EXPLAINED)
    assert "1 without Kafka coordinates, 2 with those of another" in report.findings[0].message
    assert (report.foreign, report.rows) == (3, 38)


def test_a_row_replaced_by_hand_is_named(made: Handmade) -> None:
    made.spark.sql(f"DELETE FROM {made.main} WHERE kafka_partition = 0 AND kafka_offset = 12")
    made.spark.sql(f"INSERT INTO {made.main} VALUES ('forged', 0, 12)")
    report = audited(made)
    assert (kinds(report), report.verdict) == (["rows-changed"], Verdict.EXPLAINED)
    assert all(str(s) in report.findings[0].message for s in made.snapshots()[-2:])


def test_rows_without_any_progress_keep_their_place(made: Handmade) -> None:
    made.spark.sql(f"ALTER TABLE {made.main} UNSET TBLPROPERTIES ('oncelake.progress.articles')")
    report = audited(made)
    assert report.verdict is Verdict.VIOLATED
    told = " ".join(finding.message for finding in report.findings)
    assert " 0 without Kafka coordinates, 38 with those of another" in told


def test_rows_beyond_progress_are_a_violation(made: Handmade) -> None:
    made.spark.sql(f"INSERT INTO {made.main} VALUES ('a', 0, 20), ('b', 0, 9000000000)")
    report = audited(made)
    assert kinds(report) == ["rows-beyond-progress"]
    assert report.findings[0].message.startswith("2 rows")


def test_a_rolled_back_table_is_a_violation(made: Handmade) -> None:
    target = made.snapshots()[-2]
    made.spark.sql(f"CALL demo.system.rollback_to_snapshot('{made.main}', {target})").collect()
    report = audited(made)
    assert "rolled-back" in kinds(report)
    assert report.verdict is Verdict.VIOLATED


def test_a_quarantined_row_copied_into_main_is_a_violation(made: Handmade) -> None:
    made.spark.sql(f"INSERT INTO {made.main} VALUES ('a', 0, 3)")
    report = audited(made)
    assert set(kinds(report)) == {"in-both", "rows-unaccounted"}
    assert any("articles.raw.v1[0] offset 3 " in f.message for f in report.findings)


def test_a_dropped_quarantine_table_is_a_violation(made: Handmade) -> None:
    made.spark.sql(f"DROP TABLE {made.side}")
    assert set(kinds(audited(made))) == {"side-behind", "rows-missing"}


def test_quarantine_that_has_yet_to_follow_is_explained(made: Handmade) -> None:
    made.batch({1: 5}, bad=[(1, 20), (1, 21)], follow=False)
    report = audited(made)
    assert (kinds(report), report.pending) == (["pending"], 2)


def test_late_rows_in_their_table_are_clean_beside_bad_ones(made: Handmade) -> None:
    made.batch({1: 5}, bad=[(1, 20)], late=[(1, 21), (1, 22)])
    report = audited(made)
    assert report.findings == ()
    assert (report.rows, report.sides) == (40, {"quarantined": 3, "late": 2})
    assert report.partitions[1].sides == {"quarantined": 1, "late": 2}


def test_what_is_done_to_late_rows_is_found_and_named(made: Handmade) -> None:
    """One is copied into main, one doubled, one deleted; and somebody adds rows of their own."""
    made.batch({1: 5}, late=[(1, 20), (1, 21), (1, 22)])
    made.spark.sql(f"INSERT INTO {made.main} VALUES ('a', 1, 20)")
    made.spark.sql(f"INSERT INTO {made.late} SELECT * FROM {made.late} WHERE kafka_offset = 21")
    made.spark.sql(f"INSERT INTO {made.late} (value) VALUES (X'00'), (X'01')")
    made.spark.sql(f"DELETE FROM {made.late} WHERE kafka_offset = 22")
    report = audited(made)
    found = {(f.kind, f.where): f.message for f in report.findings}
    assert found.keys() == {
        ("in-both", f"{made.main} and {made.side} and {made.late}"),
        ("rows-unaccounted", made.main),
        ("duplicates", made.late),
        ("rows-deleted", made.late),
        ("foreign-rows", made.late),
    }
    assert found["duplicates", made.late].endswith("articles.raw.v1[1] offset 21 (2 late)")
    (shared,) = (message for (kind, _), message in found.items() if kind == "in-both")
    assert shared.endswith(": articles.raw.v1[1] offset 20 (1 in main, 1 late)")


def test_late_rows_whose_table_the_audit_is_not_told_of_are_a_violation(made: Handmade) -> None:
    made.batch({1: 5}, late=[(1, 20)])
    names = Names(made.main, PIPELINE, {"quarantined": made.side})
    assert kinds(audit(made.spark, names, kafka=None)) == ["side-unknown"]


def test_a_key_twice_is_explained_where_it_is_looked_for_only_so_far_back(made: Handmade) -> None:
    names = Names(made.main, PIPELINE, made.sides, key=("title",))
    assert audit(made.spark, names, kafka=None).verdict is Verdict.VIOLATED
    report = audit(made.spark, replace(names, bounded=True), kafka=None)
    assert (kinds(report), report.verdict) == (["key-twice"], Verdict.EXPLAINED)


def test_a_pipeline_that_goes_on_during_the_audit_does_not_disturb_it(
    made: Handmade, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two batches land after main was read and before the side tables are."""
    made.batch({1: 5}, bad=[(1, 20)], late=[(1, 21)], follow=False)

    def read_late(spark: SparkSession, name: str) -> TableState | None:
        if name == made.side and made.progress.sequence == 6:
            made.follow()
            made.batch({1: 5}, bad=[(1, 25)], late=[(1, 26), (1, 27)])
            made.batch({0: 5}, bad=[(0, 20)])
        return read_table(spark, name)

    monkeypatch.setattr(gather, "read_table", read_late)
    report = audited(made)
    assert made.progress.sequence == 8
    assert report.findings == ()
    assert (report.rows, report.sides) == (41, {"quarantined": 3, "late": 1})
    assert audited(made).totals.read == 55


def test_a_table_filled_from_two_topics_must_name_them(made: Handmade) -> None:
    text = made.progress.to_text().replace('"positions":{', '"positions":{"clicks":{"0":[0,0]},')
    made._set(made.main, f"oncelake.progress.{PIPELINE}", text)
    with pytest.raises(TableUnfit, match=r"no column kafka_topic.*articles\.raw\.v1, clicks"):
        audited(made)


def test_a_table_that_is_not_there_is_an_error(spark: SparkSession) -> None:
    with pytest.raises(TableMissing, match=r"demo\.news\.absent"):
        audit(spark, Names("demo.news.absent", PIPELINE, sides={}), kafka=None)


def test_a_table_the_pipeline_never_wrote_to_is_explained(spark: SparkSession) -> None:
    spark.sql("CREATE NAMESPACE IF NOT EXISTS demo.news")
    spark.sql("CREATE TABLE demo.news.fresh (kafka_partition int, kafka_offset bigint)")
    sides = {"quarantined": "demo.news.fresh_bad"}
    report = audit(spark, Names("demo.news.fresh", PIPELINE, sides), kafka=None)
    assert (kinds(report), report.verdict) == (["never-run"], Verdict.EXPLAINED)
