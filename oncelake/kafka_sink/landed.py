"""One partition of a batch, in a task of Spark, without transactions.

1. Read: where the partition ends now. From where it ended before the batch up to there is what an
   earlier try has landed.
2. Compare that, record by record, with the batch's first rows: it must be just these.
3. Send the rest, in order, and see each message come to the very next offset.

Whatever else is found there, somebody else has written: it stops, as rows would be left out or sent
twice. It cannot undo what came in between; transactions can.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from oncelake.errors import KafkaUnreachable, Unaccounted
from oncelake.kafka_sink.messages import Address, Messages, given_headers
from oncelake.kafka_sink.progress import ANSWER_SECONDS, READING_ALL, connection, watermarks
from oncelake.kafka_sink.send import OnSlotStep, SlotStep, no_step
from oncelake.kafka_sink.told import Report, Rows, Tally

WAIT_SECONDS = 0.1
VERSIONS = "_versions"
"""How many rows of its key a row stands for."""


@dataclass(frozen=True, slots=True)
class Landing:
    """What every task is told. `held` is where the partition of each task, by its number, ended
    before the batch. With `strict` nobody else may have written since."""

    sink: str
    to: Address
    sequence: int
    held: tuple[int, ...]
    config: Mapping[str, str]
    strict: bool = True
    on_step: OnSlotStep = no_step


class Record(NamedTuple):
    """A message by all that we have given it."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Any, ...]

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> Record:
        return cls(row.get("key"), row["value"], tuple(given_headers(row.get("headers"))))

    @classmethod
    def of_message(cls, message: Message) -> Record:
        return cls(message.key(), message.value(), tuple(message.headers() or ()))


def land(landing: Landing, partition: int, rows: Rows) -> Rows:
    """The work of a task, whose number is its partition's."""
    report = Report(partition)
    report.of(lambda: _land(landing, partition, rows, report.tally))
    yield report.row()


def _land(landing: Landing, partition: int, rows: Rows, tally: Tally) -> None:
    place = f"partition {partition} of {landing.to.topic}"
    held = Held(landing, partition)
    landing.on_step("after", SlotStep.READ)
    watch = Delivered(held.end, landing.strict, place)
    producer = Producer({**landing.config, "log_level": "0"})
    messages = Messages(producer, landing.to, partition, watch)
    for batch in unsent(_counted(rows, tally), held.records(), landing.strict, place):
        tally.fresh += batch.num_rows
        began = time.perf_counter()
        messages.send(batch)
        watch.stop_if_lost(producer)
        tally.sending += time.perf_counter() - began
    landing.on_step("before", SlotStep.COMMIT)
    began = time.perf_counter()
    while len(producer):
        producer.poll(WAIT_SECONDS)
        watch.stop_if_lost(producer)
    tally.sending += time.perf_counter() - began
    watch.require_all(tally.fresh)
    landing.on_step("after", SlotStep.COMMIT)


def _counted(rows: Rows, tally: Tally) -> Iterator[pa.RecordBatch]:
    for batch in rows:
        tally.rows += batch.num_rows
        tally.superseded += (pc.sum(batch.column(VERSIONS)).as_py() or 0) - batch.num_rows
        yield batch.drop_columns([VERSIONS])


def unsent(rows: Rows, landed: Iterator[tuple[int, Record]], strict: bool,
           place: str) -> Iterator[pa.RecordBatch]:  # fmt: skip
    """The rows behind those that have landed, which must be the first, in their order."""
    following = next(landed, None)
    for batch in rows:
        found = 0
        if following is not None:
            ours = [Record.of_row(row) for row in batch.to_pylist()]
            while following is not None and found < len(ours):
                offset, record = following
                if record == ours[found]:
                    found += 1
                elif strict:
                    raise _foreign(place, offset, record, "is not what this batch has there")
                following = next(landed, None)
        if found < batch.num_rows:
            yield batch.slice(found)
    if following is not None and strict:
        raise _foreign(place, *following, "is past the last row of this batch")


