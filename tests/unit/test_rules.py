"""The watermark follows the newest row that was written, and never goes back."""

from __future__ import annotations

import pytest

from oncelake.rules import EARLIEST, EventTime

TIMED = EventTime("published_at", delay=100, skew=5)


@pytest.mark.parametrize(
    ("watermark", "newest", "following"),
    [
        (None, None, None),
        (None, 0, -100),
        (None, 500, 400),
        (400, None, 400),
        (400, 450, 400),
        (400, 501, 401),
        (0, 50, 0),
        (None, EARLIEST + 7, EARLIEST),
    ],
)
def test_it_follows_and_stays(
    watermark: int | None, newest: int | None, following: int | None
) -> None:
    assert TIMED.following(watermark, newest) == following
