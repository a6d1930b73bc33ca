"""What can happen to a topic: partitions added, records removed, made anew, and holes in it."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)
from pyspark.sql import SparkSession

from oncelake.demo.run import PipelineRun
from oncelake.errors import Gap, KafkaUnreachable, SourceChanged
from oncelake.local.kafka import LocalKafka, create_topic
from oncelake.samples import articles
from tests.site import PARTITIONS, Site, wait_for

pytestmark = pytest.mark.faults
ANSWER_SECONDS = 30.0
CLEANED_WITHIN_SECONDS = 120.0


def add_partitions(site: Site, total: int) -> None:
    admin = AdminClient({"bootstrap.servers": site.bootstrap})
    for future in admin.create_partitions([NewPartitions(site.topic, total)]).values():
        future.result(ANSWER_SECONDS)


def remove_records(site: Site, partition: int, before: int) -> None:
    admin = AdminClient({"bootstrap.servers": site.bootstrap})
    for future in admin.delete_records([TopicPartition(site.topic, partition, before)]).values():
        future.result(ANSWER_SECONDS)


def make_anew(site: Site) -> None:
    admin = AdminClient({"bootstrap.servers": site.bootstrap})
    admin.delete_topics([site.topic])[site.topic].result(ANSWER_SECONDS)
    create_topic(site.bootstrap, site.topic, partitions=PARTITIONS)


def configure(site: Site, settings: dict[str, str]) -> None:
    admin = AdminClient({"bootstrap.servers": site.bootstrap})
    how = AlterConfigOpType.SET
    entries = [
        ConfigEntry(key, value, incremental_operation=how) for key, value in settings.items()
    ]
    resource = ConfigResource(ResourceType.TOPIC, site.topic, incremental_configs=entries)
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(ANSWER_SECONDS)


def next_offsets(site: Site) -> dict[int, int]:
    """Where the table stands, by the oracle."""
    held = site.contents()
    ends: dict[int, int] = {}
    for partition, offset in (
        *((row.partition, row.offset) for row in held.good),
        *((row.partition, row.offset) for row in held.bad),
    ):
        ends[partition] = max(ends.get(partition, 0), offset + 1)
    return ends


def read_and_stop(running: PipelineRun, rows: int) -> None:
    """Wait until so many rows were read in all, then Ctrl+C."""
    while wait_for(running, "batch")["totals"]["read"] < rows:
        pass
    running.interrupt()
    assert running.ended() == 0


@pytest.mark.parametrize("checkpoint", ["kept", "lost"])
def test_partitions_added_while_it_was_down_are_read_from_their_beginning(
    checkpoint: str, kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    site = Site.make(kafka, tmp_path)
    site.produce(600)
    site.run_here(spark)
    add_partitions(site, PARTITIONS + 2)
    site.produce(600, seed=2)
    if checkpoint == "lost":
        shutil.rmtree(site.checkpoint)
    site.run_here(spark)
    assert set(next_offsets(site)) == set(range(PARTITIONS + 2))
    site.assert_exactly_once(spark)


def test_partitions_added_while_it_runs_are_read_from_their_beginning(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    site = Site.make(kafka, tmp_path)
    site.produce(600)
    with site.run() as running:
        wait_for(running, "batch")
        add_partitions(site, PARTITIONS + 1)
        site.produce(600, seed=2)
        read_and_stop(running, 1200)
    assert PARTITIONS in next_offsets(site)
    site.assert_exactly_once(spark)


@pytest.mark.parametrize("checkpoint", ["kept", "lost"])
def test_records_removed_before_they_were_read_are_a_gap_and_named(
    checkpoint: str, kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """As retention does. What is left is not written: nobody would see that there was more."""
    site = Site.make(kafka, tmp_path)
    site.produce(600)
    site.run_here(spark)
    stands = next_offsets(site)[1]
    before = site.contents()
    site.produce(600, seed=2)
    remove_records(site, 1, stands + 7)
    if checkpoint == "lost":
        shutil.rmtree(site.checkpoint)
    where = rf"{site.topic}\[1\]: offsets \[{stands}, {stands + 7}\)"
    with pytest.raises(Gap, match=where):
        site.run_here(spark)
    assert site.contents() == before


def test_records_removed_after_they_were_read_are_no_gap(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    site = Site.make(kafka, tmp_path)
    site.produce(600)
    site.run_here(spark)
    before = site.contents()
    for partition, offset in next_offsets(site).items():
        remove_records(site, partition, offset)
    site.produce(600, seed=2)
    site.run_here(spark)
    assert site.contents().rows == before.rows + 600
    assert site.audit(spark).verdict == "clean"


def test_a_broker_that_dies_and_comes_back_is_waited_for(
    spark: SparkSession, tmp_path: Path
) -> None:
    with LocalKafka(tmp_path / "broker") as broker:
        site = Site.make(broker, tmp_path)
        site.produce(600)
        with site.run() as running:
            wait_for(running, "batch")
            broker.kill()
            broker.start()
            site.produce(600, seed=2)
            read_and_stop(running, 1200)
        site.assert_exactly_once(spark)


def test_a_partition_without_a_leader_is_told_at_the_start_and_waited_for_in_a_run(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Of two brokers one is stopped, and with it the partitions that it leads."""
    with (
        LocalKafka(tmp_path / "one") as one,
        LocalKafka(tmp_path / "two", joins=one) as two,
    ):
        site = Site.make(one, tmp_path)
        site.produce(600)
        two.stop()
        with pytest.raises(KafkaUnreachable, match=site.topic):
            site.run_here(spark)
        two.start()
        with site.run() as running:
            wait_for(running, "batch")
            two.stop()
            two.start()
            site.produce(600, seed=2)
            read_and_stop(running, 1200)
        site.assert_exactly_once(spark)


