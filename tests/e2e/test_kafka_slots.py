"""A slot of a sink on a real broker, without Spark: copies, zombies and dead tasks of one slot."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from oncelake.errors import Fenced, TerminalError
from oncelake.kafka_sink import progress, send, tail
from oncelake.kafka_sink.messages import Address
from oncelake.kafka_sink.parts import PART
from oncelake.kafka_sink.send import DIGEST, FENCED, Order
from oncelake.kafka_sink.target import FIXED
from oncelake.local.kafka import LocalKafka, create_topic
from tests.outbox import PARTITIONS, Outbox, read_committed

SLOT, LARGEST = 1, 1_000_000


@pytest.fixture
def order(kafka: LocalKafka, tmp_path: Path) -> Order:
    return made(kafka, tmp_path)


def made(kafka: LocalKafka, tmp_path: Path) -> Order:
    """A slot of a sink into a topic of its own."""
    box = Outbox.make(kafka, tmp_path)
    order = Order(
        sink=box.target,
        to=Address(box.target, LARGEST),
        progress_topic=f"{box.target}.progress",
        sequence=1,
        slots=(SLOT,),
        config={"bootstrap.servers": kafka.bootstrap, **FIXED},
        timeout_ms=60_000,
    )
    progress.ensure({"bootstrap.servers": kafka.bootstrap}, order.progress_topic, 3)
    return order


def _rows(*numbers: int) -> pa.RecordBatch:
    columns = {
        "key": pa.array([b"k"] * len(numbers), pa.binary()),
        "value": pa.array([str(number).encode() for number in numbers], pa.binary()),
        DIGEST: pa.array(numbers, pa.int64()),
    }
    return pa.RecordBatch.from_pydict(columns)


def _sent(order: Order, rows: Iterator[pa.RecordBatch]) -> dict[str, Any]:
    parted = (each.append_column(PART, pa.array([0] * len(each), pa.int32())) for each in rows)
    (result,) = send.send(order, parted)
    (row,) = result.to_pylist()
    return dict(row)


def produce(order: Order, numbers: Iterable[int]) -> None:
    """As somebody else does, into all partitions."""
    producer = Producer({"bootstrap.servers": order.config["bootstrap.servers"]})
    for number in numbers:
        producer.produce(order.to.topic, value=str(number), partition=number % PARTITIONS)
    assert producer.flush(60) == 0


def _seen(order: Order) -> list[int]:
    found = read_committed(order.config["bootstrap.servers"], order.to.topic)
    return sorted(int(message.value) for message in found)


class Paused:
    """Rows that stop half-way, as those of a task that is stopped do, until they are let go. The
    first half is in Kafka then, in a transaction that is open."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self.half_sent, self.go_on = threading.Event(), threading.Event()

    def rows(self) -> Iterator[pa.RecordBatch]:
        before = self._in_kafka()
        yield _rows(*range(10))
        while self._in_kafka() < before + 10:
            yield _rows()
        self.half_sent.set()
        assert self.go_on.wait(60)
        yield _rows(*range(10, 20))

    def _in_kafka(self) -> int:
        """Also what nobody has committed."""
        bootstrap = self._order.config["bootstrap.servers"]
        every = {"group.id": "test", "isolation.level": "read_uncommitted"}
        reader = Consumer({"bootstrap.servers": bootstrap, **every})
        here = (TopicPartition(self._order.to.topic, each) for each in range(PARTITIONS))
        held = sum(reader.get_watermark_offsets(each, timeout=60)[1] for each in here)
        reader.close()
        return held


def test_the_second_time_nothing_is_sent(order: Order) -> None:
    assert _sent(order, iter([_rows(1, 2), _rows(3)]))["fresh"] == 3
    again = _sent(order, iter([_rows(3, 2, 1)]))
    assert (again["fresh"], again["rows"], again["problem"]) == (0, 3, None)
    assert _sent(replace(order, sequence=2), iter([_rows(4)]))["fresh"]
    assert _seen(order) == [1, 2, 3, 4]


@pytest.mark.parametrize("now", [(1, 2), (1, 2, 4), (1, 2, 3, 3)])
def test_other_rows_for_the_same_offsets_are_told(order: Order, now: tuple[int, ...]) -> None:
    _sent(order, iter([_rows(1, 2, 3)]))
    again = _sent(order, iter([_rows(*now)]))
    assert again["fault"] == "Unaccounted"
    assert "not deterministic" in again["problem"]
    assert _seen(order) == [1, 2, 3]


def test_what_a_dead_task_has_left_open_is_aborted_by_the_next(order: Order) -> None:
    """A reader of committed records is held up until then, and sees none of it."""
    paused = Paused(order)
    with ThreadPoolExecutor() as pool:
        dead = pool.submit(_sent, order, paused.rows())
        assert paused.half_sent.wait(60)
        assert _sent(order, iter([_rows(*range(20))]))["fresh"]
        assert _seen(order) == list(range(20))
        paused.go_on.set()
        assert not dead.result()["fresh"]
    assert _seen(order) == list(range(20))


