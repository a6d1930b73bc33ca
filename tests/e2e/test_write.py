"""`oncelake.write` around a stream of one's own: the README's example, and what it refuses."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

import oncelake
from oncelake.checkpoint import Checkpoint
from oncelake.errors import (
    CatalogUnreachable,
    CheckpointUnusable,
    Gap,
    TableMissing,
    TableUnfit,
    TerminalError,
    Unaccounted,
)
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
    site: Site, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    table = f"demo.news.sizes_{site.catalog}"
    site.produce(1000)
    exec(_example(site, table), {"spark": spark})
    shutil.rmtree(site.checkpoint)
    site.produce(500, seed=2)
    exec(_example(site, table), {"spark": spark})
    assert capsys.readouterr().out.splitlines()[-1] == "clean 1500"
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


@pytest.mark.parametrize(
    ("address", "error", "why"),
    [
        ("jdbc:sqlite:/none/lake.db", CatalogUnreachable, "did not answer .*/none"),
        ("jdbc:none://localhost/lake", TableUnfit, "has no driver"),
    ],
)
def test_an_audit_that_cannot_ask_the_catalog_says_why_without_the_password(
    address: str, error: type[Exception], why: str, site: Site, spark: SparkSession
) -> None:
    name = f"away_{address.split(':')[1]}_{site.catalog}"
    settings = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "jdbc", ".warehouse": "/none",
                ".uri": f"{address}?user=u&password=s3cr3t"}  # fmt: skip
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{name}{key}", value)
    with pytest.raises(error, match=why) as failure:
        oncelake.audit(spark, f"{name}.news.a", kafka=oncelake.Kafka(site.bootstrap, [site.topic]))
    assert "s3cr3t" not in str(failure.value)


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
    monkeypatch.setattr(Checkpoint, "ranges", lambda logs, batch: others)
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


def _send(site: Site, *versions: tuple[str | None, int]) -> None:
    producer = Producer({"bootstrap.servers": site.bootstrap})
    for key, number in versions:
        producer.produce(site.topic, str(number), key)
    producer.flush()


VERSIONS = ("topic", "partition", "offset", "CAST(key AS string) rank", "int(string(value)) n")


def _write_versions(site: Site, spark: SparkSession, *columns: str) -> str:
    table = f"demo.news.versions_{site.catalog}"
    oncelake.write(
        _stream(site, spark, "earliest").selectExpr(*(columns or VERSIONS)),
        table,
        kafka=oncelake.Kafka(site.bootstrap, [site.topic]),
        checkpoint=str(site.checkpoint),
        key="rank",
        order="n",
        once=True,
    ).wait()
    return table


def test_of_rows_of_one_key_the_greatest_by_order_stays(site: Site, spark: SparkSession) -> None:
    """A key by the name of a word of ours; the checkpoint goes, an older version comes after."""
    _send(site, ("a", 3), ("a", 5), ("b", 1), (None, 7))
    _write_versions(site, spark)
    shutil.rmtree(site.checkpoint)
    _send(site, ("a", 4), ("b", 2), ("c", 1))
    table = _write_versions(site, spark)
    held = {(row["rank"], row["n"]) for row in spark.table(table).collect()}
    assert held == {("a", 5), ("b", 2), ("c", 1)}
    (keyless,) = spark.table(f"{table}_quarantine").collect()
    assert (keyless["n"], keyless["reason"]) == (7, "key rank is null")
    kafka = oncelake.Kafka(site.bootstrap, [site.topic])
    report = oncelake.audit(spark, table, kafka=kafka, key="rank")
    assert report.verdict == "clean", report
    assert report.sides == {"quarantined": 1}
    spark.sql(f"INSERT INTO {table} SELECT * FROM {table} WHERE rank = 'a'")
    assert oncelake.audit(spark, table, kafka=kafka, key="rank").verdict == "violated"


def test_a_quarantine_that_is_gone_with_its_rows_is_missed(site: Site, spark: SparkSession) -> None:
    _send(site, ("a", 3), (None, 7))
    table = _write_versions(site, spark)
    spark.sql(f"DROP TABLE {table}_quarantine")
    with pytest.raises(TableMissing, match=r"1 rows .* are quarantined"):
        _write_versions(site, spark)
    assert not spark.catalog.tableExists(f"{table}_quarantine")


def test_an_audit_of_a_wrong_key_does_not_blame_the_catalog(
    site: Site, spark: SparkSession
) -> None:
    _send(site, ("a", 3))
    table = _write_versions(site, spark)
    kafka = oncelake.Kafka(site.bootstrap, [site.topic])
    with pytest.raises(TableUnfit, match=r"Spark refuses .*rnak"):
        oncelake.audit(spark, table, kafka=kafka, key="rnak")


def test_two_rows_of_one_record_are_no_versions(site: Site, spark: SparkSession) -> None:
    _send(site, ("a", 3), ("b", 5))
    doubled = (*VERSIONS[:3], "explode(array('a', 'b')) rank", VERSIONS[4])
    with pytest.raises(Unaccounted, match=r"of 4 rows from .* 2 are of a record that another row"):
        _write_versions(site, spark, *doubled)
    assert spark.table(f"demo.news.versions_{site.catalog}").count() == 0


@pytest.mark.parametrize(
    ("key", "order", "topics", "said"),
    [
        ((), "n", ["t"], "say which columns are the key"),
        ("id", (), ["t"], "id is no column of the stream, which has reason, n"),
        ("n", ("n", "m"), ["t"], "m is no column of the stream"),
        ("n", (), ["t"], "reason is the column that says why"),
        (["n"], (), ["t", "u"], "give each of t, u a table of its own"),
    ],
)
def test_versions_that_cannot_be_told_are_refused(
    site: Site, spark: SparkSession, key: str, order: str, topics: list[str], said: str
) -> None:
    column = "CAST(key AS string) reason" if len(topics) == 1 else "key"
    rows = _stream(site, spark, "earliest").selectExpr(*VERSIONS[:3], column, VERSIONS[4])
    kafka = oncelake.Kafka(site.bootstrap, topics)
    with pytest.raises(TerminalError, match=said):
        oncelake.write(rows, "demo.news.no", kafka=kafka, checkpoint="/no", key=key, order=order)
    assert not spark.catalog.tableExists("demo.news.no")