class Held:
    """What a partition holds from where it ended before the batch up to its end now."""

    def __init__(self, landing: Landing, partition: int) -> None:
        self._begin = landing.held[partition]
        self._here = TopicPartition(landing.to.topic, partition, self._begin)
        self._landing = landing
        config = {**connection(landing.config), **READING_ALL, "auto.offset.reset": "error"}
        self._reader = Consumer({**config, "group.id": f"{landing.sink}.landed"})
        first, self.end = watermarks(self._reader, self._here)
        if first > self._begin:
            raise Unaccounted(
                f"partition {partition} of {landing.to.topic} begins at offset {first}, and batch "
                f"{landing.sequence} of sink {landing.sink} was begun when it ended at "
                f"{self._begin}: Kafka has removed what would tell which rows have landed. Nothing "
                "was sent. Give the sink another name: it then sends the batch as its first"
            )
        if self.end < self._begin:
            raise Unaccounted(
                f"partition {partition} of {landing.to.topic} ended at offset {self._begin} when "
                f"batch {landing.sequence} of sink {landing.sink} was planned, and ends at "
                f"{self.end} now: the topic was made anew, or has lost records. Nothing was sent. "
                "Give the sink another name: it then sends the batch as its first"
            )

    def records(self) -> Iterator[tuple[int, Record]]:
        """By their offsets. A hole between them is somebody else's: nobody has compacted yet."""
        try:
            if self._begin < self.end:
                self._reader.assign([self._here])
            at = self._begin
            while at < self.end:
                message = self._reader.poll(ANSWER_SECONDS)
                if message is None:
                    raise KafkaUnreachable(
                        f"partition {self._here.partition} of {self._here.topic} gave nothing from "
                        f"offset {at} on within {ANSWER_SECONDS:.0f} s"
                    )
                if (error := message.error()) is not None:
                    if error.code() != KafkaError._PARTITION_EOF:
                        raise KafkaException(error)
                    if (message.offset() or 0) >= self.end:
                        return
                    # A broker that leads since a moment may not know yet all that is there.
                    continue
                offset = message.offset()
                assert offset is not None
                yield offset, Record.of_message(message)
                at = offset + 1
        finally:
            self._reader.close()


class Delivered:
    """Told of every message: whether it came to the very next offset."""

    def __init__(self, begin: int, strict: bool, place: str) -> None:
        self._next = begin
        self._strict = strict
        self._place = place
        self._count = 0
        self._error: KafkaError | None = None
        self._astray: int | None = None

    def __call__(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._error = self._error or error
            return
        offset = message.offset()
        assert offset is not None
        if offset != self._next and self._astray is None:
            self._astray = self._next
        self._count += 1
        self._next = offset + 1

    def stop_if_lost(self, producer: Producer) -> None:
        """What comes behind a message that was given up must not be sent: it would leave a hole,
        and the next run would take all behind that for somebody else's."""
        if self._error is not None:
            producer.purge()
            raise KafkaException(self._error)

    def require_all(self, count: int) -> None:
        if self._count != count:
            raise KafkaUnreachable(f"{self._place} took {self._count} of {count} messages")
        if self._strict and self._astray is not None:
            raise Unaccounted(
                f"while a batch was sent to {self._place}, somebody else wrote to it, at offset "
                f"{self._astray}. The batch's rows are all there; if the other was an earlier run "
                f"of this sink that woke up, some are there twice. {_ADVICE}"
            )


_ADVICE = (
    "Stop whoever writes there besides, or use transactions, which bear it. To go on and pass over "
    "what is not ours: foreign pass"
)


def _foreign(place: str, offset: int, record: Record, what: str) -> Unaccounted:
    key = None if record.key is None else record.key[:80].decode(errors="replace")
    return Unaccounted(
        f"offset {offset} of {place} holds a record (key {key!r}) that {what}: somebody else has "
        "written there since the batch was begun, or the query gives other rows for the same "
        f"offsets. Nothing more was sent. {_ADVICE}"
    )
