"""Speculative execution: two copies of a task write at once, and the table takes one's files."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from oncelake.local.kafka import LocalKafka
from tests.faults.cluster import cluster
from tests.faults.test_to_kafka import await_file
from tests.outbox import Outbox
from tests.site import Site, wait_for

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
    spark.executor.extraJavaOptions: -XX:+UseSerialGC -XX:TieredStopAtLevel=1
    spark.eventLog.enabled: true
    spark.eventLog.compress: false
    spark.eventLog.dir: {events}
"""
# Its workers import the tests too; and Spark is not to end a task's process that does not answer.
OWN_PYTHON = f"""\
    spark.executorEnv.PYTHONPATH: {Path(__file__).parents[2]}
    spark.python.task.killTimeout: 10min
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


@pytest.mark.minutes
def test_a_zombie_executor_that_goes_on_after_its_replacement_has_sent_is_fenced(
    kafka: LocalKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task is stopped just before it commits, and Spark has a copy send its rows; then it is let
    go on. Kafka refuses its commit, and it says so by yielding."""
    events = tmp_path / "events"
    events.mkdir()
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    plain = Outbox.make(kafka, tmp_path)
    plain.produce(range(300))
    with cluster(tmp_path) as master:
        settings = SETTINGS.format(events=events.as_uri()) + OWN_PYTHON
        box = replace(plain, master=master, settings=settings)
        with box.run("--pause", "before:commit") as run:
            wait_for(run, "sent")
            box.assert_once(range(300))
            stopped = psutil.Process(int((tmp_path / "before:commit").read_text()))
            assert stopped.status() == psutil.STATUS_STOPPED
            stopped.resume()
            await_file(run, tmp_path / "before:yield")
    assert speculated(events) > 0, "no task was run twice: nothing is shown"
    box.assert_once(range(300))


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
