"""A whole Arrow batch into a producer's queue by one call, without a Python object for each row.

confluent-kafka takes a dict a message. To make the dicts and to take them apart again was most of
what a row cost: 5 µs of processor time, against 1 µs this way (530 bytes, no compression). Below
it, librdkafka's public `rd_kafka_produce_batch` takes an array of structs, and numpy fills that
from Arrow's own buffers. Nor are the messages copied: the producer reads them where they stand, and
a batch is kept until it has done with it.

The library is the one that confluent-kafka has loaded, and the handle is its producer's. Where in
the Python object that stands is not public: only of releases that were looked at is it taken, and
with any other, messages go the slower way.
"""

from __future__ import annotations

import ctypes
import time
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from typing import Any

import confluent_kafka
import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from confluent_kafka import KafkaError, KafkaException, Producer

LOOKED_AT = "2.16."
"""Releases of confluent-kafka whose producer holds librdkafka's handle right behind its head."""
LENT = 0
"""Neither RD_KAFKA_MSG_F_COPY nor _F_FREE: the messages' memory stays ours, and must stay."""
MOST_LENT_BYTES = 64 << 20
GIVE_UP_SECONDS = 30.0
MESSAGE = np.dtype(
    [
        ("err", np.int32),
        ("topic", np.uint64),
        ("partition", np.int32),
        ("payload", np.uint64),
        ("len", np.uint64),
        ("key", np.uint64),
        ("key_len", np.uint64),
        ("offset", np.int64),
        ("opaque", np.uint64),
    ],
    align=True,
)
"""rd_kafka_message_t."""

Numbers = np.ndarray[Any, Any]


@cache
def _library() -> ctypes.CDLL | None:
    if not version("confluent-kafka").startswith(LOOKED_AT):
        return None
    try:
        library = ctypes.CDLL(confluent_kafka.cimpl.__file__)
        pointer, whole = ctypes.c_void_p, ctypes.c_int
        library.rd_kafka_topic_new.argtypes = [pointer, ctypes.c_char_p, pointer]
        library.rd_kafka_topic_new.restype = pointer
        library.rd_kafka_topic_destroy.argtypes = [pointer]
        library.rd_kafka_produce_batch.argtypes = [pointer, ctypes.c_int32, whole, pointer, whole]
        same = library.rd_kafka_version() == confluent_kafka.libversion()[1]
    except (OSError, AttributeError):
        return None
    return library if same else None


_kept_for_good: list[list[pa.RecordBatch]] = []
"""Lent to producers that have not given it back when they were given up."""


class Bulk:
    """One producer's queue for one topic; the partition is chosen by the producer's own rule."""

    def __init__(self, library: ctypes.CDLL, producer: Producer, topic: str) -> None:
        self._library = library
        # The topic needs it to be there.
        self._producer = producer
        self._lent: list[pa.RecordBatch] = []
        self._lent_bytes = 0
        handle = ctypes.c_void_p.from_address(id(producer) + object.__basicsize__)
        self._topic = library.rd_kafka_topic_new(handle, topic.encode(), None)

    @classmethod
    def of(cls, producer: Producer, topic: str) -> Bulk | None:
        library = _library()
        return None if library is None else cls(library, producer, topic)

    def enqueue(self, batch: pa.RecordBatch) -> None:
        """All rows, by their `value` and, where there is one, `key`."""
        if self._lent_bytes > MOST_LENT_BYTES:
            self._await_all()
        self._lent.append(batch)
        self._lent_bytes += batch.nbytes
        messages = np.zeros(batch.num_rows, MESSAGE)
        messages["payload"], messages["len"] = _spans(batch.column("value"))
        if "key" in batch.schema.names:
            messages["key"], messages["key_len"] = _spans(batch.column("key"))
        any_partition, count = -1, len(messages)
        taken = self._library.rd_kafka_produce_batch(
            self._topic, any_partition, LENT, messages.ctypes.data, count
        )
        if taken != count:
            raise KafkaException(KafkaError(int(messages["err"][messages["err"] != 0][0])))

    def close(self) -> None:
        """Before the producer is. Messages that it has not done with by now are given up."""
        if self._topic is None:
            return
        self._library.rd_kafka_topic_destroy(self._topic)
        self._topic = None
        if len(self._producer):
            self._producer.purge()
        try:
            self._empty(by=time.monotonic() + GIVE_UP_SECONDS)
        finally:
            if len(self._producer):
                _kept_for_good.append(self._lent)
        self._lent, self._lent_bytes = [], 0

    def _empty(self, by: float) -> None:
        """What it has to tell, as of a broker that is away, is counted too, and may come again."""
        while len(self._producer) and time.monotonic() < by:
            # What the producer was fenced by is raised here once more, and is known.
            with suppress(KafkaException):
                self._producer.poll(0.1)

    def _await_all(self) -> None:
        """Only of an empty queue is it known which batches it no longer reads."""
        while len(self._producer):
            self._producer.flush(1)
        self._lent, self._lent_bytes = [], 0


def _spans(column: pa.Array) -> tuple[Numbers, Numbers]:
    """Where each value begins in memory, and its length; a null begins nowhere."""
    validity, offsets, data = column.buffers()
    width = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    borders = np.frombuffer(offsets, width)[column.offset : column.offset + len(column) + 1]
    # An empty value is not a null: it has a place, be it one where nothing is read.
    base = data.address if data is not None and data.size else offsets.address
    begins = borders[:-1].astype(np.uint64) + np.uint64(base)
    lengths = np.diff(borders).astype(np.uint64)
    if validity is not None and column.null_count:
        begins[column.is_null().to_numpy(zero_copy_only=False)] = 0
    return begins, lengths
