"""What a person decided is told by the audit for ever, and not taken for more than it is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oncelake.model import Accepted, Counts, Origin, Ranges, Span, Stamp, TopicPartition
from oncelake.ops.audit.evidence import Evidence, TopicFacts
from oncelake.ops.audit.judge import judge
from oncelake.ops.audit.report import Verdict
from tests.unit.audit_history import ORIGIN, P0, P1, TOPIC, Scene, kinds, scene

LOST = {P0: Span(40, 47)}
ANEW = TopicPartition(f"{TOPIC}#2", 0)


def told(evidence: Evidence) -> set[str]:
    assert judge(evidence).verdict is Verdict.EXPLAINED, judge(evidence).findings
    return kinds(evidence, Verdict.EXPLAINED)


def amended(made: Scene, kind: str, ranges: Ranges, origin: Origin = ORIGIN) -> Scene:
    """A person's decision, as `amend` commits it."""
    stamp = made.stamp(kind, made.progress.generation + 1, ranges, Counts())
    stamp = replace(stamp, origin=origin)
    made.main.append(stamp, ())
    made.progress = made.progress.after(stamp, made.progress.pending)
    return made


def with_gap() -> Scene:
    made = amended(scene(), "gap", LOST)
    made.batch({0: 5})
    return made


def test_an_accepted_gap_is_explained_also_when_its_stamp_is_expired() -> None:
    made = with_gap()
    assert told(made.evidence()) == {"gap-accepted"}
    made.main.expire(len(made.main.snapshots) - 1)
    assert told(made.evidence()) == {"gap-accepted"}


def test_rows_within_an_accepted_gap_are_a_violation() -> None:
    made = with_gap()
    made.main.rows[P0, 41] += 1
    assert "rows-unstamped" in kinds(made.evidence())


@pytest.mark.parametrize(
    "accepted",
    [(), (Accepted("gap", 7, {P0: Span(40, 46)}),), (Accepted("rollback", 7, LOST),)],
    ids=["forgotten", "other offsets", "another kind"],
)
def test_a_loss_that_progress_remembers_otherwise_is_a_violation(
    accepted: tuple[Accepted, ...],
) -> None:
    made = with_gap()
    made.progress = replace(made.progress, accepted=accepted)
    assert kinds(made.evidence()) == {"accepted-mismatch"}


def test_a_loss_that_no_stamp_speaks_of_is_a_violation() -> None:
    made = scene()
    made.progress = replace(made.progress, accepted=(Accepted("gap", 5, LOST),))
    assert kinds(made.evidence()) == {"accepted-mismatch"}


def test_a_gap_that_says_it_read_something_is_a_violation() -> None:
    made = scene()
    stamp = made.stamp("gap", made.progress.generation + 1, LOST, Counts(read=1, filtered=1))
    made.main.append(stamp, ())
    made.progress = made.progress.after(stamp)
    assert "counts" in kinds(made.evidence())


def test_a_claim_of_ranges_is_a_violation() -> None:
    assert "counts" in kinds(amended(scene(), "claim", LOST).evidence())


def test_a_topic_made_anew_is_explained_and_the_former_is_not_asked_for() -> None:
    made = scene()
    origin = Origin("cluster-2", {**ORIGIN.topic_ids, f"{TOPIC}#2": "topic-2"})
    amended(made, "rebase", {}, origin)
    made.progress = made.progress.beginning({ANEW: Span(3, 3)})
    live = TopicFacts("cluster-2", {f"{TOPIC}#2": "topic-2"}, {ANEW: Span(3, 9)})
    assert told(replace(made.evidence(), topic=live)) == {"rebased"}


def test_another_cluster_without_a_rebase_is_a_violation() -> None:
    made = amended(scene(), "claim", {}, Origin("cluster-2", ORIGIN.topic_ids))
    assert "origin-changed" in kinds(made.evidence())


def rolled_back(kind: str, ranges: Ranges) -> Scene:
    """The last batch, offsets 30 to 40 and 15 to 25, is lost; one record of it was quarantined."""
    made = scene()
    lost, made.main.snapshots = made.main.snapshots[-1], made.main.snapshots[:-1]
    kept = made.main.history().ancestors[-1]
    made.main.lose(*[(P0, o) for o in range(30, 40) if o != 31], *[(P1, o) for o in range(15, 25)])
    made.quarantine.lose((P0, 31))
    gone, last = Stamp.from_text(lost.stamp_text or ""), Stamp.from_text(kept.stamp_text or "")
    before = made.progress
    stamp = made.stamp(kind, before.generation + 1, ranges, Counts())
    stamp = replace(stamp, previous=last.digest)
    made.main.append(stamp, ())
    made.progress = before.without([gone]).after(stamp)
    return made


def test_after_a_rewind_the_batches_are_those_on_main() -> None:
    made = rolled_back("rewind", {})
    made.batch({0: 10, 1: 10}, bad=[(P0, 31)])
    assert judge(made.evidence()).verdict is Verdict.CLEAN, judge(made.evidence()).findings


def test_an_accepted_rollback_is_explained() -> None:
    made = rolled_back("rollback", {P0: Span(30, 40), P1: Span(15, 25)})
    made.batch({0: 10, 1: 10})
    assert told(made.evidence()) == {"rollback-accepted"}


def test_a_rewind_that_does_not_follow_mains_newest_stamp_is_a_violation() -> None:
    made = scene()
    made.main.snapshots = made.main.snapshots[:-1]
    made.main.append(made.stamp("rewind", made.progress.generation + 1, {}, Counts()), ())
    assert "chain-broken" in kinds(made.evidence())
