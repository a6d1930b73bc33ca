"""Upsert on a real broker and catalog: of each key the latest version, whatever comes when."""

from __future__ import annotations

import io
import itertools
import shutil
from pathlib import Path

import fastavro
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from oncelake.events import Event
from oncelake.local.kafka import LocalKafka
from oncelake.samples import articles
from tests.site import Site

NOON = articles.BASE_MICROS
SCHEMA = fastavro.schema.load_schema(str(articles.SCHEMA_FILE))


@pytest.fixture
def site(kafka: LocalKafka, tmp_path: Path) -> Site:
    return Site.make(kafka, tmp_path, upsert=True)


def _send(site: Site, *versions: tuple[str, int], partition: int = 0) -> None:
    """Articles by id and the hour at which they were published, in this order."""
    producer = Producer({"bootstrap.servers": site.bootstrap})
    for number, (name, hour) in enumerate(versions):
        article = {
            "id": name, "title": f"{name} at {hour}", "body": f"version {number}", "source": "s",
            "url": "u", "published_at": NOON + hour * articles.HOUR_MICROS,
        }  # fmt: skip
        value = io.BytesIO()
        fastavro.schemaless_writer(value, SCHEMA, article)
        producer.produce(site.topic, value.getvalue(), partition=partition)
    producer.flush()


def _last_batch(told: list[Event]) -> Event:
    return [event for event in told if event.name == "batch"][-1]


def test_what_is_left_of_a_burst_falls_batch_by_batch(site: Site, spark: SparkSession) -> None:
    """However much waits, a batch takes no more than its limit, and the lag only falls."""
    site.produce(1200)
    told = site.run_here(spark, max_offsets=300)
    left = [1200 - event.facts["totals"]["read"] for event in told if event.name == "batch"]
    steps = [before - after for before, after in itertools.pairwise([1200, *left])]
    assert all(0 < step <= 300 for step in steps), left
    assert left[-1] == 0
    site.assert_exactly_once(spark)


def test_an_older_version_that_comes_later_changes_nothing(site: Site, spark: SparkSession) -> None:
    _send(site, ("a", 5), ("b", 5))
    site.run_here(spark)
    _send(site, ("a", 4), ("b", 6), ("c", 1))
    told = site.run_here(spark)
    site.assert_exactly_once(spark)
    counts = _last_batch(told).facts["counts"]
    assert (counts["written"], counts["superseded"]) == (2, 1)
    assert (counts["inserted"], counts["updated"]) == (1, 1)


@pytest.mark.faults
def test_equal_versions_settle_by_partition_and_offset(site: Site, spark: SparkSession) -> None:
    _send(site, ("a", 5), ("a", 5), partition=2)
    _send(site, ("a", 5), partition=1)
    site.run_here(spark)
    _send(site, ("a", 5), partition=0)
    site.run_here(spark)
    site.assert_exactly_once(spark)
    _send(site, ("a", 5), partition=2)
    site.run_here(spark)
    site.assert_exactly_once(spark)


@pytest.mark.faults
def test_a_file_loses_rows_again_and_again(site: Site, spark: SparkSession) -> None:
    """Each vector takes in the one before it."""
    names = [f"n{number}" for number in range(50)]
    _send(site, *((name, 0) for name in names))
    site.run_here(spark)
    for hour, some in enumerate((names[:20], names[10:30], names[:50:7]), start=1):
        _send(site, *((name, hour) for name in some))
        site.run_here(spark)
    site.assert_exactly_once(spark)


@pytest.mark.faults
def test_the_latest_version_survives_restarts_and_replays(site: Site, spark: SparkSession) -> None:
    """With its checkpoint deleted in between."""
    site.produce(2000)
    site.run_here(spark)
    site.assert_exactly_once(spark)
    before = site.contents()
    shutil.rmtree(site.checkpoint)
    site.run_here(spark)
    assert site.contents() == before
    site.produce(1500, seed=2)
    shutil.rmtree(site.checkpoint)
    site.run_here(spark)
    site.assert_exactly_once(spark)
