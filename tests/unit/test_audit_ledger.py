"""A stamp or progress altered, missing or contradicted is found, and called by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from oncelake.model import STAMP_KEY, Counts, Origin, Pending, Progress, Span, Stamp
from oncelake.ops.audit.evidence import Evidence, History, Snapshot
from oncelake.ops.audit.judge import judge
from oncelake.ops.audit.report import Verdict
from tests.unit.audit_forgery import restamp, resummarise, with_progress, with_side
from tests.unit.audit_history import P0, P1, TOPIC, kinds, partition, scene


def test_a_stamp_whose_words_were_altered_is_a_violation() -> None:
    evidence = scene().evidence()
    text = evidence.main.ancestors[2].stamp_text
    assert text is not None
    changed = text.replace('"written":14', '"written":13').replace('"read":15', '"read":14')
    assert changed != text
    assert "stamp-altered" in kinds(resummarise(evidence, 2, changed))


def test_a_stamp_altered_with_its_digest_breaks_the_chain() -> None:
    evidence = restamp(scene().evidence(), 2, lambda s: replace(s, attempt="forged"))
    assert "chain-broken" in kinds(evidence)


def test_the_newest_stamp_altered_with_its_digest_contradicts_progress() -> None:
    evidence = restamp(scene().evidence(), -1, lambda s: replace(s, attempt="forged"))
    assert "progress-mismatch" in kinds(evidence)


def test_a_stamp_that_cannot_be_read_is_a_violation() -> None:
    evidence = resummarise(scene().evidence(), 1, '{"kind": "batch"')
    assert "stamp-unreadable" in kinds(evidence)


@pytest.mark.parametrize("index", range(6))
def test_a_stamp_removed_anywhere_is_a_violation(index: int) -> None:
    assert judge(resummarise(scene().evidence(), index, None)).verdict is Verdict.VIOLATED


def test_a_stamp_removed_in_the_middle_is_called_missing() -> None:
    assert "stamp-missing" in kinds(resummarise(scene().evidence(), 2, None))


def test_the_oldest_stamp_removed_without_expiry_is_called_missing() -> None:
    assert "stamp-missing" in kinds(resummarise(scene().evidence(), 0, None))


def test_the_oldest_stamp_removed_after_expiry_is_told_by_the_rows_it_added() -> None:
    made = scene()
    made.main.expire(1)
    assert kinds(resummarise(made.evidence(), 0, None)) == {"stamp-removed"}


def test_an_attempt_published_twice_is_a_violation() -> None:
    evidence = restamp(scene().evidence(), 2, lambda s: replace(s, attempt="attempt-2"))
    assert "attempt-repeated" in kinds(evidence)


def test_a_sequence_that_does_not_grow_is_a_violation() -> None:
    evidence = restamp(scene().evidence(), 2, lambda s: replace(s, sequence=2))
    assert "sequence-repeated" in kinds(evidence)


@pytest.mark.parametrize("generation", [1, 3])
def test_a_batch_of_a_generation_that_did_not_claim_is_a_violation(generation: int) -> None:
    evidence = restamp(scene().evidence(), 4, lambda s: replace(s, generation=generation))
    assert "generation" in kinds(evidence)


def test_a_stamp_from_another_topic_is_a_violation() -> None:
    other = Origin("cluster-1", {TOPIC: "topic-2"})
    evidence = restamp(scene().evidence(), 2, lambda s: replace(s, origin=other))
    assert "origin-changed" in kinds(evidence)


@pytest.mark.parametrize(
    "change",
    [
        lambda s: replace(s, counts=replace(s.counts, read=16)),
        lambda s: replace(s, counts=replace(s.counts, read=99, filtered=84)),
        lambda s: replace(s, counts=replace(s.counts, read=-1, filtered=-16)),
        lambda s: replace(s, counts=replace(s.counts, written=13, filtered=1)),
        lambda s: replace(s, kind="rebase"),
        lambda s: replace(s, kind="claim"),
        lambda s: replace(s, ranges={**s.ranges, partition(2): Span(3, 3)}),
    ],
    ids=["unbalanced", "more-than-offsets", "negative", "not-added", "kind", "claim", "empty"],
)
def test_a_stamp_whose_numbers_cannot_be_is_a_violation(change: Callable[[Stamp], Stamp]) -> None:
    assert "counts" in kinds(restamp(scene().evidence(), 2, change))


def test_a_gap_between_stamps_is_a_violation_and_named() -> None:
    evidence = restamp(
        scene().evidence(), 2, lambda s: replace(s, ranges={**s.ranges, P0: Span(12, 20)})
    )
    assert "gap" in kinds(evidence)
    assert judge(evidence).partitions[0].gaps == (Span(10, 12),)


def test_an_overlap_of_stamps_is_a_violation_and_named() -> None:
    evidence = restamp(
        scene().evidence(), 2, lambda s: replace(s, ranges={**s.ranges, P0: Span(8, 20)})
    )
    assert "overlap" in kinds(evidence)
    assert judge(evidence).partitions[0].overlaps == (Span(8, 10),)


def test_rows_in_a_gap_belong_to_no_stamp() -> None:
    made = scene()
    gaping = restamp(
        made.evidence(), 2, lambda s: replace(s, ranges={**s.ranges, P0: Span(15, 20)})
    )
    made.main.snapshots = list(gaping.main.ancestors)
    assert "rows-unstamped" in kinds(made.evidence())


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("gap", lambda p: replace(p, positions={**p.positions, P0: Span(0, 41)})),
        ("gap", lambda p: replace(p, positions={**p.positions, partition(2): Span(0, 5)})),
        ("progress-behind", lambda p: replace(p, positions={**p.positions, P0: Span(0, 30)})),
        ("progress-behind", lambda p: replace(p, positions={P0: p.positions[P0]})),
        ("progress-mismatch", lambda p: replace(p, sequence=5)),
        ("progress-mismatch", lambda p: replace(p, sequence=7)),
        ("progress-mismatch", lambda p: replace(p, generation=3)),
        ("progress-mismatch", lambda p: replace(p, digest="0")),
        ("progress-mismatch", lambda p: replace(p, origin=Origin("cluster-2", {}))),
        ("progress-altered", lambda p: replace(p, pipeline="clicks")),
        ("totals", lambda p: replace(p, batches=5)),
        ("totals", lambda p: replace(p, totals=p.totals + Counts(read=1))),
        ("totals", lambda p: replace(p, totals=p.totals + Counts(read=1, filtered=1))),
    ],
)
def test_progress_that_differs_from_the_stamps_is_a_violation(
    kind: str, change: Callable[[Progress], Progress]
) -> None:
    assert kind in kinds(with_progress(scene().evidence(), change))


def test_progress_smaller_than_the_stamps_kept_is_a_violation() -> None:
    made = scene()
    made.main.expire(1)
    evidence = with_progress(made.evidence(), lambda p: replace(p, totals=Counts()))
    assert "totals" in kinds(evidence)


def test_totals_that_do_not_add_up_are_a_violation_though_stamps_were_expired() -> None:
    made = scene()
    made.main.expire(4)
    evidence = with_progress(
        made.evidence(), lambda p: replace(p, totals=p.totals + Counts(filtered=1))
    )
    assert kinds(evidence) == {"totals"}


def test_progress_that_is_gone_is_a_violation() -> None:
    assert "progress-missing" in kinds(replace(scene().evidence(), progress_text=None))


def _behind(evidence: Evidence) -> list[str]:
    return [f.message for f in judge(evidence).findings if f.kind == "progress-behind"]


@pytest.mark.parametrize("text", [None, "{}"])
def test_nothing_is_written_twice_where_progress_is_gone(text: str | None) -> None:
    """A run stops there."""
    found = _behind(replace(scene().evidence(), progress_text=text))
    assert found
    assert all("a run stops there and writes nothing" in each for each in found)


def test_an_older_progress_would_have_rows_written_twice() -> None:
    [found] = _behind(
        with_progress(
            scene().evidence(), lambda p: replace(p, positions={**p.positions, P0: Span(0, 30)})
        )
    )
    assert "progress says that 30 is next: the next batch would be written twice" in found


def test_progress_that_cannot_be_read_is_a_violation() -> None:
    assert "progress-unreadable" in kinds(replace(scene().evidence(), progress_text="{}"))


def test_progress_without_any_stamp_in_a_whole_history_is_a_violation() -> None:
    made = scene()
    made.main.snapshots = [replace(s, summary={}) for s in made.main.snapshots]
    assert "progress-mismatch" in kinds(made.evidence())


def test_a_rollback_is_a_violation_and_called_so() -> None:
    made = scene()
    lost = tuple(made.main.snapshots[-2:])
    made.main.snapshots = made.main.snapshots[:-2]
    made.main.lose(*[(P0, o) for o in range(20, 40) if o != 31], *[(P1, o) for o in range(15, 25)])
    evidence = replace(made.evidence(), main=replace(made.main.history(), others=lost))
    assert kinds(evidence) == {"rolled-back", "gap", "rows-unstamped"}


def test_a_rollback_under_expired_stamps_is_told_by_the_one_left_aside() -> None:
    made = scene()
    lost = (made.main.snapshots[-1],)
    foreign = Snapshot(7, 6, "append", {}, made.main.snapshots[0].committed_at)
    evidence = replace(made.evidence(), main=History("t", True, (foreign,), lost))
    assert "rolled-back" in kinds(evidence)


def test_quarantine_rows_neither_published_nor_pending_are_a_violation() -> None:
    made = scene()
    made.batch({0: 5}, bad=[(P0, 41)], follow=False)
    evidence = with_progress(made.evidence(), lambda p: replace(p, pending=()))
    assert kinds(evidence) == {"side-behind", "rows-missing"}


def test_pending_rows_that_differ_from_the_stamp_are_a_violation() -> None:
    made = scene()
    made.batch({0: 5}, bad=[(P0, 41)], follow=False)
    wrong = Pending(made.quarantine.name, 7, "attempt-7", (), 9)
    evidence = with_progress(made.evidence(), lambda p: replace(p, pending=(wrong,)))
    assert "pending-mismatch" in kinds(evidence)


@pytest.mark.parametrize("text", ['{"attempt":"x","sequence":99}', '{"attempt":"x","sequence":3}'])
def test_quarantine_that_follows_what_main_never_decided_is_a_violation(text: str) -> None:
    assert "followed-ahead" in kinds(with_side(scene().evidence(), "quarantined", text))


def test_a_followed_mark_that_cannot_be_read_is_a_violation() -> None:
    assert "followed-unreadable" in kinds(with_side(scene().evidence(), "quarantined", "?"))


def test_a_stamp_removed_from_quarantine_is_a_violation() -> None:
    made = scene()
    made.quarantine.snapshots[0] = replace(
        made.quarantine.snapshots[0], summary={"added-records": "1"}
    )
    assert kinds(made.evidence()) >= {"stamp-missing", "stamp-removed"}


@pytest.mark.parametrize(
    "change",
    [
        lambda s: replace(s, sequence=6),
        lambda s: replace(s, sequence=9),
        lambda s: replace(s, attempt="other"),
        lambda s: replace(s, kind="batch"),
        lambda s: replace(s, counts=Counts(read=2, quarantined=2)),
        lambda s: replace(s, ranges={P0: Span(0, 1)}),
    ],
    ids=["twice", "undecided", "attempt", "kind", "rows", "ranges"],
)
def test_a_stamp_on_quarantine_that_is_not_mains_decision_is_a_violation(
    change: Callable[[Stamp], Stamp],
) -> None:
    made = scene()
    text = made.quarantine.snapshots[0].stamp_text
    assert text is not None
    stamp = change(Stamp.from_text(text))
    made.quarantine.snapshots.insert(
        2,
        replace(
            made.quarantine.snapshots[0],
            summary={STAMP_KEY: stamp.to_text(), "added-records": "1"},
        ),
    )
    assert "follow" in kinds(made.evidence())


def test_an_altered_stamp_on_quarantine_is_a_violation() -> None:
    made = scene()
    text = made.quarantine.snapshots[0].stamp_text
    assert text is not None
    summary = {STAMP_KEY: text.replace('"generation":1', '"generation":2'), "added-records": "1"}
    made.quarantine.snapshots[0] = replace(made.quarantine.snapshots[0], summary=summary)
    assert "stamp-altered" in kinds(made.evidence())


def test_a_stamp_on_quarantine_of_another_attempt_than_mains_is_a_violation() -> None:
    made = scene()
    newest = made.quarantine.snapshots[-1]
    stamp = replace(Stamp.from_text(newest.stamp_text or ""), attempt="other")
    summary = {STAMP_KEY: stamp.to_text(), "added-records": "1"}
    made.quarantine.snapshots[-1] = replace(newest, summary=summary)
    assert kinds(made.evidence()) == {"follow"}
