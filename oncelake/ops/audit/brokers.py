"""Ask Kafka what topics hold: their identity, and their first and next offsets."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from threading import Event
from typing import Any, TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from oncelake.errors import KafkaUnreachable, SpecError
from oncelake.model import Origin, TopicPartition

ANSWER_SECONDS = 15.0
ASK_AGAIN_SECONDS = 0.1
NOT_LED = (KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION)
FIRST: Any = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
NEXT: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]

Answer = TypeVar("Answer")


class Brokers:
    """A cluster, by a confluent-kafka client configuration."""

    def __init__(self, config: Mapping[str, str]) -> None:
        self._bootstrap = config["bootstrap.servers"]
        try:
            self._admin = AdminClient({**config, "log_level": 0})
        except KafkaException as error:
            # Its first words name the setting; a value, which may be a secret, is in quotes.
            told = re.sub(r'Invalid value ".*" for', "Invalid value for", str(error.args[0].str()))
            raise SpecError(
                f"Kafka's client refuses its settings: {told}. Correct source.options, or what "
                "the audit was given for Kafka"
            ) from error

    def identify(self, topics: Iterable[str]) -> tuple[Origin, tuple[TopicPartition, ...]]:
        """The ids of the cluster and of those of the topics that exist, and their partitions."""
        return self._asked(lambda: self._identify(sorted(topics)))

    def offsets(
        self, partitions: Iterable[TopicPartition], which: Any
    ) -> dict[TopicPartition, int]:
        """The FIRST or the NEXT offset of each partition."""
        wanted = {KafkaPartition(tp.topic, tp.partition): which for tp in partitions}
        return self._asked(lambda: self._offsets(wanted)) if wanted else {}

    def _identify(self, topics: list[str]) -> tuple[Origin, tuple[TopicPartition, ...]]:
        cluster = self._admin.describe_cluster(request_timeout=ANSWER_SECONDS)
        ids, partitions = {}, []
        asked = TopicCollection(topics)
        answers = self._admin.describe_topics(asked, request_timeout=ANSWER_SECONDS)
        for topic, answer in answers.items():
            if found := _unless_missing(answer.result):
                ids[topic] = str(found.topic_id)
                partitions += [TopicPartition(topic, each.id) for each in found.partitions]
        return Origin(cluster.result(ANSWER_SECONDS).cluster_id, ids), tuple(partitions)

    def _offsets(self, wanted: dict[KafkaPartition, Any]) -> dict[TopicPartition, int]:
        answers = self._admin.list_offsets(wanted, request_timeout=ANSWER_SECONDS)
        return {
            TopicPartition(asked.topic, asked.partition): int(answer.result(ANSWER_SECONDS).offset)
            for asked, answer in answers.items()
        }

    def _asked(self, question: Callable[[], Answer]) -> Answer:
        try:
            return _once_led(question)
        except (KafkaException, TimeoutError) as error:
            reason = str(error) or "the request timed out"
            raise KafkaUnreachable(
                f"Kafka at {self._bootstrap} did not answer within {ANSWER_SECONDS:.0f} s: "
                f"{reason}. Check source.bootstrap (KAFKA_BOOTSTRAP_SERVERS) and that the broker "
                "runs; for a local one type: oncelake local up"
            ) from error


def _once_led(question: Callable[[], Answer]) -> Answer:
    """Ask again while a partition has no leader: while one is being elected."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            return question()
        except KafkaException as error:
            if error.args[0].code() not in NOT_LED or time.monotonic() > deadline:
                raise
            Event().wait(ASK_AGAIN_SECONDS)


def _unless_missing(answer: Callable[[float], Any]) -> Any:
    try:
        return answer(ANSWER_SECONDS)
    except KafkaException as error:
        if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return None
        raise
