"""A batch that goes into the producer's queue by one call: the same messages as row by row."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from confluent_kafka import KafkaException, Producer

from oncelake.kafka_sink import bulk
from oncelake.kafka_sink.messages import Address, Messages
from oncelake.kafka_sink.target import FIXED
from oncelake.local.kafka import LocalKafka
from tests.oracle import records
from tests.outbox import ANSWER_SECONDS, Outbox

KEYS = [b"k0", None, b"", b"k3", b"k4", None]
VALUES = [b"v0", b"v1", b"v2", None, b"", b"v5"]
SKIPPED = 1
"""A slice of a batch begins in the midst of its buffers."""


@pytest.fixture
def box(kafka: LocalKafka, tmp_path: Path) -> Outbox:
    return Outbox.make(kafka, tmp_path, partitions=1)


def _sent(box: Outbox, kind: pa.DataType) -> list[tuple[bytes | None, bytes | None]]:
    """Key and value of each message, as a reader gets them."""
    rows = {"key": pa.array(KEYS, kind), "value": pa.array(VALUES, kind)}
    producer = Producer({"bootstrap.servers": box.bootstrap, **FIXED})
    messages = Messages(producer, Address(box.target, 1000))
    messages.send(pa.RecordBatch.from_pydict(rows).slice(SKIPPED))
    assert producer.flush(ANSWER_SECONDS) == 0
    messages.close()
    return [(message.key(), message.value()) for message in records(box.bootstrap, box.target)]


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()])
def test_nulls_and_empty_values_stay_what_they_are(box: Outbox, kind: pa.DataType) -> None:
    """A message without a value deletes its key in a compacted topic; an empty one does not."""
    assert bulk._library() is not None, "the pinned confluent-kafka is one that was looked at"
    assert _sent(box, kind) == list(zip(KEYS, VALUES, strict=True))[SKIPPED:]


def test_with_another_release_messages_go_the_slower_way(
    box: Outbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "_library", lambda: None)
    assert _sent(box, pa.binary()) == list(zip(KEYS, VALUES, strict=True))[SKIPPED:]


def test_a_release_that_was_not_looked_at_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "version", lambda name: "3.0.0")
    assert bulk._library.__wrapped__() is None


def test_what_the_queue_does_not_take_is_told(box: Outbox) -> None:
    small = {**FIXED, "queue.buffering.max.messages": "3", "linger.ms": "10000"}
    producer = Producer({"bootstrap.servers": box.bootstrap, **small})
    queue = bulk.Bulk.of(producer, box.target)
    assert queue is not None
    with pytest.raises(KafkaException, match="Queue full"):
        queue.enqueue(pa.RecordBatch.from_pydict({"value": pa.array(VALUES, pa.binary())}))
    producer.purge()
    queue.close()
