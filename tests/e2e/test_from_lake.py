"""An Iceberg table as a stream into Kafka: what a pipeline appends is sent once, and in time."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import oncelake
from oncelake.local.kafka import LocalKafka, create_topic
from tests.outbox import read_committed
from tests.site import Site

pytestmark = pytest.mark.faults
MERGES = "'commit.manifest.min-count-to-merge' = '2'"


@dataclass(frozen=True)
class Lake(Site):
    """A pipeline whose table is sent on."""

    @property
    def target(self) -> str:
        return f"{self.topic}.lake"

    @property
    def sends(self) -> Path:
        return self.folder / "sends"

    def send(self, spark: SparkSession) -> int:
        """To the end; how many batches Spark has logged by then."""
        stream = spark.readStream.format("iceberg").load(self.table)
        oncelake.write(stream, kafka=self.target, key="id", bootstrap=self.bootstrap,
                       checkpoint=str(self.sends), once=True).wait()  # fmt: skip
        return len(self.logged())

    def logged(self) -> list[int]:
        return sorted(int(p.name) for p in (self.sends / "commits").iterdir() if p.name.isdigit())

    def forget_last_commit(self) -> None:
        """As a kill between a batch and Spark's word of it leaves the checkpoint."""
        last = self.logged()[-1]
        (self.sends / "commits" / str(last)).unlink()
        (self.sends / "commits" / f".{last}.crc").unlink(missing_ok=True)

    def assert_sent_once(self) -> list[str]:
        """Every good record, under its key; gives the messages, in an order that repeats."""
        seen = read_committed(self.bootstrap, self.target)
        found = [json.loads(message.value) for message in seen]
        wanted = Counter((each.id, each.title) for each in self.expected().good)
        assert Counter((each["id"], each["title"]) for each in found) == wanted
        assert all(m.key == each["id"] for m, each in zip(seen, found, strict=True))
        return sorted(message.value for message in seen)


@pytest.fixture
def lake(kafka: LocalKafka, spark: SparkSession, tmp_path: Path) -> Lake:
    lake = Lake.make(kafka, tmp_path)
    create_topic(kafka.bootstrap, lake.target, 2)
    lake.produce(300)
    lake.run_here(spark)
    lake.send(spark)
    lake.assert_sent_once()
    return lake


def test_a_restart_sends_only_what_was_appended_since(lake: Lake, spark: SparkSession) -> None:
    """Each run of the pipeline adds a claim to the table, which is an append without rows."""
    # Each append from now on writes a manifest that names the files of the former ones, too.
    spark.sql(f"ALTER TABLE {lake.table} SET TBLPROPERTIES ({MERGES})")
    before = lake.assert_sent_once()
    batches = len(lake.logged())
    assert lake.send(spark) == batches, "a batch of nothing new"
    lake.run_here(spark)
    lake.send(spark)
    assert lake.assert_sent_once() == before
    lake.produce(300, seed=2)
    lake.run_here(spark)
    assert lake.send(spark) > batches
    assert len(lake.assert_sent_once()) > len(before)


def test_a_batch_that_spark_offers_again_is_known_by_its_snapshots(
    lake: Lake, spark: SparkSession
) -> None:
    """The first batch begins nowhere, the next at a snapshot: either is sent once."""
    lake.forget_last_commit()
    lake.send(spark)
    lake.assert_sent_once()
    lake.produce(300, seed=2)
    lake.run_here(spark)
    lake.send(spark)
    lake.forget_last_commit()
    lake.produce(300, seed=3)
    lake.run_here(spark)
    lake.send(spark)
    lake.assert_sent_once()
