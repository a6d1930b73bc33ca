"""The four failure tests by the names they are asked for under, on a table of latest versions.

Each ends with the audit and with an oracle that shares nothing with oncelake: a plain consumer,
fastavro and PyIceberg.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from oncelake.local.kafka import LocalKafka
from oncelake.samples import articles
from tests.site import Site

pytestmark = pytest.mark.faults


@pytest.fixture
def site(kafka: LocalKafka, tmp_path: Path) -> Site:
    return Site.make(kafka, tmp_path, upsert=True)


def test_mid_batch_kill(site: Site, spark: SparkSession) -> None:
    """The files of the second batch are written, nothing is committed, and the process dies."""
    site.produce(3000)
    site.run_halted("after:stage", 2)
    site.run_here(spark)
    site.assert_exactly_once(spark)


def test_same_message_twice(site: Site, spark: SparkSession) -> None:
    """The very same bytes again: in the same batch, and in a later one."""
    producer = Producer({"bootstrap.servers": site.bootstrap})
    sent = list(articles.events(articles.Load(count=50)))
    for times in (2, 1):
        for event in sent * times:
            producer.produce(site.topic, event.value, event.key)
        producer.flush()
        site.run_here(spark)
    site.assert_exactly_once(spark)
    assert site.contents().good.total() == 50


def test_checkpoint_and_data_are_atomic(site: Site, spark: SparkSession) -> None:
    """The data is committed and Spark's checkpoint does not know; then the checkpoint is older."""
    site.produce(2000)
    site.run_halted("after:publish", 1)
    old = site.folder / "old"
    shutil.copytree(site.checkpoint, old)
    site.run_here(spark)
    site.assert_exactly_once(spark)
    shutil.rmtree(site.checkpoint)
    old.rename(site.checkpoint)
    site.run_here(spark)
    site.assert_exactly_once(spark)


def test_counts_are_stable_over_ten_restarts(site: Site, spark: SparkSession) -> None:
    site.produce(1000)
    site.run_here(spark)
    before = site.contents()
    for restart in range(10):
        if restart % 3 == 2:
            shutil.rmtree(site.checkpoint)
        site.run_here(spark)
    assert site.contents() == before
    site.assert_exactly_once(spark)
