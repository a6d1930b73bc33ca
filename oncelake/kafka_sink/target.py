"""Where a sink sends to, and what the topic takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaException
from confluent_kafka.cimpl import NewTopic

from oncelake import client, source
from oncelake.errors import KafkaUnreachable, TerminalError, TopicMissing
from oncelake.kafka_sink.messages import Address
from oncelake.kafka_sink.progress import ANSWER_SECONDS, setting
from oncelake.kafka_sink.send import OnSlotStep, no_step
from oncelake.spec import shown

# Messages wait for company: fewer and larger requests. As large as a broker takes by default.
# A socket's buffer grows to megabytes by itself, and a broker takes a fifth of one at once by
# default: it then is woken far more often, for less. Twice that of Java's clients is ample.
DEFAULTS = {
    "linger.ms": "20",
    "batch.size": "1000000",
    "compression.type": "lz4",
    "socket.send.buffer.bytes": "262144",
}
# As Java's clients choose a partition for a key; in their order even where one is sent again.
FIXED = {
    "partitioner": "murmur2_random",
    "enable.idempotence": "true",
    "acks": "all",
    "queue.buffering.max.messages": "1000000",
    "queue.buffering.max.kbytes": "1048576",
}
STOP, QUARANTINE = "stop", "quarantine"
"""What becomes of a row that is larger than the topic takes."""
TRANSACTIONS, OFFSETS = "transactions", "offsets"
PASS = "pass"
"""In mode offsets, records of somebody else's in the midst of a batch: stop, or pass over them."""
ROOM = 1_000
"""Bytes that a request takes besides its messages' own: ample."""
LARGEST = 100_000_000
"""What a broker takes by default of one request: a message put aside may be as large."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where to send. `config` are librdkafka settings, the address among them."""

    name: str
    topic: str
    config: Mapping[str, str]
    slots: int
    partitions: int = 1
    largest: int = 1_000_000
    quarantine: str | None = None
    timeout_ms: int = 120_000
    strict: bool = True
    on_slot_step: OnSlotStep = no_step

    @property
    def progress_topic(self) -> str:
        return f"{self.topic}.oncelake.{self.name}"

    @property
    def producing(self) -> dict[str, str]:
        """The producers' settings: no request larger than the topic takes, but for one message."""
        most = {"message.max.bytes": str(LARGEST)}
        chosen = {**DEFAULTS, **self.config, **FIXED, **most}
        return chosen | {"batch.size": str(min(int(chosen["batch.size"]), self.largest))}

    @property
    def address(self) -> Address:
        return Address(self.topic, self.largest, self.quarantine)


def most_bytes(config: Mapping[str, str], topic: str) -> int:
    """The largest message that the topic takes, by its key and value."""
    admin = client.admin(config)
    try:
        return int(setting(admin, topic, "max.message.bytes")) - ROOM
    except (KafkaException, TimeoutError) as error:
        raise KafkaUnreachable(
            f"Kafka did not tell how large a message topic {topic} takes: {error}. Check the "
            "address, and that you may describe the topic"
        ) from error


def ensure_quarantine(config: Mapping[str, str], topic: str, partitions: int) -> None:
    """Make the topic for what is too large, where it is missing."""
    admin = client.admin(config)
    settings = {"max.message.bytes": str(LARGEST)}
    try:
        if topic not in admin.list_topics(timeout=ANSWER_SECONDS).topics:
            new = NewTopic(topic, partitions, -1, config=settings)
            admin.create_topics([new], request_timeout=ANSWER_SECONDS)[topic].result(ANSWER_SECONDS)
    except (KafkaException, TimeoutError) as error:
        raise KafkaUnreachable(
            f"the topic {topic}, for rows that are too large, could not be made: {error}. Check "
            "that you may create topics, or have it made, with max.message.bytes=100000000"
        ) from error


@dataclass(frozen=True, slots=True)
class Sending:
    """Where to and how. `options` are librdkafka settings, of the producers too."""

    topic: str
    bootstrap: str
    key: str | None = None
    name: str | None = None
    options: Mapping[str, str] | None = None
    transaction_timeout: float = 120.0
    too_large: str = STOP
    mode: str = TRANSACTIONS
    foreign: str = STOP

    def __post_init__(self) -> None:
        for name, choice in (("too_large", (STOP, QUARANTINE)), ("foreign", (STOP, PASS)),
                             ("mode", (TRANSACTIONS, OFFSETS))):  # fmt: skip
            if (given := getattr(self, name)) not in choice:
                raise TerminalError(f"{name} is {' or '.join(map(repr, choice))}, not {given!r}")
        if self.mode == OFFSETS and self.too_large == QUARANTINE:
            raise TerminalError(
                "rows that are too large are put aside in the transaction of the others: in mode "
                "offsets they might be put aside twice. Leave too_large at 'stop'"
            )

    @property
    def config(self) -> dict[str, str]:
        return {"bootstrap.servers": self.bootstrap, **(self.options or {})}

    def target(self, slots: int) -> Target:
        """As the topic is: asks Kafka, and makes the quarantine where one is wanted."""
        try:
            partitions = len(source.describe(self.config, [self.topic]).partitions)
        except TopicMissing as error:
            raise TopicMissing(
                f"topic {self.topic}, which is to be sent to, does not exist at "
                f"{shown(self.bootstrap)}; create it with as many partitions as its readers want"
            ) from error
        aside = None
        if self.too_large == QUARANTINE:
            aside = f"{self.topic}.quarantine"
            ensure_quarantine(self.config, aside, partitions)
        largest = most_bytes(self.config, self.topic)
        timeout_ms = round(self.transaction_timeout * 1000)
        name = self.name or self.topic
        return Target(name, self.topic, self.config, slots, partitions, largest, aside, timeout_ms,
                      strict=self.foreign == STOP)  # fmt: skip
