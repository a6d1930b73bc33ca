"""Rows of an Arrow batch into a producer's queue, in their order and not too many at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
import pyarrow.compute as pc  # type: ignore[import-untyped]
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from oncelake.errors import TooLarge
from oncelake.kafka_sink.bulk import Bulk

QUEUED_BYTES, QUEUED_ROWS = 64 << 20, 500_000
"""How much waits in the queue, which is made for twice as many messages (see `target`)."""
CHUNK_BYTES, CHUNK_ROWS = 8 << 20, 5_000
PLAIN = {"key", "value"}
"""What a whole batch can be handed over with; headers and the like go message by message."""
SHOWN = 80
ANY = -1
"""The partition that a key belongs to, by Kafka's own rule."""

OnDelivery = Callable[[KafkaError | None, Message], None]


@dataclass(frozen=True, slots=True)
class Address:
    """A topic, the bytes of the largest message it takes, and where larger ones go, if anywhere."""

    topic: str
    largest: int
    aside: str | None = None


class Messages:
    """Messages into one topic, and one partition of it if that is said. What goes wrong with them
    `on_delivery` is told; with transactions the commit tells it."""

    def __init__(self, producer: Producer, address: Address, partition: int = ANY,
                 on_delivery: OnDelivery | None = None) -> None:  # fmt: skip
        self._producer = producer
        self._to = address
        self._how: dict[str, Any] = {"partition": partition}
        if on_delivery is not None:
            self._how["on_delivery"] = on_delivery
        told = partition != ANY or on_delivery is not None
        self._bulk = None if told else Bulk.of(producer, address.topic)

    def close(self) -> None:
        """Before the producer is closed. What it has not sent by now is given up."""
        if self._bulk is not None:
            self._bulk.close()

    def send(self, batch: pa.RecordBatch) -> int:
        """Enqueue them all; how many of them were put aside."""
        if not batch.num_rows:
            return 0
        sizes = _sizes(batch)
        large = sizes > self._to.largest
        aside = int(large.sum())
        if aside:
            self._put_aside(batch.filter(pa.array(large)), sizes[large])
            batch, sizes = batch.filter(pa.array(~large)), sizes[~large]
        a_row = max(1, int(sizes.mean())) if len(sizes) else 1
        chunk_rows = max(1, min(CHUNK_ROWS, CHUNK_BYTES // a_row))
        for start in range(0, batch.num_rows, chunk_rows):
            # The queue itself would take much more, and refuse the rest out of order.
            while (queued := len(self._producer)) * a_row > QUEUED_BYTES or queued > QUEUED_ROWS:
                self._producer.poll(0.01)
            self._enqueue(batch.slice(start, chunk_rows))
            self._producer.poll(0)
        return aside

    def _enqueue(self, chunk: pa.RecordBatch) -> None:
        plain = set(chunk.schema.names) <= PLAIN
        if plain and self._bulk is not None:
            self._bulk.enqueue(chunk)
            return
        rows: list[dict[str, Any]] = chunk.to_pylist()
        if plain:
            if self._producer.produce_batch(self._to.topic, rows, **self._how) != len(rows):
                raise next(KafkaException(row["_error"]) for row in rows if "_error" in row)
            return
        for row in rows:
            topic = row.pop("topic", None) or self._to.topic
            self._producer.produce(topic, **{**self._how, **_given(row)})

    def _put_aside(self, batch: pa.RecordBatch, sizes: np.ndarray[Any, Any]) -> None:
        """Whole, with the reason, in the same transaction; or refuse all."""
        for row, size in zip(batch.to_pylist(), sizes, strict=True):
            reason = f"{size:,} bytes, and {self._to.topic} takes {self._to.largest:,}"
            if self._to.aside is None:
                raise TooLarge(
                    f"the row with key {_shown(row.get('key'))} has {reason}. Its batch is not "
                    "complete. Raise the topic's max.message.bytes, or have such rows put aside: "
                    'too_large="quarantine"'
                )
            given = _given({k: v for k, v in row.items() if k not in ("topic", "partition")})
            given["headers"].append(("oncelake.reason", reason.encode()))
            self._producer.produce(self._to.aside, **given)


def _sizes(batch: pa.RecordBatch) -> np.ndarray[Any, Any]:
    """The bytes of each row's key and value."""
    total = np.zeros(batch.num_rows, dtype=np.int64)
    for name in PLAIN & set(batch.schema.names):
        lengths = pc.fill_null(pc.binary_length(batch.column(name)), 0)
        total += lengths.to_numpy(zero_copy_only=False)
    return total


def _given(row: dict[str, Any]) -> dict[str, Any]:
    """As `produce` takes it: no partition means any."""
    headers = given_headers(row.pop("headers", None))
    return {name: value for name, value in row.items() if value is not None} | {"headers": headers}


def given_headers(column: Sequence[Mapping[str, Any]] | None) -> list[tuple[str, bytes | None]]:
    """As Kafka's clients give and take them."""
    return [(header["key"], header["value"]) for header in column or ()]


def _shown(key: bytes | None) -> str:
    return "null" if key is None else repr(key[:SHOWN].decode(errors="replace"))
