"""Rows that were taken out of quarantine later: the audit knows how many, and no more."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from oncelake.model import Counts, Pending, Span, Stamp, compact, marks_of
from oncelake.ops.audit.judge import judge
from oncelake.ops.audit.report import Verdict
from tests.unit.audit_history import P0, P1, PIPELINE, SIDES, Scene, kinds
from tests.unit.audit_table import Coordinate

BAD = ((P0, 2), (P0, 7), (P1, 1), (P0, 12))


def replay(
    made: Scene,
    taken: Collection[Coordinate],
    superseded: int = 0,
    followed: bool = True,
    replaces: Collection[Coordinate] = (),
) -> None:
    """As `oncelake replay` does: main takes rows, and the quarantine marks its own."""
    replayed = len(taken) + superseded
    counts = Counts(
        written=len(taken), superseded=superseded, updated=len(replaces), replayed=replayed
    )
    stamp = made.stamp("replay", made.progress.generation, {}, counts)
    if replaces:
        made.main.lose(*replaces)
    made.main.append(stamp, taken)
    marks = marks_of((tp, offset, "taken") for tp, offset in taken)
    table = SIDES["quarantined"]
    pending = Pending(table, stamp.sequence, stamp.attempt, (), 0, marks=marks)
    made.progress = made.progress.after(stamp, [pending])
    if followed:
        made.quarantine.append(replace(stamp, kind="revise", counts=Counts(), previous=""), ())
        done = {"sequence": stamp.sequence, "attempt": stamp.attempt}
        made.followed["quarantined"] = compact(done)


def with_bad(replayed: Collection[Coordinate] = BAD[:3]) -> Scene:
    made = Scene()
    made.batch({0: 10, 1: 5}, bad=BAD[:3])
    made.batch({0: 5}, bad=BAD[3:])
    made.claim()
    replay(made, replayed)
    return made


def test_rows_that_were_replayed_are_clean_in_both_tables() -> None:
    made = with_bad()
    report = judge(made.evidence())
    assert report.verdict is Verdict.CLEAN, report.findings
    assert (report.totals.read, report.totals.replayed, report.totals.written) == (20, 3, 19)
    made.batch({0: 5})
    assert judge(made.evidence()).verdict is Verdict.CLEAN


@pytest.mark.parametrize("expired", range(1, 6))
def test_they_are_so_however_many_stamps_were_expired(expired: int) -> None:
    made = with_bad()
    made.batch({0: 5, 1: 5})
    made.main.expire(expired)
    made.quarantine.expire(2)
    report = judge(made.evidence())
    assert report.verdict is Verdict.CLEAN, report.findings


def test_marks_that_wait_are_explained() -> None:
    made = Scene()
    made.batch({0: 10}, bad=BAD[:2])
    made.claim()
    replay(made, BAD[:2], followed=False)
    assert kinds(made.evidence(), Verdict.EXPLAINED) == {"pending"}
    assert judge(made.evidence()).verdict is Verdict.EXPLAINED


def test_a_replayed_row_that_is_lost_is_missing() -> None:
    made = with_bad()
    made.main.rows[BAD[0]] -= 1
    assert "rows-missing" in kinds(made.evidence())


def test_a_row_of_another_kind_that_is_lost_is_not_hidden_by_a_replay() -> None:
    made = with_bad()
    made.main.rows[P0, 0] -= 1
    assert "rows-missing" in kinds(made.evidence())


def test_a_row_in_quarantine_copied_into_main_is_no_replay() -> None:
    made = with_bad()
    made.main.rows[BAD[3]] += 1
    found = kinds(made.evidence())
    assert {"rows-unaccounted", "in-both"} <= found


def test_a_replay_does_not_stand_for_a_row_where_nothing_was_in_quarantine() -> None:
    """One that was replayed is lost, and one that a transform left out is put in by hand."""
    made = Scene()
    made.batch({0: 10, 1: 5}, bad=BAD[:3])
    made.batch({0: 5}, filtered=BAD[3:])
    made.claim()
    replay(made, BAD[:3])
    made.main.rows[BAD[0]] -= 1
    made.main.rows[BAD[3]] += 1
    assert {"rows-unaccounted", "rows-missing"} <= kinds(made.evidence())


def test_a_replayed_row_twice_is_a_duplicate() -> None:
    made = with_bad()
    made.main.rows[BAD[0]] += 1
    assert "duplicates" in kinds(made.evidence())


def test_what_a_later_version_replaced_may_have_been_replayed() -> None:
    """As upserts: one replayed row is superseded, another is replaced later."""
    made = Scene()
    made.batch({0: 10, 1: 5}, bad=BAD[:3])
    made.claim()
    replay(made, BAD[:2], superseded=1)
    made.batch({1: 2}, replaces=[BAD[0]])
    report = judge(made.evidence())
    assert report.verdict is Verdict.CLEAN, report.findings
    made.main.rows[P1, 0] -= 1
    assert "rows-missing" in kinds(made.evidence())


def test_a_replayed_row_may_replace_one_that_was_there() -> None:
    made = Scene()
    made.batch({0: 10, 1: 5}, bad=BAD[:3])
    made.claim()
    replay(made, BAD[:3], replaces=[(P1, 0)])
    report = judge(made.evidence())
    assert report.verdict is Verdict.CLEAN, report.findings


@pytest.mark.parametrize(
    "counts",
    [
        Counts(read=1, written=1),
        Counts(written=1),
        Counts(written=1, replayed=2),
        Counts(quarantined=1, replayed=1),
    ],
    ids=["read", "unread", "unaccounted", "quarantined"],
)
def test_a_replay_that_does_not_add_up_is_told(counts: Counts) -> None:
    made = with_bad(())
    stamp = made.stamp("replay", made.progress.generation, {}, counts)
    made.main.append(stamp, list(BAD[: counts.written]))
    made.progress = made.progress.after(stamp)
    assert "counts" in kinds(made.evidence())


def test_a_batch_does_not_replay() -> None:
    made = Scene()
    made.batch({0: 5})
    counts = Counts(read=1, written=1, superseded=1, replayed=1)
    stamp = Stamp("batch", PIPELINE, 1, made.progress.sequence + 1, "x", made.progress.origin,
                  {P0: Span(5, 6)}, counts, made.progress.digest)  # fmt: skip
    made.main.append(stamp, [(P0, 5)])
    made.progress = made.progress.after(stamp)
    assert "counts" in kinds(made.evidence())
