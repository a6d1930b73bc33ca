"""kill -9 between the table and the topic of one batch: both get every row once."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oncelake.local.kafka import LocalKafka
from tests.e2e.test_sinks import Pair

CRASH_POINTS = (
    "after:publish",
    "after:plan",
    "after:send",
    "before:send",
)


@pytest.mark.faults
def test_a_life_of_kills_between_the_table_and_the_topic(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """Each run completes what the kill before it left. After every other the checkpoint is lost; in
    the end Spark would batch what is due otherwise, too."""
    pair = Pair.paired(kafka, tmp_path)
    for number, point in enumerate(CRASH_POINTS):
        pair.produce(500, seed=number)
        pair.run_halted(point, occurrence=1)
        if number % 2:
            shutil.rmtree(pair.checkpoint)
    pair.run_here(spark, max_offsets=100)
    pair.assert_exactly_once(spark)
    pair.assert_sent_once()
