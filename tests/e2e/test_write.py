"""`oncelake.write` around a stream of one's own: the README's example, and what it refuses."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import oncelake
from oncelake import source
from oncelake.errors import CheckpointUnusable, Gap, TerminalError
from oncelake.local.kafka import LocalKafka
from oncelake.model import Span, TopicPartition
from tests.site import Site

README = Path(__file__).parents[2] / "README.md"


@pytest.fixture
def site(kafka: LocalKafka, tmp_path: Path) -> Site:
    return Site.make(kafka, tmp_path)


def _example(site: Site, table: str) -> str:
    """The README's own lines, pointed at this test's broker, topic and checkpoint."""
    (block,) = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    lines = block.replace("localhost:9092", site.bootstrap).replace("articles.raw.v1", site.topic)
    return str(lines.replace("/chk/sizes", str(site.checkpoint)).replace("demo.news.sizes", table))


def test_the_readmes_example_writes_each_record_once_even_when_it_is_replayed(
    site: Site, spark: SparkSession
) -> None:
    table = f"demo.news.sizes_{site.catalog}"
    site.produce(1000)
    exec(_example(site, table), {"spark": spark})
    shutil.rmtree(site.checkpoint)
    site.produce(500, seed=2)
    exec(_example(site, table), {"spark": spark})
    rows = spark.table(table)
    assert rows.columns == ["bytes", "kafka_topic", "kafka_partition", "kafka_offset"]
    assert rows.count() == 1500
    assert rows.select("kafka_partition", "kafka_offset").distinct().count() == 1500


def _stream(site: Site, spark: SparkSession, starting: str) -> DataFrame:
    return (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", site.bootstrap)
        .option("subscribe", site.topic)
        .option("startingOffsets", starting)
        .load()
    )


def test_a_stream_that_starts_past_the_table_is_a_gap(site: Site, spark: SparkSession) -> None:
    site.produce(300)
    later = f'{{"{site.topic}":{{"0":5,"1":0,"2":0}}}}'
    stream = _stream(site, spark, later).selectExpr("topic", "partition", "offset", "value")
    kafka = oncelake.Kafka(site.bootstrap, [site.topic])
    query = oncelake.write(
        stream,
        f"demo.news.late_{site.catalog}",
        kafka=kafka,
        checkpoint=str(site.checkpoint),
        once=True,
    )
    with pytest.raises(Gap, match=r"\[0\]: offsets \[0, 5\) are missing"):
        query.wait()


def test_a_batch_that_differs_from_the_offset_log_is_refused(
    site: Site, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when two runs share a checkpoint, and the log's entry is the other one's."""
    site.produce(300)
    others = {TopicPartition(site.topic, 0): Span(0, 5)}
    monkeypatch.setattr(source.OffsetLog, "ranges", lambda log, batch_id: others)
    stream = _stream(site, spark, "earliest").selectExpr("topic", "partition", "offset", "value")
    table = f"demo.news.shared_{site.catalog}"
    kafka = oncelake.Kafka(site.bootstrap, [site.topic])
    query = oncelake.write(stream, table, kafka=kafka, checkpoint=str(site.checkpoint), once=True)
    with pytest.raises(CheckpointUnusable, match="another run writes to the same checkpoint"):
        query.wait()
    assert spark.table(table).count() == 0


def test_a_stream_without_coordinates_is_refused(site: Site, spark: SparkSession) -> None:
    stream = _stream(site, spark, "earliest").select("value")
    kafka = oncelake.Kafka(site.bootstrap, [site.topic])
    with pytest.raises(TerminalError, match="not Kafka's topic, partition and offset"):
        oncelake.write(stream, "demo.news.none", kafka=kafka, checkpoint=str(site.checkpoint))
