"""Speculative execution: two copies of a task write at once, and the table takes one's files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oncelake.local.kafka import LocalKafka
from tests.faults.cluster import cluster
from tests.site import Site

pytestmark = pytest.mark.faults
# An article of the last batch, by when all is warm, holds the task that reads it up; the others are
# long done by then.
SLOW = """\
transform: >
  SELECT * FROM rows WHERE if(kafka.partition = 0 AND kafka.offset = 250,
  length(coalesce(reflect('java.lang.Thread', 'sleep', bigint(5000)), '')) >= 0, true)
"""
SETTINGS = """\
    spark.speculation: true
    spark.locality.wait: 0s
    spark.speculation.interval: 100ms
    spark.speculation.multiplier: 1.2
    spark.speculation.quantile: 0.3
    spark.speculation.minTaskRuntime: 100ms
    spark.driver.host: 127.0.0.1
    spark.executor.memory: 900m
    spark.eventLog.enabled: true
    spark.eventLog.compress: false
    spark.eventLog.dir: {events}
"""


def test_speculative_copies_of_a_task_double_nothing(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    site = Site.make(kafka, tmp_path, max_offsets=300, more=SLOW)
    events = tmp_path / "events"
    events.mkdir()
    with cluster(tmp_path) as master:
        text = site.spec.read_text().replace("master: local[2]", f"master: {master}")
        shuffles = "    spark.sql.shuffle.partitions: 2\n"
        site.spec.write_text(
            text.replace(shuffles, shuffles + SETTINGS.format(events=events.as_uri()))
        )
        site.produce(900)
        site.run_to_the_end()
    assert speculated(events) > 0, "no task was run twice: nothing is shown"
    site.assert_exactly_once(spark)


def speculated(folder: Path) -> int:
    """How many copies of tasks were started, by Spark's own log of events."""
    lines = [
        line
        for file in folder.rglob("*")
        if file.is_file()
        for line in file.read_text(errors="replace").splitlines()
        if '"SparkListenerTaskStart"' in line
    ]
    return sum(json.loads(line)["Task Info"]["Speculative"] for line in lines)
