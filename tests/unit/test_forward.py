"""What a sink still owes of a topic that was made anew: nobody can send that any more."""

from __future__ import annotations

import pytest

from oncelake.forward import unsent_epochs
from oncelake.model import Epochs, Ranges, Span, TopicPartition


def _ranges(**ends: int) -> Ranges:
    """Of a partition each: `a` is the topic as it was at first, `a2` as it was made anew."""
    names = {"a": "a", "a2": "a#2", "a3": "a#3"}
    return {TopicPartition(names[name], 0): Span(0, end) for name, end in ends.items()}


@pytest.mark.parametrize(
    ("sent", "positions", "left"),
    [
        (_ranges(a=90), _ranges(a=100), {}),
        (_ranges(a=100), _ranges(a=100, a2=0), {}),
        (_ranges(a=90), _ranges(a=100, a2=0), {"a": Span(90, 100)}),
        (_ranges(a=90), _ranges(a=100, a2=7), {"a": Span(90, 100)}),
        (_ranges(a2=5), _ranges(a=100, a2=7), {}),
        (_ranges(a=100, a2=0), _ranges(a=100, a2=7), {}),
        (_ranges(a=100), _ranges(a=100, a2=7, a3=0), {"a#2": Span(0, 7)}),
        ({}, _ranges(a=100, a2=0), {"a": Span(0, 100)}),
    ],
)
def test_what_was_not_sent_of_a_former_topic(
    sent: Ranges, positions: Ranges, left: dict[str, Span]
) -> None:
    found = unsent_epochs(sent, positions, Epochs.of(tp.topic for tp in positions))
    assert found == {TopicPartition(topic, 0): span for topic, span in left.items()}
