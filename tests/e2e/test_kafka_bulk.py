"""A batch that goes into the producer's queue by one call: the same messages as row by row."""

from __future__ import annotations

import socket
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
WIDE = 500


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
    queue.close()


def _numbered(numbers: range) -> pa.RecordBatch:
    values = [str(number).encode().zfill(WIDE) for number in numbers]
    return pa.RecordBatch.from_pydict({"value": pa.array(values, pa.binary())})


def test_a_batch_is_kept_until_its_messages_are_sent(box: Outbox) -> None:
    """They are not copied: memory that was let go would be that of other rows by then."""
    patient = {**FIXED, "linger.ms": "60000", "batch.num.messages": "1000000"}
    producer = Producer({"bootstrap.servers": box.bootstrap, **patient})
    messages = Messages(producer, Address(box.target, 1_000_000))
    messages.send(_numbered(range(1000)))
    others = [_numbered(range(n, n + 1000)) for n in range(1000, 100_000, 1000)]
    assert producer.flush(ANSWER_SECONDS) == 0
    messages.close()
    assert len(others) == 99
    found = [message.value() for message in records(box.bootstrap, box.target)]
    assert found == _numbered(range(1000)).column("value").to_pylist()


def test_no_more_is_kept_than_is_allowed(box: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    batches = [_numbered(range(start, start + 100)) for start in range(0, 1000, 100)]
    allowed = 3 * batches[0].nbytes
    monkeypatch.setattr(bulk, "MOST_LENT_BYTES", allowed)
    producer = Producer({"bootstrap.servers": box.bootstrap, **FIXED, "linger.ms": "60000"})
    queue = bulk.Bulk.of(producer, box.target)
    assert queue is not None
    for batch in batches:
        queue.enqueue(batch)
        assert sum(each.nbytes for each in queue._lent) <= allowed + batch.nbytes
    assert producer.flush(ANSWER_SECONDS) == 0
    queue.close()
    assert len(list(records(box.bootstrap, box.target))) == 1000


def test_what_a_producer_has_not_sent_is_taken_back_from_it() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        nobody = f"127.0.0.1:{silent.getsockname()[1]}"
        producer = Producer({"bootstrap.servers": nobody, **FIXED, "log_level": "0"})
        queue = bulk.Bulk.of(producer, "never")
        assert queue is not None
        queue.enqueue(_numbered(range(10)))
        queue.close()
    assert (queue._lent, bulk._kept_for_good) == ([], [])
