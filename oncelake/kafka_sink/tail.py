"""The last committed record of a partition: what a plan or a receipt says now.

A process keeps its consumer for the next question. To make one takes longer than to ask, and now
and then much longer: librdkafka gives up its first connection once it knows the broker by its
number, and repeats a question that was on its way there only 0.7 s later.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Lock

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, TopicPartition

from oncelake.errors import KafkaUnreachable
from oncelake.kafka_sink.progress import (
    ANSWER_SECONDS,
    NOT_YET_KNOWN,
    READING,
    Config,
    connection,
)
from oncelake.source import once_led

NEAR = 16
"""How many offsets before the end are looked at first: the last record is hardly ever further."""
ASKING = {
    **READING,
    # At the end of a partition the answer is to come at once: nothing is waited for.
    "fetch.wait.max.ms": "0",
    # A broker that comes back is asked again soon, though the consumer was idle meanwhile.
    "reconnect.backoff.max.ms": "1000",
    # The place that is asked for is there: where a broker says it is not, another is to be asked.
    "auto.offset.reset": "error",
}


def last(config: Config, topic: str, partition: int) -> str | None:
    """The last committed record of a partition. Fence first: see `progress`."""
    settings = {**connection(config), **ASKING, "group.id": f"{topic}.reader"}
    # A replica nearby may not have the last record yet: the leader is asked.
    settings.pop("client.rack", None)
    here = TopicPartition(topic, partition)
    # A consumer that knows the topic without this partition looks again only after minutes: it is
    # let go when it fails, and another one is asked.
    return once_led(lambda: _KEPT.last(settings, here), NOT_YET_KNOWN)


class _Asker:
    """One consumer, of the settings that were asked with last. Threads take turns."""

    def __init__(self) -> None:
        self._turn = Lock()
        self._settings: Config = {}
        self._consumer: Consumer | None = None

    def last(self, settings: Config, here: TopicPartition) -> str | None:
        with self._turn:
            if self._consumer is not None and settings == self._settings:
                # What it knows of the brokers may be of an hour ago.
                with suppress(KafkaException, KafkaUnreachable):
                    return self._ask(self._consumer, here)
            self._let_go()
            self._consumer, self._settings = Consumer(dict(settings)), settings
            return self._ask(self._consumer, here)

    def _ask(self, consumer: Consumer, here: TopicPartition) -> str | None:
        try:
            found = _last(consumer, here)
            consumer.unassign()
        except BaseException:
            # Whatever it was: the next question is not to suffer from it.
            self._let_go()
            raise
        return found

    def _let_go(self) -> None:
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.close()


_KEPT = _Asker()


def _last(consumer: Consumer, here: TopicPartition) -> str | None:
    low, high = consumer.get_watermark_offsets(here, timeout=ANSWER_SECONDS)
    window = NEAR
    while low < high:
        begin = max(low, high - window)
        found = _last_since(consumer, here, begin, high)
        if found is not None or begin == low:
            return found
        # Only records of aborted transactions, so far.
        window *= 16
    return None


def _last_since(consumer: Consumer, here: TopicPartition, begin: int, high: int) -> str | None:
    """Up to `high` at least: a broker that leads since a moment may not know yet all that is there,
    and calls what it knows the end."""
    consumer.assign([TopicPartition(here.topic, here.partition, begin or OFFSET_BEGINNING)])
    found: str | None = None
    while True:
        message = consumer.poll(ANSWER_SECONDS)
        if message is None:
            raise KafkaUnreachable(
                f"partition {here.partition} of {here.topic} gave no answer within "
                f"{ANSWER_SECONDS:.0f} s"
            )
        error, value = message.error(), message.value()
        if error is None:
            # One without a value removes another (see planlog) and says nothing.
            found = found if value is None else value.decode()
        elif error.code() == KafkaError._PARTITION_EOF:
            if (message.offset() or 0) >= high:
                return found
        else:
            raise KafkaException(error)
