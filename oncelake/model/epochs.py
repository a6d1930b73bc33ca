"""Epochs of a topic: one that is deleted and made anew has its former name and other offsets.

Once a person has accepted that, the ledger knows the new topic by a name of its own, `topic#2`
(Kafka allows no such name): a topic like any other, beside the former one whose offsets are final.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from oncelake.model.offsets import TopicPartition

MARK = "#"
Value = TypeVar("Value")


def kafka_name(topic: str) -> str:
    return topic.partition(MARK)[0]


def next_epoch(topic: str) -> str:
    return f"{kafka_name(topic)}{MARK}{epoch_number(topic) + 1}"


def epoch_number(topic: str) -> int:
    return int(topic.partition(MARK)[2] or 1)


@dataclass(frozen=True, slots=True)
class Epochs:
    """The topics that were made anew: their newest name in the ledger, by Kafka's."""

    names: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, topics: Iterable[str]) -> Epochs:
        """Of all the topics that a ledger knows."""
        newest = {kafka_name(topic): topic for topic in sorted(topics, key=epoch_number)}
        return cls({name: topic for name, topic in newest.items() if name != topic})

    def ledger_name(self, topic: str) -> str:
        return self.names.get(topic, topic)

    def is_newest(self, topic: str) -> bool:
        """Whether a topic of the ledger is the one that Kafka has under its name now."""
        return self.ledger_name(kafka_name(topic)) == topic

    def in_ledger(
        self, by_partition: Mapping[TopicPartition, Value]
    ) -> dict[TopicPartition, Value]:
        """What Kafka and Spark say of their topics, by the names of the ledger."""
        return {
            TopicPartition(self.ledger_name(tp.topic), tp.partition): value
            for tp, value in by_partition.items()
        }

    def in_kafka(self, by_partition: Mapping[TopicPartition, Value]) -> dict[TopicPartition, Value]:
        """What the ledger says, by Kafka's names: only of topics as they are there now."""
        return {
            TopicPartition(kafka_name(tp.topic), tp.partition): value
            for tp, value in by_partition.items()
            if self.is_newest(tp.topic)
        }
