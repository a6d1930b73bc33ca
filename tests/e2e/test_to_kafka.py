"""Spark into Kafka on a real broker: each row once, in order, whatever is lost in between."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import oncelake
from oncelake.errors import TerminalError
from oncelake.local.kafka import LocalKafka
from oncelake.query import RunningQuery
from tests.outbox import Outbox


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


def _plain(stream: DataFrame) -> DataFrame:
    return stream.select("key", "value")


def _with_coordinates(stream: DataFrame) -> DataFrame:
    return stream.select(
        "key",
        "value",
        F.col("partition").alias("kafka_partition"),
        F.col("offset").alias("kafka_offset"),
    )


def test_every_row_is_sent_once_and_in_order(box: Outbox, spark: SparkSession) -> None:
    box.produce(range(600))
    _sent(box, _plain(box.stream(spark, most=200)))
    box.assert_once(range(600))
    box.produce(range(600, 700))
    _sent(box, _plain(box.stream(spark)))
    box.assert_once(range(700))


@pytest.mark.faults
def test_a_deleted_checkpoint_sends_nothing_twice(box: Outbox, spark: SparkSession) -> None:
    box.produce(range(300))
    _sent(box, _with_coordinates(box.stream(spark, most=150)))
    shutil.rmtree(box.checkpoint)
    box.produce(range(300, 400))
    _sent(box, _with_coordinates(box.stream(spark)))
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
