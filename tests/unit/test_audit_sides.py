"""Each side table holds just the rows of its fate: not one less, and none of another table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oncelake.model import SIDE_FATES, STAMP_KEY, Counts, Progress, Stamp
from oncelake.ops.audit import Names
from oncelake.ops.audit.evidence import History
from oncelake.ops.audit.judge import judge
from oncelake.ops.audit.report import Verdict
from tests.unit.audit_forgery import restamp, with_progress, with_side
from tests.unit.audit_history import P0, P1, SIDES, Scene, kinds
from tests.unit.audit_table import Coordinate

ONE_OF: dict[str, Coordinate] = {"quarantined": (P0, 2), "late": (P0, 4), "deleted": (P1, 3)}
"""An offset of each fate that is kept."""

each_fate = pytest.mark.parametrize("fate", SIDE_FATES)


def _scene(fates: tuple[str, ...] = SIDE_FATES) -> Scene:
    made = Scene(fates=fates)
    made.batch({0: 10, 1: 10}, bad=[(P0, 2)], late=[(P0, 4), (P1, 5)], dropped=[(P1, 6)],
               deleted=[(P1, 3)])  # fmt: skip
    made.claim()
    made.batch({0: 10}, late=[(P0, 14)])
    return made


WAITING = {"quarantined": 1, "late": 2, "deleted": 3}


def _waiting() -> Scene:
    """A batch more, of which no side table has its rows yet."""
    made = _scene()
    bad, *late = ((P0, offset) for offset in (20, 21, 22))
    deleted = [(P0, offset) for offset in (24, 25, 26)]
    made.batch({0: 8}, bad=[bad], late=late, dropped=[(P0, 23)], deleted=deleted, follow=False)
    return made


def test_rows_in_the_tables_of_their_fates_are_clean() -> None:
    report = judge(_scene().evidence())
    assert report.findings == ()
    assert report.sides == {"quarantined": 1, "late": 3, "deleted": 1}
    assert report.partitions[1].sides == {"quarantined": 0, "late": 1, "deleted": 1}
    assert report.headline.startswith(
        "audit: clean — 30 read = 24 written + 4 late + 1 quarantined + 1 deleted;"
    )


@pytest.mark.parametrize("oldest", [1, 2, 3])
def test_they_stay_clean_when_stamps_are_expired(oldest: int) -> None:
    made = _scene()
    made.main.expire(oldest)
    made.late.expire(1)
    assert judge(made.evidence()).findings == ()


@each_fate
def test_a_row_missing_in_a_side_table_is_a_violation(fate: str) -> None:
    made = _scene()
    made.sides[fate].lose(ONE_OF[fate])
    [finding] = judge(made.evidence()).findings
    assert (finding.kind, finding.where) == ("rows-missing", SIDES[fate])


@each_fate
def test_a_row_of_an_expired_stamp_missing_in_a_side_table_is_a_violation(fate: str) -> None:
    made = _scene()
    made.sides[fate].lose(ONE_OF[fate])
    made.main.expire(3)
    assert kinds(made.evidence()) == {"rows-missing"}


@each_fate
def test_a_row_deleted_from_a_side_table_by_hand_is_explained(fate: str) -> None:
    made = _scene()
    made.sides[fate].delete(ONE_OF[fate])
    [finding] = judge(made.evidence()).findings
    assert (finding.kind, finding.where) == ("rows-deleted", SIDES[fate])


@each_fate
def test_a_row_twice_in_a_side_table_is_a_violation_and_named(fate: str) -> None:
    made = _scene()
    made.sides[fate].append_copy([ONE_OF[fate]])
    [finding] = judge(made.evidence()).findings
    tp, offset = ONE_OF[fate]
    assert (finding.kind, finding.where) == ("duplicates", SIDES[fate])
    assert finding.message == f"1 rows too many: {tp} offset {offset} (2 {fate})"


@each_fate
def test_a_row_in_main_and_in_a_side_table_is_a_violation_and_named(fate: str) -> None:
    made = _scene()
    made.main.append_copy([ONE_OF[fate]])
    assert kinds(made.evidence()) == {"in-both", "rows-unaccounted"}
    [told] = [f.message for f in judge(made.evidence()).findings if f.kind == "in-both"]
    assert told.startswith("1 records are in more than one table: ")
    assert told.endswith(f"(1 in main, 1 {fate})")


def test_a_row_in_two_side_tables_is_a_violation() -> None:
    made = _scene()
    made.late.append_copy([(P0, 2)])
    assert kinds(made.evidence()) == {"in-both", "rows-unaccounted"}


@each_fate
def test_rows_beyond_progress_in_a_side_table_are_a_violation(fate: str) -> None:
    made = _scene()
    made.sides[fate].append_copy([(P0, 20)])
    assert kinds(made.evidence()) == {"rows-beyond-progress"}


@each_fate
def test_foreign_rows_in_a_side_table_are_explained(fate: str) -> None:
    made = _scene()
    made.sides[fate].append_foreign(2)
    [finding] = judge(made.evidence()).findings
    assert (finding.kind, finding.where) == ("foreign-rows", SIDES[fate])


@each_fate
def test_a_side_table_that_is_behind_without_anything_pending_is_a_violation(fate: str) -> None:
    made = _waiting()
    made.follow([each for each in SIDE_FATES if each != fate])
    evidence = with_progress(made.evidence(), lambda p: replace(p, pending=()))
    found = {f.kind: f for f in judge(evidence).findings}
    assert found.keys() == {"side-behind", "rows-missing"}
    assert {f.where for f in found.values()} == {SIDES[fate]}
    told = f"sequence 5 kept {WAITING[fate]} rows as {fate}, which are neither"
    assert found["side-behind"].message.startswith(told)


@each_fate
def test_one_table_may_have_followed_while_the_others_wait(fate: str) -> None:
    made = _waiting()
    assert judge(made.evidence()).pending == 6
    made.follow([fate])
    report = judge(made.evidence())
    assert (report.verdict, report.pending) == (Verdict.EXPLAINED, 6 - WAITING[fate])
    assert {(f.kind, f.where) for f in report.findings} == {
        ("pending", table) for each, table in SIDES.items() if each != fate
    }


@each_fate
def test_what_waits_is_not_missed_though_its_stamp_was_expired(fate: str) -> None:
    made = _waiting()
    made.follow([each for each in SIDE_FATES if each != fate])
    made.claim()
    made.main.expire(len(made.main.snapshots) - 1)
    assert [(f.kind, f.where) for f in judge(made.evidence()).findings] == [
        ("pending", SIDES[fate])
    ]
    made.sides[fate].lose(ONE_OF[fate])
    assert kinds(made.evidence()) == {"rows-missing"}


def test_what_is_pending_for_another_fate_is_not_pending_here() -> None:
    def disguise(progress: Progress) -> Progress:
        pending = tuple(replace(p, fate="quarantined") for p in progress.pending)
        return replace(progress, pending=pending)

    assert kinds(with_progress(_waiting().evidence(), disguise)) == {
        "side-behind",
        "rows-missing",
    }


def test_pending_rows_that_count_the_dropped_ones_are_a_violation() -> None:
    def add_dropped(progress: Progress) -> Progress:
        more = (replace(p, rows=p.rows + (p.fate == "late")) for p in progress.pending)
        return replace(progress, pending=tuple(more))

    [wrong] = [
        finding
        for finding in judge(with_progress(_waiting().evidence(), add_dropped)).findings
        if finding.severity is Verdict.VIOLATED
    ]
    assert (wrong.kind, wrong.where) == ("pending-mismatch", SIDES["late"])


def test_dropped_rows_are_expected_nowhere() -> None:
    made = Scene(fates=("quarantined",))
    made.batch({0: 10}, dropped=[(P0, 3), (P0, 4)])
    assert made.progress.totals == Counts(read=10, written=8, late=2, dropped=2)
    assert judge(made.evidence()).findings == ()


def test_a_dropped_row_that_is_in_the_late_table_is_a_violation() -> None:
    made = _scene()
    made.late.append_copy([(P1, 6)])
    assert kinds(made.evidence()) == {"rows-unaccounted"}


def test_more_rows_dropped_than_were_late_is_a_violation() -> None:
    evidence = restamp(
        _scene().evidence(), 1, lambda s: replace(s, counts=replace(s.counts, dropped=5))
    )
    assert "counts" in kinds(evidence)


def test_rows_kept_in_a_table_the_audit_does_not_know_are_a_violation() -> None:
    [finding] = judge(_scene(("quarantined", "deleted")).evidence()).findings
    assert (finding.kind, finding.severity) == ("side-unknown", Verdict.VIOLATED)
    assert finding.message.startswith("3 rows were kept as late, the last of them by snapshot ")
    assert "name that table in Names.sides" in finding.message


def test_they_are_missed_also_when_their_stamps_were_expired() -> None:
    made = _scene(("late", "deleted"))
    made.main.expire(3)
    [finding] = judge(made.evidence()).findings
    assert finding.message.startswith("1 rows were kept as quarantined")
    assert "by the expired stamps" in finding.message


@each_fate
def test_a_side_table_that_was_never_needed_need_not_exist(fate: str) -> None:
    made = Scene()
    made.batch({0: 10})
    absent = with_side(made.evidence(), fate, None, History(SIDES[fate], exists=False))
    assert judge(absent).findings == ()


@each_fate
def test_a_side_table_that_is_gone_with_its_rows_is_a_violation(fate: str) -> None:
    made = _scene()
    made.sides[fate].rows.clear()
    gone = with_side(made.evidence(), fate, None, History(SIDES[fate], exists=False))
    assert kinds(gone) == {"side-behind", "rows-missing"}


def test_a_stamp_on_a_side_table_that_counts_another_fate_is_a_violation() -> None:
    made = _scene()
    newest = made.late.snapshots[-1]
    stamp = Stamp.from_text(newest.stamp_text or "")
    forged = replace(stamp, counts=Counts(read=1, quarantined=1)).to_text()
    made.late.snapshots[-1] = replace(newest, summary={**newest.summary, STAMP_KEY: forged})
    assert kinds(made.evidence()) == {"follow"}
    [first, second] = judge(made.evidence()).findings
    assert "the stamp says 0 rows late, the snapshot added 1" in first.message
    assert "0 rows of attempt attempt-4, where main decided 1" in second.message


@each_fate
def test_an_altered_stamp_on_a_side_table_is_a_violation(fate: str) -> None:
    made = _scene()
    oldest = made.sides[fate].snapshots[0]
    text = (oldest.stamp_text or "").replace('"generation":1', '"generation":2')
    made.sides[fate].snapshots[0] = replace(oldest, summary={**oldest.summary, STAMP_KEY: text})
    assert kinds(made.evidence()) == {"stamp-altered"}


def test_a_side_table_is_told_by_a_fate_there_is() -> None:
    with pytest.raises(ValueError, match=r"no rows are kept as quarantine; .*quarantined, late"):
        Names("demo.news.t", "articles", {"quarantine": "demo.news.t_quarantine"})
