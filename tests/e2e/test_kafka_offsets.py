"""A sink without transactions on a real broker: what has landed is compared, the rest is sent."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import oncelake
from oncelake.errors import CheckpointUnusable, TerminalError
from oncelake.kafka_sink import progress
from oncelake.kafka_sink.landed import VERSIONS, Landing, land
from oncelake.kafka_sink.messages import Address
from oncelake.kafka_sink.plan import Batch, Dealt, Plan
from oncelake.kafka_sink.planlog import Overtaken, PlanLog
from oncelake.kafka_sink.target import FIXED
from oncelake.local.kafka import LocalKafka
from tests.oracle import records
from tests.outbox import ANSWER_SECONDS, Outbox, with_coordinates

PARTITION, LARGEST = 1, 1_000_000
APART = 10**9
"""So many keys that no two messages have the same."""


@pytest.fixture
def box(kafka: LocalKafka, tmp_path: Path) -> Outbox:
    return Outbox.make(kafka, tmp_path)


@pytest.fixture
def landing(box: Outbox) -> Landing:
    config = {"bootstrap.servers": box.bootstrap, **FIXED}
    return Landing("sink", Address(box.target, LARGEST), 1, (0, 0, 0), config)


def _rows(*numbers: int) -> pa.RecordBatch:
    values = [str(number).encode() for number in numbers]
    columns = {"key": values, "value": values, VERSIONS: pa.array([1] * len(values), pa.int64())}
    return pa.RecordBatch.from_pydict(columns)


def _landed(landing: Landing, *rows: pa.RecordBatch) -> dict[str, Any]:
    (result,) = land(landing, PARTITION, iter(rows))
    (row,) = result.to_pylist()
    return dict(row)


def _by_somebody_else(box: Outbox, value: str) -> None:
    producer = Producer({"bootstrap.servers": box.bootstrap})
    producer.produce(box.target, key=value, value=value, partition=PARTITION)
    assert producer.flush(ANSWER_SECONDS) == 0


def _await_end(box: Outbox, end: int) -> None:
    reader = Consumer({"bootstrap.servers": box.bootstrap, "group.id": "test"})
    here = TopicPartition(box.target, PARTITION)
    while reader.get_watermark_offsets(here, timeout=ANSWER_SECONDS)[1] < end:
        Event().wait(0.05)
    reader.close()


def _values(box: Outbox) -> list[int]:
    return [int(message.value) for message in box.seen()]


def test_what_a_dead_task_has_landed_is_left_out(box: Outbox, landing: Landing) -> None:
    def dies_half_way() -> Iterator[pa.RecordBatch]:
        yield _rows(1, 2, 3)
        _await_end(box, 3)
        raise RuntimeError("lost")

    with pytest.raises(RuntimeError, match="lost"):
        list(land(landing, PARTITION, dies_half_way()))
    done = _landed(landing, _rows(1, 2), _rows(3, 4, 5))
    assert (done["rows"], done["fresh"], done["problem"]) == (5, 2, None)
    assert _values(box) == [1, 2, 3, 4, 5]
    assert _landed(landing, _rows(1, 2, 3, 4, 5))["fresh"] == 0
    assert _values(box) == [1, 2, 3, 4, 5]


def test_a_foreign_write_stops_the_batch_or_is_passed_over(box: Outbox, landing: Landing) -> None:
    """By count alone the first row would be taken for landed, and lost."""
    _by_somebody_else(box, "99")
    stopped = _landed(landing, _rows(1, 2))
    assert stopped["fault"] == "Unaccounted"
    assert f"offset 0 of partition {PARTITION} of {box.target}" in stopped["problem"]
    assert _values(box) == [99]
    assert _landed(replace(landing, strict=False), _rows(1, 2))["fresh"] == 2
    assert _values(box) == [99, 1, 2]


def test_a_write_of_others_while_a_batch_is_sent_is_told(box: Outbox, landing: Landing) -> None:
    def disturbed() -> Iterator[pa.RecordBatch]:
        yield _rows(1)
        _await_end(box, 1)
        _by_somebody_else(box, "99")
        yield _rows(2)

    (result,) = land(landing, PARTITION, disturbed())
    (row,) = result.to_pylist()
    assert row["fault"] == "Unaccounted"
    assert "at offset 1" in row["problem"]


def test_a_topic_that_was_made_anew_is_told(landing: Landing) -> None:
    row = _landed(replace(landing, held=(0, 7, 0)), _rows(1))
    assert row["fault"] == "Unaccounted"
    assert "ends at 0 now" in row["problem"]


def _plan(sequence: int) -> Plan:
    return Plan(sequence, Batch("q", 0, ("a",), ("b",)), Dealt.BY_TARGET, (0,), (0,))


def test_what_an_overtaken_run_says_counts_for_nobody(box: Outbox) -> None:
    config, topic = {"bootstrap.servers": box.bootstrap}, f"{box.target}.log"
    progress.ensure(config, topic, slots=0)
    older, newer = PlanLog(config, topic), PlanLog(config, topic)
    assert older.claim().plan is None
    older.say(_plan(1), done=False)
    assert newer.claim().plan == _plan(1)
    with pytest.raises(Overtaken):
        older.say(_plan(1), done=True)
    newer.say(_plan(2), done=False)
    with pytest.raises(Overtaken):
        older.say(_plan(3), done=True)
    last = PlanLog(config, topic)
    found = last.claim()
    assert (found.plan, found.done) == (_plan(2), False)
    last.say(_plan(2), done=True)
    # What the owner has replaced it removes with its next word: its claim is left, and two entries.
    live = {message.key(): message.value() for message in records(box.bootstrap, topic)}
    assert len([value for value in live.values() if value is not None]) <= 3


def _sent(box: Outbox, spark: SparkSession, most: int | None = None, **how: Any) -> None:
    _write(box, with_coordinates(box.stream(spark, most)), **how)


def _write(box: Outbox, stream: DataFrame, **how: Any) -> None:
    options = {"mode": "offsets", "checkpoint": str(box.checkpoint), "once": True, **how}
    oncelake.write(stream, kafka=box.target, bootstrap=box.bootstrap, **options).wait()


def test_each_row_is_sent_once_and_to_the_partition_that_java_chooses(
    box: Outbox, spark: SparkSession
) -> None:
    """With the checkpoint deleted in between; of one key in one batch the newest is sent."""
    box.produce(range(300), APART)
    _sent(box, spark, most=150)
    box.assert_once(range(300))
    shutil.rmtree(box.checkpoint)
    box.produce(range(300, 400), APART)
    _sent(box, spark)
    box.assert_once(range(400))
    box.produce(range(400, 440))
    _sent(box, spark)
    box.assert_once((*range(400), *range(430, 440)))
    theirs = box.partitions_by_java(spark)
    assert {m.key: m.partition for m in box.seen() if m.key in theirs} == theirs


@pytest.mark.faults
def test_modes_are_not_mixed_under_one_name(box: Outbox, spark: SparkSession) -> None:
    box.produce(range(30), APART)
    _sent(box, spark)
    with pytest.raises(CheckpointUnusable, match="run in mode offsets"):
        _sent(box, spark, mode="transactions")
    _sent(box, spark, mode="transactions", pipeline_name="other", checkpoint=f"{box.folder}/other")
    with pytest.raises(CheckpointUnusable, match="was run with transactions"):
        _sent(box, spark, pipeline_name="other")


@pytest.mark.faults
def test_what_offsets_cannot_bear_is_refused_before_anything_is_sent(
    box: Outbox, spark: SparkSession
) -> None:
    box.produce(range(10), APART)
    with pytest.raises(TerminalError, match="put aside twice"):
        _sent(box, spark, too_large="quarantine")
    with pytest.raises(TerminalError, match="mode is 'transactions' or 'offsets', not 'offset'"):
        _sent(box, spark, mode="offset")
    named = with_coordinates(box.stream(spark)).withColumn("topic", F.lit("elsewhere"))
    with pytest.raises(TerminalError, match="a column topic"):
        _write(box, named)
    assert box.seen() == []


@pytest.mark.faults
def test_a_foreign_write_between_batches_is_none_of_ours(box: Outbox, spark: SparkSession) -> None:
    """Only from the plan of a batch to its end must nobody else write."""
    box.produce(range(30), APART)
    _sent(box, spark)
    _by_somebody_else(box, "999")
    box.produce(range(30, 60), APART)
    _sent(box, spark)
    assert sorted(_values(box)) == [*range(60), 999]
