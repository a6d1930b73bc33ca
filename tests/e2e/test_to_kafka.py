"""Spark into Kafka on a real broker: each row once, in order, whatever is lost in between."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import oncelake
from oncelake import outbound, pipeline
from oncelake.errors import CheckpointUnusable, TerminalError, Unaccounted
from oncelake.kafka_sink import modes, progress, tail
from oncelake.kafka_sink.plan import Dealt, Plan, Receipt
from oncelake.kafka_sink.send import SlotStep
from oncelake.kafka_sink.target import Sending
from oncelake.local.kafka import LocalKafka, create_topic
from oncelake.query import RunningQuery
from tests.oracle import records
from tests.outbox import PARTITIONS, Outbox, read_committed, with_coordinates


@pytest.fixture
def box(kafka: LocalKafka, tmp_path: Path) -> Outbox:
    return Outbox.make(kafka, tmp_path)


def _sent(box: Outbox, stream: DataFrame, **how: Any) -> RunningQuery:
    query: RunningQuery = oncelake.write(
        stream,
        kafka=box.target,
        bootstrap=box.bootstrap,
        checkpoint=str(box.checkpoint),
        once=True,
        **how,
    )
    query.wait()
    return query


def _last_plan(box: Outbox) -> Plan:
    topic = f"{box.target}.oncelake.{box.target}"
    text = tail.last({"bootstrap.servers": box.bootstrap}, topic, progress.PLANS)
    assert text is not None
    return Plan.from_text(text)


def _plain(stream: DataFrame) -> DataFrame:
    return stream.select("key", "value")


def test_every_row_is_sent_once_and_in_order(box: Outbox, spark: SparkSession) -> None:
    box.produce(range(600))
    _sent(box, _plain(box.stream(spark, most=200)))
    box.assert_once(range(600))
    box.produce(range(600, 700))
    _sent(box, _plain(box.stream(spark)))
    box.assert_once(range(700))
    assert _last_plan(box).dealt is Dealt.BY_SOURCE
    theirs = box.partitions_by_java(spark)
    assert {m.key: m.partition for m in box.seen()} == theirs, "not where Java's clients send them"


def test_each_partition_that_is_read_has_a_slot_whatever_task_reads_it(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """Also one of which no row is left: until it has a receipt, nothing could follow."""
    box = Outbox.make(kafka, tmp_path, partitions=5)
    for begin in (0, 200):
        box.produce(range(begin, begin + 200))
        _sent(box, _plain(box.stream(spark).filter("partition <> 1")))
    read = Counter(m.partition() for m in records(box.bootstrap, box.source))
    values = [int(message.value) for message in box.seen()]
    assert len(values) == len(set(values)) == 400 - read[1]
    plan, topic = _last_plan(box), f"{box.target}.oncelake.{box.target}"
    assert (plan.sequence, set(plan.slots)) == (2, set(read))
    receipts = {
        slot: [
            Receipt.from_text((message.value() or b"").decode())
            for message in records(box.bootstrap, topic)
            if message.partition() == progress.partition_of(slot)
        ]
        for slot in plan.slots
    }
    assert all([each.sequence for each in of_slot] == [1, 2] for of_slot in receipts.values())
    rows = {slot: sum(each.rows for each in of_slot) for slot, of_slot in receipts.items()}
    assert rows == {**read, 1: 0}


@pytest.mark.faults
def test_a_deleted_checkpoint_sends_nothing_twice(box: Outbox, spark: SparkSession) -> None:
    box.produce(range(300))
    _sent(box, with_coordinates(box.stream(spark, most=150)))
    shutil.rmtree(box.checkpoint)
    box.produce(range(300, 400))
    _sent(box, with_coordinates(box.stream(spark)))
    box.assert_once(range(400))


@pytest.mark.faults
def test_without_coordinates_a_deleted_checkpoint_is_refused(
    box: Outbox, spark: SparkSession
) -> None:
    box.produce(range(300))
    _sent(box, _plain(box.stream(spark, most=150)))
    shutil.rmtree(box.checkpoint)
    box.produce(range(300, 400))
    with pytest.raises(TerminalError, match="kafka_partition and kafka_offset"):
        _sent(box, _plain(box.stream(spark)))
    box.assert_once(range(300))


@pytest.mark.faults
def test_rows_that_a_shuffle_has_moved_are_sent_once_too(box: Outbox, spark: SparkSession) -> None:
    box.produce(range(300))
    moved = _plain(box.stream(spark, most=100)).repartition(4)
    _sent(box, moved)
    seen = box.seen()
    assert sorted(int(message.value) for message in seen) == list(range(300))
    assert _last_plan(box).dealt is Dealt.BY_KEY


@pytest.mark.faults
def test_after_a_batch_without_rows_it_goes_on(box: Outbox, spark: SparkSession) -> None:
    """Spark sees that such rows need not be dealt, and runs no task that could leave a receipt."""
    number = F.col("value").cast("string").cast("int")
    for begin in range(0, 60, 20):
        box.produce(range(begin, begin + 20))
        kept = _plain(box.stream(spark)).filter((number < 20) | (number >= 40))
        _sent(box, kept.repartition(4))
    assert sorted(int(message.value) for message in box.seen()) == [*range(20), *range(40, 60)]
    assert _last_plan(box).sequence == 3


@pytest.mark.faults
def test_headers_topic_and_partition_are_as_in_sparks_own_sink(
    box: Outbox, spark: SparkSession
) -> None:
    box.produce(range(30))
    other = f"{box.target}.other"
    create_topic(box.bootstrap, other, PARTITIONS)
    number = F.col("value").cast("string").cast("int")
    rows = box.stream(spark).select(
        "value",
        F.when(number % 2 == 0, F.lit(other)).alias("topic"),
        F.lit(1).alias("partition"),
        F.expr("array(struct('h' AS key, value AS value))").alias("headers"),
    )
    _sent(box, rows)
    even, odd = read_committed(box.bootstrap, other), box.seen()
    assert sorted(int(m.value) for m in even) == list(range(0, 30, 2))
    assert sorted(int(m.value) for m in odd) == list(range(1, 30, 2))
    for message in (*even, *odd):
        assert message.partition == 1
        assert message.headers == (("h", message.value.encode()),)


@pytest.mark.faults
def test_files_are_sent_once_each(box: Outbox, spark: SparkSession) -> None:
    """A batch of files is known by their names; rows of any columns are sent as JSON."""
    folder = box.folder / "files"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.json").write_text(f'{{"id": {number}, "word": "w{number}"}}\n')
    stream = spark.readStream.schema("id long, word string").option("maxFilesPerTrigger", 2)
    _sent(box, stream.json(str(folder)), key="id")
    (folder / "3.json").write_text('{"id": 3, "word": "w3"}\n')
    _sent(box, stream.json(str(folder)), key="id")
    found = {(m.key, m.value) for m in box.seen()}
    assert found == {(str(n), f'{{"id":{n},"word":"w{n}"}}') for n in range(4)}
    assert len(box.seen()) == 4
    shutil.rmtree(box.checkpoint)
    with pytest.raises(CheckpointUnusable, match="cannot be told"):
        _sent(box, stream.json(str(folder)), key="id")
    assert len(box.seen()) == 4


def _fails_in_one_slot(box: Outbox, stream: DataFrame, slots: int) -> None:
    """A run that dies for good when all slots but one have sent their part of its first batch."""
    config, topic = {"bootstrap.servers": box.bootstrap}, f"{box.target}.oncelake.{box.target}"
    chosen, failed = box.folder / "chosen", box.folder / "failed"

    def receipts() -> int:
        partitions = [progress.partition_of(slot) for slot in range(slots)]
        return sum(tail.last(config, topic, each) is not None for each in partitions)

    def fail_in_one(when: str, step: SlotStep) -> None:
        """In the slot that comes there first, once the others have sent their part; and then in
        that again and again, whichever task it has."""
        if (when, step) != ("before", SlotStep.COMMIT):
            return
        if not failed.exists():
            try:
                chosen.touch(exist_ok=False)
            except FileExistsError:
                return
            while receipts() < slots - 1:
                Event().wait(0.05)
            failed.touch()
        raise RuntimeError("lost")

    steps = outbound.Steps(slot=fail_in_one)
    with pytest.raises(TerminalError, match="failed 4 times"):
        outbound.write(stream, Sending(box.target, box.bootstrap), _once(box), steps).wait()


def _once(box: Outbox) -> pipeline.Running:
    return pipeline.Running(str(box.checkpoint), once=True)


@pytest.mark.faults
def test_a_query_that_gives_other_rows_for_the_same_offsets_is_stopped(
    box: Outbox, spark: SparkSession
) -> None:
    """After a crash between two slots: what one has sent is compared, not sent again."""
    box.produce(range(60))
    _fails_in_one_slot(box, _plain(box.stream(spark)), PARTITIONS)
    assert 0 < len(box.seen()) < 60
    other = _plain(box.stream(spark)).withColumn("value", F.concat("value", F.lit("0")))
    with pytest.raises(Unaccounted, match="not deterministic"):
        _sent(box, other)


@pytest.mark.faults
def test_other_numbers_of_slots_and_of_partitions_after_a_crash_lose_and_double_nothing(
    box: Outbox, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was begun is completed as it was planned, in as many slots; what follows is not."""
    box.produce(range(60))
    moved = _plain(box.stream(spark)).repartition(4)
    monkeypatch.setattr(modes, "slots_of", lambda spark: 2)
    _fails_in_one_slot(box, moved, slots=2)
    assert 0 < len(box.seen()) < 60
    monkeypatch.setattr(modes, "slots_of", lambda spark: 5)
    wider = NewPartitions(box.target, PARTITIONS + 2)
    admin = AdminClient({"bootstrap.servers": box.bootstrap})
    admin.create_partitions([wider])[box.target].result()
    _sent(box, moved)
    assert sorted(int(m.value) for m in box.seen()) == list(range(60))
    box.produce(range(60, 200), keys=1000)
    _sent(box, moved)
    seen = box.seen()
    assert sorted(int(m.value) for m in seen) == list(range(200))
    assert {m.partition for m in seen} == set(range(PARTITIONS + 2))
    assert _last_plan(box).slots == tuple(range(5))
