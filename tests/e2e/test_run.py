"""`oncelake run` as a person meets it: Ctrl+C once and twice, and errors that say what to do."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from oncelake.cli import main
from oncelake.errors import KafkaUnreachable, SparkDied, TopicMissing
from oncelake.local.kafka import LocalKafka
from tests.site import Site, wait_for


@pytest.fixture
def site(kafka: LocalKafka, tmp_path: Path) -> Site:
    return Site.make(kafka, tmp_path, max_offsets=300)


def _until_said(site: Site, words: str) -> None:
    deadline, pause = time.monotonic() + 30, threading.Event()
    while words not in (site.folder / "run.log").read_text():
        assert time.monotonic() < deadline, f"never said {words!r}"
        pause.wait(0.05)


def test_ctrl_c_ends_the_batch_and_a_restart_replays_nothing(
    site: Site, spark: SparkSession
) -> None:
    site.produce(1500)
    with site.run() as run:
        wait_for(run, "planned", times=3)
        run.interrupt()
        told = [event["event"] for event in run.events()]
        assert run.ended() == 0
    assert told[-2:] == ["batch", "stopped"], "the running batch must end, and no other begin"
    again = site.run_here(spark)
    assert {e.facts["outcome"] for e in again if e.name == "batch"} == {"written"}
    site.assert_exactly_once(spark)


def test_a_second_ctrl_c_stops_at_once(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    site = Site.make(kafka, tmp_path, max_offsets=20_000)
    site.produce(20_000)
    with site.run() as run:
        # The first batch of a JVM takes seconds: both signals come while it is being written.
        wait_for(run, "planned")
        run.interrupt()
        _until_said(site, "stopping after this batch")
        run.interrupt()
        assert run.ended() == 130
    site.run_here(spark)
    site.assert_exactly_once(spark)


@pytest.mark.parametrize("when", ["planned", pytest.param("batch", marks=pytest.mark.faults)])
def test_a_jvm_that_dies_is_told_in_words_and_loses_nothing(
    site: Site, spark: SparkSession, when: str
) -> None:
    site.produce(900)
    with site.run() as run:
        wait_for(run, when)
        family = psutil.Process(run.pid).children(recursive=True)
        next(process for process in family if process.name() == "java").kill()
        told = list(run.events())
        assert run.ended() == SparkDied.exit_code
    log = (site.folder / "run.log").read_text()
    assert told[-1]["kind"] == "SparkDied"
    assert "Spark's JVM died" in log
    assert "Traceback" not in log
    site.run_here(spark)
    site.assert_exactly_once(spark)


def test_a_missing_topic_is_named(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KAFKA_TOPIC", "no.such.topic")
    assert main(["status", str(site.spec)]) == TopicMissing.exit_code
    assert "topic no.such.topic does not exist" in capsys.readouterr().err


def test_a_kafka_that_does_not_answer_is_named(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setattr("oncelake.source.ANSWER_SECONDS", 3.0)
    assert main(["status", str(site.spec)]) == KafkaUnreachable.exit_code
    assert "oncelake local up" in capsys.readouterr().err
