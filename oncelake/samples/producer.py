"""Sends sample articles to Kafka and knows what became of each.

The producer is idempotent and waits for all in-sync replicas, so a retry neither doubles nor
reorders a message; every delivery report is counted, and one failure fails the whole call.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from confluent_kafka.cimpl import NewTopic

from oncelake.errors import KafkaUnreachable, OncelakeError
from oncelake.local import ports
from oncelake.samples.articles import Event, Kind

ANSWER_SECONDS = 8.0
PROGRESS_EVERY_SECONDS = 0.1
# librdkafka would print to stderr by itself; what matters reaches the person as an error.
_SILENT = logging.getLogger("oncelake.librdkafka")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Target:
    """Where to send, how fast (messages a second, 0 for as fast as it goes)."""

    bootstrap: str
    topic: str
    rate: float = 0.0


@dataclass(frozen=True, slots=True)
class Produced:
    """What was sent and acknowledged; `ends` is one past the last offset of each partition."""

    sent: int
    corrupt: int
    duplicates: int
    late: int
    seconds: float
    ends: Mapping[int, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        ends = {str(partition): end for partition, end in sorted(self.ends.items())}
        return {**asdict(self), "ends": ends, "seconds": round(self.seconds, 3)}


def ensure_topic(bootstrap: str, topic: str, partitions: int) -> bool:
    """Create the topic where it is missing; True if it did. Fails clearly within ten seconds."""
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=_SILENT)
    try:
        if topic in admin.list_topics(timeout=ANSWER_SECONDS).topics:
            return False
        new = NewTopic(topic, num_partitions=partitions, replication_factor=-1)
        admin.create_topics([new], request_timeout=ANSWER_SECONDS)[topic].result(ANSWER_SECONDS)
    except (KafkaException, TimeoutError) as error:
        cause = _cause(error)
        if cause and cause.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return False
        raise _unreachable(bootstrap, error) from error
    return True


def offsets_taken(bootstrap: str, topic: str) -> int:
    """How many offsets the topic has given out, all its partitions together."""
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=_SILENT)
    try:
        partitions = admin.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic].partitions
        end: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        asked = {TopicPartition(topic, number): end for number in partitions}
        answers = admin.list_offsets(asked, request_timeout=ANSWER_SECONDS)
        return sum(answer.result(ANSWER_SECONDS).offset for answer in answers.values())
    except (KafkaException, TimeoutError) as error:
        raise _unreachable(bootstrap, error) from error


def produce(events: Iterable[Event], target: Target, progress: Progress | None = None) -> Produced:
    """Send every event and return when all are acknowledged."""
    return _Sender(target, progress or (lambda _: None)).send(events)


class _Sender:
    def __init__(self, target: Target, progress: Progress) -> None:
        self._target = target
        self._progress = progress
        self._producer = Producer(_config(target.bootstrap), logger=_SILENT)
        self._kinds = dict.fromkeys(Kind, 0)
        self._ends: dict[int, int] = {}
        self._acknowledged = 0
        self._failure: KafkaError | None = None
        self._reported_at = 0.0

    def send(self, events: Iterable[Event]) -> Produced:
        began = time.monotonic()
        try:
            for number, event in enumerate(events):
                self._keep_pace(began, number)
                self._enqueue(event)
            while len(self._producer):
                self._serve(0.2)
        finally:
            # Only after an error or Ctrl+C is something left: it must not hold up the exit.
            self._producer.purge()
        self._progress(self._acknowledged)
        return Produced(
            sent=self._acknowledged,
            corrupt=self._kinds[Kind.CORRUPT],
            duplicates=self._kinds[Kind.DUPLICATE],
            late=self._kinds[Kind.LATE],
            seconds=time.monotonic() - began,
            ends=dict(sorted(self._ends.items())),
        )

    def _keep_pace(self, began: float, number: int) -> None:
        rate = self._target.rate
        if not rate:
            return
        while (ahead := began + number / rate - time.monotonic()) > 0:
            self._serve(ahead)

    def _enqueue(self, event: Event) -> None:
        self._kinds[event.kind] += 1
        while True:
            try:
                self._producer.produce(
                    self._target.topic, event.value, event.key, on_delivery=self._delivered
                )
            except BufferError:  # the local queue is full: let deliveries make room
                self._serve(0.2)
            except KafkaException as error:  # refused before it was even queued
                raise _undelivered(self._target, error.args[0], self._acknowledged) from error
            else:
                return self._serve(0)

    def _serve(self, seconds: float) -> None:
        """Run the delivery reports that are due; raise if one of them was a failure."""
        self._producer.poll(seconds)
        if self._failure is not None:
            raise _undelivered(self._target, self._failure, self._acknowledged)
        if (now := time.monotonic()) - self._reported_at >= PROGRESS_EVERY_SECONDS:
            self._reported_at = now
            self._progress(self._acknowledged)

    def _delivered(self, failure: KafkaError | None, message: Message) -> None:
        if failure is not None:
            self._failure = self._failure or failure
            return
        partition, offset = message.partition(), message.offset()
        if partition is not None and offset is not None:
            self._ends[partition] = max(self._ends.get(partition, 0), offset + 1)
        self._acknowledged += 1


def _config(bootstrap: str) -> dict[str, str | int | float | bool]:
    return {
        "bootstrap.servers": bootstrap,
        "enable.idempotence": True,
        "acks": "all",
        "retries": 2_147_483_647,
        "max.in.flight.requests.per.connection": 5,
        # Retries are without number, not without end: what is undelivered by then is an error.
        "delivery.timeout.ms": 120_000,
        "compression.type": "lz4",
        "linger.ms": 20,
        "batch.size": 1_000_000,
        # The same key lands in the same partition as with a Java client.
        "partitioner": "murmur2_random",
    }


def _cause(error: Exception) -> KafkaError | None:
    cause = error.args[0] if error.args else None
    return cause if isinstance(cause, KafkaError) else None


def _unreachable(bootstrap: str, error: Exception) -> KafkaUnreachable:
    cause = _cause(error)
    return KafkaUnreachable(
        f"Kafka at {bootstrap} did not answer: {cause.str() if cause else error}. "
        "Check --bootstrap (KAFKA_BOOTSTRAP_SERVERS) and that the broker runs; for a local one "
        f"type: oncelake local up{ports.port_option(bootstrap)}"
    )


def _undelivered(target: Target, failure: KafkaError, acknowledged: int) -> OncelakeError:
    what = (
        f"a message to topic {target.topic} at {target.bootstrap} was not delivered "
        f"({failure.name()}: {failure.str()}), {acknowledged:,} were before it. "
    )
    if failure.code() in (KafkaError._MSG_TIMED_OUT, KafkaError._TRANSPORT):
        return KafkaUnreachable(f"{what}See that the broker runs, then produce again")
    return OncelakeError(f"{what}Mend the topic or the broker, then produce again")