def test_a_copy_of_a_slow_task_fences_it_and_the_slow_one_waits_for_the_other(
    order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What says so is Kafka: its error is what the slow one gets."""
    causes: list[KafkaError] = []
    wait = send._await_other

    def noted(order: Order, slot: int, cause: KafkaError) -> None:
        causes.append(cause)
        wait(order, slot, cause)

    monkeypatch.setattr(send, "_await_other", noted)
    slow, copy = Paused(order), Paused(order)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(_sent, order, slow.rows())
        assert slow.half_sent.wait(60)
        second = pool.submit(_sent, order, copy.rows())
        assert copy.half_sent.wait(60)
        slow.go_on.set()
        copy.go_on.set()
        assert second.result()["fresh"]
        assert not first.result()["fresh"]
    assert _seen(order) == list(range(20))
    (cause,) = causes
    assert cause.code() in FENCED


def test_a_row_that_is_too_large_stops_its_slot_or_is_put_aside_with_the_reason(
    order: Order,
) -> None:
    small = replace(order, to=replace(order.to, largest=3))
    stopped = _sent(small, iter([_rows(1, 22, 333)]))
    assert stopped["fault"] == "TooLarge"
    assert "key 'k' has 4 bytes" in stopped["problem"]
    assert _seen(order) == []
    aside = f"{order.to.topic}.quarantine"
    create_topic(order.config["bootstrap.servers"], aside, 1)
    kept = _sent(replace(small, to=replace(small.to, aside=aside)), iter([_rows(1, 22, 333)]))
    assert (kept["rows"], kept["aside"], kept["fresh"]) == (3, 1, 3)
    assert _seen(order) == [1, 22]
    (large,) = read_committed(order.config["bootstrap.servers"], aside)
    assert large.value == "333"


def test_a_progress_topic_whose_records_are_deleted_is_refused(order: Order) -> None:
    config = {"bootstrap.servers": order.config["bootstrap.servers"]}
    create_topic(config["bootstrap.servers"], f"{order.to.topic}.made", 4)
    with pytest.raises(TerminalError, match=r"cleanup\.policy is delete"):
        progress.ensure(config, f"{order.to.topic}.made", 3)
    progress.ensure(config, order.progress_topic, 5)
    assert tail.last(config, order.progress_topic, progress.partition_of(4)) is None


@pytest.mark.faults
def test_a_dead_run_holds_readers_up_no_longer_than_the_time_out(order: Order) -> None:
    """Also where no other run comes to end what it has left open."""
    paused = Paused(order)
    hasty = replace(order, timeout_ms=1_000)
    with ThreadPoolExecutor() as pool:
        dead = pool.submit(_sent, hasty, paused.rows())
        assert paused.half_sent.wait(60)
        # Behind the open transaction, in every partition.
        produce(order, range(100, 130))
        deadline = time.monotonic() + 60
        while len(_seen(order)) < 30:
            assert time.monotonic() < deadline, "readers are still held up"
        assert _seen(order) == list(range(100, 130)), "of what was left open nothing is seen"
        paused.go_on.set()
        with pytest.raises(Fenced):
            dead.result()


def test_large_rows_are_sent_without_filling_the_memory(order: Order) -> None:
    """More than the queue may hold, and each nearly as large as the topic takes."""
    rows, size = 240, 900_000
    padding = bytes(size)

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, rows, 10):
            numbers = range(start, start + 10)
            values = pa.array([str(n).zfill(9).encode() + padding for n in numbers], pa.binary())
            columns = {"value": values, DIGEST: pa.array(numbers, pa.int64())}
            yield pa.RecordBatch.from_pydict(columns)

    before = psutil.Process().memory_info().rss
    settings = {"compression.type": "zstd", "batch.size": "1000000"}
    sent = _sent(replace(order, config={**order.config, **settings}), batches())
    grown = psutil.Process().memory_info().rss - before
    assert sent["fresh"] == rows
    assert grown < rows * size, "all of it was in memory at once"
    assert len(read_committed(order.config["bootstrap.servers"], order.to.topic)) == rows


@pytest.mark.faults
def test_a_broker_that_is_killed_in_the_midst_of_a_slot_is_waited_for(tmp_path: Path) -> None:
    with LocalKafka(tmp_path / "kafka") as broker:
        order = made(broker, tmp_path)
        paused = Paused(order)
        with ThreadPoolExecutor() as pool:
            sending = pool.submit(_sent, order, paused.rows())
            assert paused.half_sent.wait(60)
            broker.kill()
            broker.start()
            paused.go_on.set()
            assert sending.result()["fresh"] == 20
        assert _seen(order) == list(range(20))
