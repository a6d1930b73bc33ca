"""A partition just created or moved has no leader for a moment: ask again, but not for ever."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, KafkaException

from oncelake import source
from oncelake.kafka_sink import progress
from oncelake.ops.audit import brokers

ASKING: list[Callable[[Callable[[], str]], str]] = [source.once_led, brokers._once_led]


class Broker:
    """Fails with these codes, one after the other, and then answers."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)

    def __call__(self) -> str:
        if self.codes:
            raise KafkaException(KafkaError(self.codes.pop(0)))
        return "answer"


@pytest.mark.parametrize("asking", ASKING)
def test_a_leader_that_is_being_elected_is_waited_for(
    asking: Callable[[Callable[[], str]], str],
) -> None:
    broker = Broker(KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)
    assert asking(broker) == "answer"


@pytest.mark.parametrize("asking", ASKING)
def test_another_error_is_told_at_once(asking: Callable[[Callable[[], str]], str]) -> None:
    broker = Broker(KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.UNKNOWN_TOPIC_OR_PART)
    with pytest.raises(KafkaException):
        asking(broker)
    assert len(broker.codes) == 1


def test_a_partition_that_was_just_made_is_waited_for_where_it_is_known_to_be() -> None:
    broker = Broker(*progress.NOT_YET_KNOWN)
    assert source.once_led(broker, progress.NOT_YET_KNOWN) == "answer"


@pytest.mark.parametrize(("module", "asking"), list(zip((source, brokers), ASKING, strict=True)))
def test_without_a_leader_it_ends_all_the_same(
    module: object, asking: Callable[[Callable[[], str]], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", -1.0)
    with pytest.raises(KafkaException):
        asking(Broker(KafkaError.LEADER_NOT_AVAILABLE))
