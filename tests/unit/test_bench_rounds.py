"""How benchmarks compare: turns, ratios within a round, the interval of their median."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.rounds import estimate, order_of, paired_ratios

SIDES = ("a", "b", "c", "d")


def test_every_round_runs_every_side_once() -> None:
    assert all(sorted(order_of(SIDES, number)) == list(SIDES) for number in range(20))


def test_over_a_full_cycle_every_side_runs_first_equally_often() -> None:
    firsts = Counter(order_of(SIDES, number)[0] for number in range(8))
    assert set(firsts.values()) == {2}


@pytest.mark.parametrize(("one", "other"), [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
def test_of_two_sides_each_runs_before_the_other_equally_often(one: str, other: str) -> None:
    orders = [order_of(SIDES, number) for number in range(8)]
    assert sum(order.index(one) < order.index(other) for order in orders) == 4


def test_ratios_are_of_the_same_round() -> None:
    assert paired_ratios([100, 50, 30], [50, 50, 60]) == (2.0, 1.0, 0.5)


def test_sides_with_unequal_rounds_are_not_paired() -> None:
    with pytest.raises(ValueError, match="shorter"):
        paired_ratios([1.0, 2.0], [1.0])


def test_the_interval_of_nine_leaves_out_one_at_either_end() -> None:
    found = estimate([9, 1, 8, 2, 7, 3, 6, 4, 5])
    assert (found.median, found.low, found.high) == (5, 2, 8)
    assert found.confidence == pytest.approx(0.9609, abs=1e-4)


def test_the_interval_of_six_is_all_of_them() -> None:
    found = estimate([6, 5, 4, 3, 2, 1])
    assert (found.low, found.high) == (1, 6)
    assert found.confidence == pytest.approx(0.96875)


def test_three_rounds_say_how_little_their_interval_means() -> None:
    found = estimate([1.0, 2.0, 3.0])
    assert (found.low, found.high, found.confidence) == (1.0, 3.0, 0.75)


def test_a_single_round_has_no_confidence_at_all() -> None:
    found = estimate([1.5])
    assert (found.low, found.median, found.high, found.confidence) == (1.5, 1.5, 1.5, 0.0)


def test_one_wild_round_of_nine_moves_neither_median_nor_interval() -> None:
    calm = estimate([1.0] * 9)
    wild = estimate([1.0] * 8 + [100.0])
    assert (wild.median, wild.low, wild.high) == (calm.median, calm.low, calm.high)


def test_no_round_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        estimate([])