def test_a_topic_made_anew_is_refused(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """It has the name and the offsets of the former one, and other records."""
    site = Site.make(kafka, tmp_path)
    site.produce(600)
    site.run_here(spark)
    before = site.contents()
    make_anew(site)
    site.produce(900, seed=2)
    with pytest.raises(SourceChanged, match=site.topic):
        site.run_here(spark)
    assert site.contents() == before


@pytest.mark.parametrize("made", [60, 2400], ids=["shorter", "longer"])
def test_a_topic_made_anew_under_a_run_stops_it_before_anything_is_written(
    made: int, kafka: LocalKafka, tmp_path: Path
) -> None:
    """Where it is longer by then, Spark goes on in its midst, and notices nothing."""
    site = Site.make(kafka, tmp_path)
    site.produce(600)
    with site.run() as running:
        while wait_for(running, "batch")["totals"]["read"] < 600:
            pass
        before = site.contents()
        make_anew(site)
        site.produce(made, seed=2)
        assert running.ended() == SourceChanged.exit_code
    assert site.contents() == before


def test_what_transactions_took_back_is_not_written_and_its_holes_are_no_gaps(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """One that is still open is waited for: neither its records nor those behind it are due."""
    site = Site.make(kafka, tmp_path)
    producer = Producer({"bootstrap.servers": site.bootstrap, "transactional.id": site.topic})
    producer.init_transactions(ANSWER_SECONDS)

    def send(seed: int) -> None:
        producer.begin_transaction()
        for event in articles.events(articles.Load(count=200, seed=seed)):
            producer.produce(site.topic, key=event.key, value=event.value)
        producer.flush(ANSWER_SECONDS)

    send(1)
    producer.commit_transaction(ANSWER_SECONDS)
    send(2)
    producer.abort_transaction(ANSWER_SECONDS)
    send(3)
    producer.commit_transaction(ANSWER_SECONDS)
    send(4)
    site.run_here(spark)
    assert site.contents().rows == 400
    producer.commit_transaction(ANSWER_SECONDS)
    site.run_here(spark, max_offsets=100)
    assert site.contents().rows == 600
    site.assert_exactly_once(spark)


def test_a_compacted_topic_has_holes_that_are_no_gaps(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """Of a key the cleaner leaves the last record, but for the segment that is written to."""
    site = Site.make(kafka, tmp_path)
    configure(
        site, {"cleanup.policy": "compact", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.001"}
    )
    sent = 0
    deadline = time.monotonic() + CLEANED_WITHIN_SECONDS
    while site.expected().rows == sent:
        assert time.monotonic() < deadline, "Kafka has cleaned nothing"
        site.produce(200, seed=1)
        sent += 200
    site.run_here(spark, max_offsets=500)
    report = site.audit(spark)
    assert report.verdict == "clean", report
    assert site.contents().rows == report.totals.read < sent
