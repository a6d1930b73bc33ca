"""A producer that is fenced by another of its slot: it can say so, and gives up without a word."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from confluent_kafka import KafkaException

from oncelake.kafka_sink import bulk, messages
from oncelake.kafka_sink.messages import Address, Messages
from oncelake.kafka_sink.progress import Transactional
from oncelake.kafka_sink.send import FENCED
from oncelake.kafka_sink.target import FIXED
from oncelake.local.kafka import LocalKafka
from tests.oracle import records
from tests.outbox import ANSWER_SECONDS, Outbox

TIMEOUT_MS = 60_000


@pytest.fixture
def box(kafka: LocalKafka, tmp_path: Path) -> Outbox:
    return Outbox.make(kafka, tmp_path, partitions=1)


def _producer(box: Outbox) -> Transactional:
    config = {"bootstrap.servers": box.bootstrap, **FIXED, "linger.ms": "0"}
    return Transactional(config, f"{box.target}.slot", TIMEOUT_MS)


def _rows(count: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array([b"v"] * count, pa.binary())})


def _until_it_knows(fenced: Transactional) -> None:
    """Its requests are refused in the background: it is told nothing until it asks."""
    deadline, pause = time.monotonic() + ANSWER_SECONDS, threading.Event()
    while time.monotonic() < deadline:
        with pytest.raises(KafkaException) as told:
            fenced.producer.begin_transaction()  # the transaction is open, and not refused for that
        if told.value.args[0].fatal():
            return
        pause.wait(0.01)
    raise AssertionError("the broker has not refused it")


@pytest.fixture
def fenced(box: Outbox) -> tuple[Transactional, Messages]:
    """In the midst of a transaction; it knows, and was not told."""
    sender = _producer(box)
    sender.begin()
    queue = Messages(sender.producer, Address(box.target, 1000))
    _producer(box)
    queue.send(_rows(10))
    _until_it_knows(sender)
    return sender, queue


def test_one_that_meets_its_fence_at_the_next_row_says_by_what(
    fenced: tuple[Transactional, Messages],
) -> None:
    sender, queue = fenced
    with pytest.raises(KafkaException) as told:
        queue.send(_rows(10))
    assert sender.cause(told.value).code() in FENCED
    queue.close()
    assert bulk._kept_for_good == []


def test_its_queue_is_closed_without_raising_what_it_was_fenced_by(
    fenced: tuple[Transactional, Messages],
) -> None:
    sender, queue = fenced
    queue.close()
    assert len(sender.producer) == 0
    assert bulk._kept_for_good == []


def test_many_small_rows_wait_for_the_queue(box: Outbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are few bytes, and yet more than the queue takes at once."""
    monkeypatch.setattr(messages, "QUEUED_ROWS", 500)
    monkeypatch.setattr(messages, "CHUNK_ROWS", 100)
    config = {"bootstrap.servers": box.bootstrap, **FIXED, "queue.buffering.max.messages": "1000"}
    sender = Transactional(config, f"{box.target}.slot", TIMEOUT_MS)
    sender.begin()
    queue = Messages(sender.producer, Address(box.target, 1000))
    queue.send(_rows(50_000))
    sender.commit()
    queue.close()
    assert len(list(records(box.bootstrap, box.target))) == 50_000
