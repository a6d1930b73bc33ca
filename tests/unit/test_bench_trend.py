"""Growth of a series, as the memory benchmark reports it."""

from __future__ import annotations

import pytest

from bench.trend import growth_percent

PLACES = [100, 150, 200, 250, 300]


def test_a_level_series_does_not_grow() -> None:
    assert growth_percent(PLACES, [7.0] * 5) == 0


def test_growth_is_in_per_cent_of_the_beginning_over_the_whole_series() -> None:
    assert growth_percent(PLACES, [100, 105, 110, 115, 120]) == pytest.approx(20)


def test_a_shrinking_series_grows_by_less_than_nothing() -> None:
    assert growth_percent(PLACES, [100, 95, 90, 85, 80]) == pytest.approx(-20)


def test_one_odd_sample_does_not_move_it() -> None:
    assert growth_percent(PLACES, [100, 100, 900, 100, 100]) == pytest.approx(0)


def test_one_sample_shows_no_trend() -> None:
    with pytest.raises(ValueError, match="at least two"):
        growth_percent([100], [1.0])
