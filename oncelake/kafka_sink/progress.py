"""The progress topic of a sink: plans in its first partition, receipts of each slot in one more.

A slot's partition is written by that slot's producer alone. So once a new producer of the slot has
fenced the former, no transaction is open there, and what a reader of committed records finds last
is all there is. In a partition that slots shared, an open transaction of one would hide the
receipts of the others.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    ResourceType,
)
from confluent_kafka.cimpl import NewPartitions, NewTopic

from oncelake import client
from oncelake.errors import KafkaUnreachable, TerminalError
from oncelake.source import once_led

ANSWER_SECONDS = 30.0
PLANS = 0

NOT_YET_KNOWN = (KafkaError._UNKNOWN_PARTITION, KafkaError.UNKNOWN_TOPIC_OR_PART)
"""What a broker says of a partition that another has just made."""

Config = Mapping[str, str]

PATIENCE = 2
"""How often the time that Kafka gives a transaction is waited for the answer to a commit."""

AT_ONCE = {"enable.sparse.connections": "false"}
"""A slot's producer lives for one batch and talks to most brokers: it connects to all as it is
made. Else librdkafka connects as each is needed, and to the transactions' coordinator often only
on its next half second's tick; that made a third of the fences take 0.5 s instead of 0.01."""

READING = {
    "isolation.level": "read_committed",
    "enable.auto.commit": "false",
    "enable.partition.eof": "true",
    "fetch.wait.max.ms": "10",
    "log_level": "0",
}
"""How what is in Kafka already is read."""
READING_ALL = READING | {"isolation.level": "read_uncommitted"}
"""The same, with what is not decided: else a partition seems to end before that."""


def connection(config: Config) -> dict[str, str]:
    """What it takes to reach a cluster: a producer's own settings are none of a consumer's."""
    kept = ("bootstrap.", "security.", "sasl.", "ssl.", "client.", "socket.", "broker.")
    return {key: value for key, value in config.items() if key.startswith(kept)}


def partition_of(slot: int) -> int:
    return PLANS + 1 + slot


def ensure(config: Config, topic: str, slots: int) -> None:
    """Make the topic, or give it more partitions: one for plans, one for each slot."""
    admin, wanted = client.admin(config), partition_of(slots - 1) + 1
    try:
        known = admin.list_topics(timeout=ANSWER_SECONDS).topics
        if topic in known:
            _require_compacted(admin, topic)
        if topic not in known:
            new = NewTopic(topic, wanted, -1, config={"cleanup.policy": "compact"})
            made = admin.create_topics([new], request_timeout=ANSWER_SECONDS)
        elif len(known[topic].partitions) < wanted:
            more = [NewPartitions(topic, wanted)]
            made = admin.create_partitions(more, request_timeout=ANSWER_SECONDS)
        else:
            return
        made[topic].result(ANSWER_SECONDS)
    except (KafkaException, TimeoutError) as error:
        raise KafkaUnreachable(
            f"the topic {topic}, which tells how far the sink has come, could not be made or "
            f"widened to {wanted} partitions: {error}. Check the address, and that you may create "
            "topics; or have it made, with cleanup.policy=compact"
        ) from error


def _require_compacted(admin: AdminClient, topic: str) -> None:
    """Where old records are deleted, a sink that rests for a week would begin anew."""
    policy = setting(admin, topic, "cleanup.policy")
    if policy != "compact":
        raise TerminalError(
            f"the topic {topic} tells how far a sink has come, and its cleanup.policy is {policy}: "
            "once its records are deleted every row would be sent again. Nothing was sent. Set it "
            "to compact"
        )


def setting(admin: AdminClient, topic: str, name: str) -> str:
    asked = ConfigResource(ResourceType.TOPIC, topic)
    found = admin.describe_configs([asked], request_timeout=ANSWER_SECONDS)[asked]
    return str(found.result(ANSWER_SECONDS)[name].value)


def watermarks(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    """First and next offset of a partition that was made, be it a moment ago."""
    return once_led(
        lambda: consumer.get_watermark_offsets(partition, timeout=ANSWER_SECONDS), NOT_YET_KNOWN
    )


def transactional_id(sink: str, slot: int | str) -> str:
    """Stable, so that a new producer of a slot fences the former."""
    return f"oncelake.{sink}.{slot}"


class Transactional:
    """A transactional producer; as it is made it fences every former one of its id."""

    def __init__(self, config: Config, transactional_id: str, timeout_ms: int) -> None:
        self._patience = PATIENCE * timeout_ms / 1000
        self.producer = Producer(
            {
                **AT_ONCE,
                **config,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": str(timeout_ms),
                "log_level": "0",
            }
        )
        self.producer.init_transactions(ANSWER_SECONDS)

    def begin(self) -> None:
        self.producer.begin_transaction()

    def note(self, topic: str, partition: int, text: str) -> None:
        """A record of progress, in the transaction that is open."""
        self.producer.produce(topic, key=b"progress", value=text.encode(), partition=partition)

    def commit(self) -> None:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                self.producer.commit_transaction()
                return
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise

    def abort(self, error: KafkaException) -> None:
        """Where that is what the error asks for; every other leaves it to the next to fence."""
        if self.cause(error).txn_requires_abort():
            self.producer.abort_transaction(ANSWER_SECONDS)

    def cause(self, error: KafkaException) -> KafkaError:
        """Why a producer cannot go on: it says only that it cannot, but to one who begins anew."""
        told: KafkaError = error.args[0]
        if told.code() in (KafkaError._FATAL, KafkaError._STATE):
            try:
                self.producer.begin_transaction()
            except KafkaException as why:
                return why.args[0]  # type: ignore[no-any-return]
        return told
