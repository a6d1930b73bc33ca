"""The watermark of the stamps never goes back, and progress has the newest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from oncelake.ops.audit.judge import judge
from tests.unit.audit_forgery import with_progress
from tests.unit.audit_history import Scene, kinds

MINUTE = 60_000_000


def _scene(*watermarks: int | None) -> Scene:
    made = Scene()
    for each in watermarks:
        made.batch({0: 5}, watermark=each)
    return made


@pytest.mark.parametrize(
    "watermarks",
    [(None, None), (0, MINUTE), (MINUTE, MINUTE), (MINUTE, None), (None, MINUTE, None, MINUTE)],
)
def test_a_watermark_that_stands_or_goes_on_is_clean(watermarks: tuple[int | None, ...]) -> None:
    assert judge(_scene(*watermarks).evidence()).findings == ()


@pytest.mark.parametrize("watermarks", [(2 * MINUTE, MINUTE), (2 * MINUTE, None, MINUTE)])
def test_a_watermark_that_goes_back_is_a_violation(watermarks: tuple[int | None, ...]) -> None:
    [finding] = judge(_scene(*watermarks).evidence()).findings
    assert finding.kind == "watermark-back"
    assert "is 1970-01-01 00:01:00.000000 UTC" in finding.message
    assert "was 1970-01-01 00:02:00.000000 UTC" in finding.message


def test_a_watermark_past_the_last_year_is_told_as_a_number() -> None:
    [finding] = judge(_scene(2**62, MINUTE).evidence()).findings
    assert f"was {2**62} microseconds" in finding.message


@pytest.mark.parametrize("wrong", [None, 0, 2 * MINUTE])
def test_progress_with_another_watermark_than_the_newest_stamp_is_a_violation(
    wrong: int | None,
) -> None:
    evidence = _scene(MINUTE, None).evidence()
    changed = with_progress(evidence, lambda p: replace(p, watermark=wrong))
    assert kinds(changed) == {"progress-mismatch"}


def test_progress_with_a_watermark_that_no_stamp_has_is_a_violation() -> None:
    changed = with_progress(_scene(None).evidence(), lambda p: replace(p, watermark=MINUTE))
    assert kinds(changed) == {"progress-mismatch"}


def test_a_watermark_whose_stamp_was_expired_is_clean() -> None:
    made = _scene(MINUTE, None)
    made.main.expire(2)
    assert judge(made.evidence()).findings == ()
