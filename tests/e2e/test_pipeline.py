"""The pipeline on a real broker and catalog: what lands, and what a lost checkpoint changes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

from oncelake import lake, source
from oncelake.checkpoint import Checkpoint
from oncelake.events import Event
from oncelake.local.kafka import LocalKafka
from oncelake.spec import LimitsSpec, read_spec
from tests.site import PARTITIONS, Site


@pytest.fixture
def site(kafka: LocalKafka, tmp_path: Path) -> Site:
    return Site.make(kafka, tmp_path)


def _outcomes(events: list[Event]) -> list[str]:
    return [e.facts["outcome"] for e in events if e.name == "batch"]


def _restore(site: Site, old: Path) -> None:
    shutil.rmtree(site.checkpoint)
    shutil.copytree(old, site.checkpoint)


def test_every_record_lands_once_and_bad_ones_in_quarantine(
    site: Site, spark: SparkSession
) -> None:
    site.produce(3000)
    events = site.run_here(spark)
    assert set(_outcomes(events)) == {"written"}
    site.assert_exactly_once(spark)
    # Of each day a file a task, and fewer tasks than Kafka has partitions.
    files = [event.facts["files"] for event in events if event.name == "staged"]
    assert max(files) <= 2 * spark.sparkContext.defaultParallelism < 2 * PARTITIONS


def test_a_restart_goes_on_where_the_table_ends(site: Site, spark: SparkSession) -> None:
    """With its own checkpoint, with none, with an old one, and with one that has wider batches."""
    site.produce(1000)
    site.run_here(spark)
    assert _outcomes(site.run_here(spark)) == [], "nothing new"
    old = shutil.copytree(site.checkpoint, site.folder / "old")
    site.produce(2000, seed=2)
    shutil.rmtree(site.checkpoint)
    assert set(_outcomes(site.run_here(spark))) == {"written"}
    site.assert_exactly_once(spark)
    _restore(site, old)
    assert set(_outcomes(site.run_here(spark))) == {"skipped"}
    site.assert_exactly_once(spark)
    _restore(site, old)
    site.produce(700, seed=3)
    assert "trimmed" in _outcomes(site.run_here(spark, max_offsets=100_000))
    site.assert_exactly_once(spark)


def test_a_quarantined_record_is_kept_whole(site: Site, spark: SparkSession) -> None:
    """Among them a string of 2 GiB by its own word, and text that is not UTF-8."""
    producer = Producer({"bootstrap.servers": site.bootstrap})
    producer.produce(site.topic, b"\xff\xff", b"key", headers=[("trace", b"\x00\x01")])
    producer.produce(site.topic, None, b"key")
    producer.produce(site.topic, b"\xfe\xff\xff\xff\x0f" + b"x" * 50, b"large")
    text = b"\x04\xc3\x28"  # two bytes, not UTF-8
    producer.produce(site.topic, text * 5 + b"\x00", b"text")
    producer.flush()
    site.run_here(spark)
    rows = spark.table(site.quarantine).orderBy("reason", "key").collect()
    unfit = "not an Avro Article: its bytes do not fit the schema"
    assert [(bytes(row["key"]), row["reason"]) for row in rows] == [
        (b"text", "id is not valid UTF-8"),
        (b"key", unfit),
        (b"large", unfit),
        (b"key", "value is null"),
    ]
    assert bytes(rows[1]["value"]) == b"\xff\xff"
    assert [(h["key"], bytes(h["value"])) for h in rows[1]["headers"]] == [("trace", b"\x00\x01")]
    assert rows[3]["value"] is None


def test_a_batch_shows_the_offsets_it_will_read(site: Site, spark: SparkSession) -> None:
    """Also where Spark splits a partition's offsets among several tasks."""
    site.produce(3000)
    spec = read_spec(site.spec, {}).spec
    found = {}

    def look(batch: DataFrame, batch_id: int) -> None:
        log = Checkpoint(lake.Folder(spark, str(site.checkpoint)))
        found[batch_id] = (lake.planned(batch), log.ranges(batch_id), batch.rdd.getNumPartitions())

    starts = source.describe_topic(spec.source).starts("earliest")
    stream = source.open_stream(spark, spec.source, LimitsSpec(1500, min_partitions=7), starts)
    query = stream.writeStream.option("checkpointLocation", str(site.checkpoint))
    query.foreachBatch(look).trigger(availableNow=True).start().awaitTermination()
    assert len(found) >= 2
    for planned, logged, _ in found.values():
        assert planned == logged
    assert found[0][2] > len(found[0][1])
    assert lake.planned(spark.range(5)) is None


def test_stamped_offsets_are_read_again_where_the_batch_has_others(
    site: Site, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.produce(2000)
    monkeypatch.setattr(lake, "planned", lambda batch: None)
    asked = []

    def read_ranges(*given: Any) -> DataFrame:
        asked.append(given)
        return read(*given)

    read = source.read_ranges
    monkeypatch.setattr(source, "read_ranges", read_ranges)
    site.run_here(spark)
    assert asked
    site.assert_exactly_once(spark)
