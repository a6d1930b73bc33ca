"""A batch that fails is narrowed to the record that it fails by."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncelake.cli.offsets import parse
from oncelake.errors import SpecError
from oncelake.model import Ranges, Span, TopicPartition, offsets_in
from oncelake.ops.trial import narrowed

RANGES = {TopicPartition("t", p): Span(10 * p, 10 * p + 37) for p in range(5)}
places = st.tuples(st.integers(0, 4), st.integers(0, 36)).map(
    lambda t: (TopicPartition("t", t[0]), 10 * t[0] + t[1])
)


def holds(ranges: Ranges, place: tuple[TopicPartition, int]) -> bool:
    tp, offset = place
    return tp in ranges and ranges[tp].start <= offset < ranges[tp].end


@given(st.sets(places, min_size=1, max_size=4))
def test_of_several_records_at_fault_one_is_found(
    guilty: set[tuple[TopicPartition, int]],
) -> None:
    found = narrowed(lambda part: any(holds(part, each) for each in guilty), RANGES)
    assert offsets_in(found) == 1
    assert any(holds(found, each) for each in guilty)


def test_a_fault_of_two_records_together_is_narrowed_as_far_as_it_fails() -> None:
    two = [(TopicPartition("t", 1), 12), (TopicPartition("t", 1), 40)]
    found = narrowed(lambda part: all(holds(part, each) for each in two), RANGES)
    assert found == {TopicPartition("t", 1): Span(10, 47)}


@pytest.mark.parametrize("text", ["", "{", "[]", "5", '{"t": {"0": [5]}}', '{"t": {"0": [9, 9]}}'])
def test_offsets_that_are_none_are_refused_with_an_example(text: str) -> None:
    with pytest.raises(SpecError, match=r"--offsets: .*articles\.raw\.v1"):
        parse(text)


def test_offsets_of_a_topic_made_anew_are_read_by_its_name_in_kafka() -> None:
    assert parse('{"news#2": {"0": [4, 9]}}') == {TopicPartition("news", 0): Span(4, 9)}
