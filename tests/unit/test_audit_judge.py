"""The verdict: what is clean, what others explain, and which rows are a violation."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oncelake.model import STAMP_KEY, Span, Stamp
from oncelake.ops.audit.evidence import Evidence, Foreign, History, Side, TopicFacts
from oncelake.ops.audit.judge import judge, short_ranges
from oncelake.ops.audit.report import Verdict
from tests.unit.audit_forgery import with_side
from tests.unit.audit_history import ORIGIN, P0, P1, TOPIC, Scene, kinds, partition, scene


def test_an_untouched_table_is_clean() -> None:
    report = judge(scene().evidence())
    assert report.findings == ()
    assert report.verdict is Verdict.CLEAN
    assert report.headline == (
        "audit: clean — 65 read = 63 written + 2 quarantined; 2 partitions, gaps 0, overlaps 0"
    )


def test_a_report_says_per_partition_what_is_covered_and_what_is_left() -> None:
    made = scene()
    report = judge(replace(made.evidence(), topic=made.topic(lag=7)))
    first = report.partitions[0]
    assert (first.tp, first.covered, first.lag) == (P0, Span(0, 40), 7)
    assert (first.rows, first.sides) == (38, {"quarantined": 2, "late": 0, "deleted": 0})
    assert report.verdict is Verdict.CLEAN


def test_without_kafka_the_topic_is_not_compared_and_that_is_said() -> None:
    report = judge(replace(scene().evidence(), topic=None))
    assert report.verdict is Verdict.CLEAN
    assert not report.topic_compared
    assert report.partitions[0].lag is None


def test_compaction_is_clean() -> None:
    made = scene()
    made.main.rewrite()
    assert judge(made.evidence()).verdict is Verdict.CLEAN


@pytest.mark.parametrize("oldest", range(1, 7))
def test_expiry_of_any_number_of_snapshots_is_clean(oldest: int) -> None:
    made = scene()
    made.main.rewrite()
    made.main.expire(oldest)
    made.quarantine.expire(1)
    assert judge(made.evidence()).findings == ()


def test_offsets_without_a_record_are_clean() -> None:
    made = Scene({0: 0})
    made.batch({0: 10}, filtered=[(P0, 3), (P0, 4)])
    assert judge(made.evidence()).verdict is Verdict.CLEAN


def test_stamps_of_another_pipeline_are_not_ours() -> None:
    made = scene()
    made.main.commit("append", {STAMP_KEY: replace(_a_stamp(), pipeline="other").to_text()})
    assert judge(made.evidence()).verdict is Verdict.CLEAN


def _a_stamp() -> Stamp:
    return Stamp("batch", "articles", 1, 1, "a", ORIGIN)


def test_foreign_rows_are_explained_with_their_number() -> None:
    made = scene()
    made.main.append_foreign(4)
    report = judge(made.evidence())
    assert report.verdict is Verdict.EXPLAINED
    assert [f.kind for f in report.findings] == ["foreign-rows"]
    assert "4 rows are of others" in report.findings[0].message


def test_rows_of_ours_deleted_by_others_are_explained_by_snapshot_time_and_number() -> None:
    made = scene()
    made.main.delete((P0, 5), (P1, 6))
    report = judge(made.evidence())
    assert [f.kind for f in report.findings] == ["rows-deleted"]
    assert report.verdict is Verdict.EXPLAINED
    assert "snapshot 1007 of 2026-01-02 03:04:12 UTC removed 2" in report.findings[0].message
    assert "in no table" not in report.findings[0].message


def test_a_delete_explains_no_more_rows_than_it_removed() -> None:
    made = scene()
    made.main.delete((P0, 5))
    made.main.lose((P0, 6))
    assert "rows-missing" in kinds(made.evidence())


def test_a_delete_explains_no_rows_written_after_it() -> None:
    made = Scene({0: 0})
    made.batch({0: 10})
    made.main.commit("delete", {"deleted-records": 1})
    made.main.append_foreign(1)
    made.batch({0: 10})
    made.main.lose((P0, 15))
    assert "rows-missing" in kinds(made.evidence())


def test_a_delete_of_foreign_rows_explains_no_loss_of_ours() -> None:
    made = scene()
    made.main.append_foreign(1)
    made.main.foreign = 0
    made.main.commit("delete", {"deleted-records": 1})
    assert kinds(made.evidence(), Verdict.EXPLAINED) == {"rows-changed"}
    made.main.lose((P0, 5))
    assert "rows-missing" in kinds(made.evidence())


@pytest.mark.parametrize(
    "writes",
    [
        [("delete", {"deleted-records": 1}), ("append", {"added-records": 1})],
        [("append", {"added-records": 1}), ("delete", {"added-position-deletes": 1})],
        [("overwrite", {"added-records": 7, "deleted-records": 7})],
    ],
    ids=["deleted and put back", "put there and deleted", "updated"],
)
def test_rows_that_others_wrote_in_place_of_ours_are_named(
    writes: list[tuple[str, dict[str, int]]],
) -> None:
    made = scene()
    for operation, summary in writes:
        made.main.commit(operation, summary)
    report = judge(made.evidence())
    assert [f.kind for f in report.findings] == ["rows-changed"]
    assert report.verdict is Verdict.EXPLAINED
    assert "cannot be told" in report.findings[0].message
    assert all(str(s) in report.findings[0].message for s in made.main.snapshots[-len(writes) :])


def test_deletion_vectors_count_as_deletes() -> None:
    made = scene()
    made.main.lose((P0, 5))
    made.main.commit("delete", {"added-position-deletes": 3, "removed-position-deletes": 2})
    assert kinds(made.evidence(), Verdict.EXPLAINED) == {"rows-deleted"}


def test_quarantine_that_has_not_followed_yet_is_explained_as_pending() -> None:
    made = scene()
    made.batch({0: 5}, bad=[(P0, 41), (P0, 42)], follow=False)
    report = judge(made.evidence())
    assert [f.kind for f in report.findings] == ["pending"]
    assert (report.verdict, report.pending) == (Verdict.EXPLAINED, 2)


def test_what_is_pending_outlives_a_claim() -> None:
    made = scene()
    made.batch({0: 5}, bad=[(P0, 41)], follow=False)
    made.claim()
    assert [f.kind for f in judge(made.evidence()).findings] == ["pending"]
    made.follow()
    assert judge(made.evidence()).verdict is Verdict.CLEAN


def test_a_table_the_pipeline_never_wrote_to_is_explained() -> None:
    side = Side("quarantined", History("q", exists=False))
    evidence = Evidence("articles", History("t"), (side,))
    assert kinds(evidence, Verdict.EXPLAINED) == {"never-run"}


def test_two_pipelines_whose_rows_cannot_be_told_apart_are_named() -> None:
    evidence = replace(scene().evidence(), neighbours=("clicks",), topic_column=False)
    assert kinds(evidence, Verdict.EXPLAINED) == {"shared-table"}


def test_a_row_that_vanished_without_a_delete_is_a_violation() -> None:
    made = scene()
    made.main.lose((P0, 5))
    evidence = made.evidence()
    assert kinds(evidence) == {"rows-missing"}
    assert short_ranges(evidence) == [(P0, Span(0, 10)), (P1, Span(0, 10))]
    holes = replace(evidence.rows, holes=((P0, Span(5, 6)), (P1, Span(7, 10))))
    message = judge(replace(evidence, rows=holes)).findings[0].message
    assert f"offsets in no table: {P0} 5, {P1} 7–9" in message


def test_a_row_of_an_expired_stamp_that_vanished_is_a_violation() -> None:
    made = scene()
    made.main.lose((P0, 5))
    made.main.expire(4)
    assert kinds(made.evidence()) == {"rows-missing"}


def test_a_row_copied_in_twice_is_a_violation_and_named() -> None:
    made = scene()
    made.main.append_copy([(P0, 5)])
    report = judge(made.evidence())
    assert [f.kind for f in report.findings] == ["duplicates"]
    assert f"{P0} offset 5 (2 in main)" in report.findings[0].message


def test_rows_beyond_progress_are_a_violation() -> None:
    made = scene()
    made.main.append_copy([(P0, 40), (P0, 41)])
    assert kinds(made.evidence()) == {"rows-beyond-progress"}


def test_rows_before_the_pipeline_began_are_a_violation() -> None:
    made = Scene({0: 100})
    made.batch({0: 10})
    made.main.append_copy([(P0, 99)])
    assert kinds(made.evidence()) == {"rows-before-first"}


def test_a_row_the_stamp_does_not_count_is_a_violation() -> None:
    made = Scene({0: 0})
    made.batch({0: 10}, filtered=[(P0, 3)])
    made.main.append_copy([(P0, 3)])
    assert kinds(made.evidence()) == {"rows-unaccounted"}


def test_a_record_in_main_and_in_quarantine_is_a_violation() -> None:
    made = scene()
    made.main.append_copy([(P0, 12)])
    assert kinds(made.evidence()) == {"in-both", "rows-unaccounted"}


def test_a_quarantined_row_that_vanished_is_a_violation() -> None:
    made = scene()
    made.quarantine.lose((P0, 12))
    assert kinds(made.evidence()) == {"rows-missing"}


def test_a_quarantined_row_there_twice_is_a_violation() -> None:
    made = scene()
    made.quarantine.append_copy([(P0, 12)])
    assert kinds(made.evidence()) == {"duplicates"}


def test_a_quarantine_table_that_is_gone_is_a_violation() -> None:
    made = scene()
    made.quarantine.rows.clear()
    gone = with_side(made.evidence(), "quarantined", None, History("q", exists=False))
    assert kinds(gone) == {"rows-missing", "side-behind"}


def topic(changes: dict[int, Span], cluster: str = "cluster-1", topic_id: str = "topic-1"
          ) -> TopicFacts:  # fmt: skip
    offsets = {P0: Span(0, 40), P1: Span(0, 25)}
    offsets.update({partition(p): span for p, span in changes.items()})
    return TopicFacts(cluster, {TOPIC: topic_id}, offsets)


@pytest.mark.parametrize(
    ("kind", "facts"),
    [
        ("beyond-topic", topic({0: Span(0, 39)})),
        ("lost-to-retention", topic({0: Span(41, 50)})),
        ("lost-to-retention", topic({2: Span(3, 9)})),
        ("other-cluster", topic({}, cluster="cluster-2")),
        ("other-topic", topic({}, topic_id="topic-2")),
        ("topic-missing", replace(topic({}), topic_ids={}, offsets={})),
        ("partition-missing", replace(topic({}), offsets={P0: Span(0, 40)})),
    ],
)
def test_a_topic_that_is_not_what_was_read_is_a_violation(kind: str, facts: TopicFacts) -> None:
    assert kinds(replace(scene().evidence(), topic=facts)) == {kind}


def test_a_partition_added_since_is_due_from_its_beginning() -> None:
    report = judge(replace(scene().evidence(), topic=topic({2: Span(0, 9)})))
    assert report.verdict is Verdict.CLEAN
    assert report.partitions[2].lag == 9


def test_foreign_rows_in_quarantine_are_explained() -> None:
    made = scene()
    evidence = made.evidence()
    rows = replace(evidence.rows, foreign_sides={"quarantined": Foreign(unknown=3)})
    assert kinds(replace(evidence, rows=rows), Verdict.EXPLAINED) == {"foreign-rows"}


def test_a_rewrite_explains_no_loss() -> None:
    made = scene()
    made.main.lose((P0, 5))
    made.main.commit("replace", {"deleted-records": 63, "added-records": 62})
    assert kinds(made.evidence()) == {"rows-missing"}


def test_deletes_by_equality_explain_at_most_the_rows_there_were() -> None:
    made = scene()
    made.main.lose((P0, 5), (P0, 6))
    made.main.commit("delete", {"added-equality-deletes": 1, "total-records": 63})
    assert kinds(made.evidence(), Verdict.EXPLAINED) == {"rows-deleted"}


def test_a_copy_and_a_record_in_both_tables_are_told_apart() -> None:
    made = scene()
    made.main.append_copy([(P0, 5), (P0, 12)])
    found = {f.kind: f.message for f in judge(made.evidence()).findings}
    assert "offset 12" not in found["duplicates"]
    assert "offset 5 " not in found["in-both"]
