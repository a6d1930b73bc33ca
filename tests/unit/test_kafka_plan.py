"""Where a batch stands against what a sink has sent: skip, go on, complete, or refuse."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from oncelake.errors import CheckpointUnusable, Gap
from oncelake.kafka_sink.plan import Batch, Dealt, Plan, Receipt, Standing, Verdict, place


def _text(*offsets: int) -> str:
    return json.dumps({"t": {str(p): offset for p, offset in enumerate(offsets)}})


def _batch(begins: tuple[int, ...], ends: tuple[int, ...], number: int = 0) -> Batch:
    return Batch("q", number, (_text(*begins),), (_text(*ends),))


LAST = Plan(4, _batch((10, 10), (20, 20)), Dealt.BY_SOURCE, (0, 1))
COMPLETE = Standing(LAST, {0: Receipt(4, 1, 0), 1: Receipt(4, 1, 0)})
BEGUN = Standing(LAST, {0: Receipt(4, 1, 0), 1: Receipt(3, 1, 0)})


def test_the_first_batch_follows_nothing() -> None:
    assert place(Standing(), _batch((5, 5), (9, 9))) is Verdict.NEXT


def test_only_slots_without_a_receipt_of_the_last_plan_are_missing() -> None:
    assert COMPLETE.complete
    assert BEGUN.missing == (1,)
    assert not BEGUN.complete


@pytest.mark.parametrize(
    ("begins", "ends", "complete", "begun"),
    [
        ((10, 10), (20, 20), Verdict.SKIP, Verdict.AGAIN),
        ((0, 0), (10, 10), Verdict.SKIP, Verdict.SKIP),
        ((10, 10), (15, 20), Verdict.SKIP, CheckpointUnusable),
        ((20, 20), (30, 30), Verdict.NEXT, CheckpointUnusable),
        ((10, 10), (30, 20), Verdict.PAST, Verdict.PAST),
        ((0, 0), (30, 30), Verdict.PAST, Verdict.PAST),
        ((15, 10), (30, 30), Verdict.PAST, CheckpointUnusable),
        ((21, 20), (30, 30), Gap, CheckpointUnusable),
        # A partition that was added since begins at 0, or is a gap.
        ((20, 20, 0), (30, 20, 5), Verdict.NEXT, CheckpointUnusable),
        ((20, 20, 3), (30, 20, 5), Gap, CheckpointUnusable),
    ],
)
def test_offsets_of_kafka_are_compared_partition_by_partition(
    begins: tuple[int, ...],
    ends: tuple[int, ...],
    complete: Verdict | type[Exception],
    begun: Verdict | type[Exception],
) -> None:
    offered = _batch(begins, ends)
    for standing, expected in ((COMPLETE, complete), (BEGUN, begun)):
        if isinstance(expected, Verdict):
            assert place(standing, offered) is expected
        else:
            with pytest.raises(expected):
                place(standing, offered)


@pytest.mark.parametrize("standing", [COMPLETE, BEGUN], ids=["complete", "begun"])
def test_another_topic_under_the_same_name_is_refused(standing: Standing) -> None:
    """By its offsets alone it would be taken for what was sent, or for what follows."""
    for span in ((0, 5), (10, 20)):
        begin, end = (json.dumps({"other": {"0": offset}}) for offset in span)
        with pytest.raises(CheckpointUnusable, match="a sink name of its own"):
            place(standing, Batch("p", 0, (begin,), (end,)))


def test_a_begun_batch_is_not_forgotten_for_one_of_other_partitions() -> None:
    begin, end = (json.dumps({"t": {"7": offset}}) for offset in (0, 5))
    with pytest.raises(CheckpointUnusable, match="sent in part"):
        place(BEGUN, Batch("q", 1, (begin,), (end,)))


def _opaque(number: int, begin: str, end: str, query: str = "q") -> Batch:
    return Batch(query, number, (begin,), (end,))


def test_of_another_source_only_the_very_next_batch_follows() -> None:
    plan = replace(LAST, batch=_opaque(7, "a", "b"))
    complete = Standing(plan, COMPLETE.receipts)
    assert place(complete, _opaque(8, "b", "c")) is Verdict.NEXT
    assert place(complete, _opaque(7, "a", "b")) is Verdict.SKIP
    assert place(Standing(plan, BEGUN.receipts), _opaque(7, "a", "b")) is Verdict.AGAIN
    for other in (_opaque(9, "b", "c"), _opaque(6, "x", "a"), _opaque(8, "b", "c", "other")):
        with pytest.raises(CheckpointUnusable, match="cannot be told"):
            place(complete, other)
    with pytest.raises(CheckpointUnusable):
        place(Standing(plan, BEGUN.receipts), _opaque(8, "b", "c"))


def test_plans_and_receipts_survive_their_text() -> None:
    assert Plan.from_text(LAST.to_text()) == LAST
    receipt = Receipt(3, 10, -(2**62))
    assert Receipt.from_text(receipt.to_text()) == receipt
