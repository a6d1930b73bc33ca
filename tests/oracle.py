"""What the tables must hold, by other eyes: a plain consumer, fastavro and PyIceberg.

Nothing of oncelake takes part. The topic is read record by record and decoded with fastavro;
the tables are read by PyIceberg; both are compared as whole multisets of rows.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition
from pyiceberg.catalog.sql import SqlCatalog

ANSWER_SECONDS = 20.0

OF_THE_SERVER = "rest_backend"
"""What Apache's REST catalog calls the one that it keeps its tables in."""


class Article(NamedTuple):
    """A row of the main table, without the time at which it was written."""

    partition: int
    offset: int
    id: str
    title: str
    body: str
    source: str
    url: str
    published_at: datetime


class BadRecord(NamedTuple):
    """A row of the quarantine table, without reason and time."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True)
class Contents:
    good: Counter[Article]
    bad: Counter[BadRecord]

    @property
    def rows(self) -> int:
        return self.good.total() + self.bad.total()


def expected(bootstrap: str, topic: str, schema: dict[str, Any]) -> Contents:
    """Every record of the topic, exactly once: decoded, or whole where it cannot be."""
    parsed = fastavro.parse_schema(schema)
    good, bad = Counter[Article](), Counter[BadRecord]()
    for message in records(bootstrap, topic):
        partition, offset = int(message.partition() or 0), int(message.offset() or 0)
        record = _decoded(message.value(), parsed)
        if record is None:
            stamp = message.timestamp()[1]
            row = BadRecord(topic, partition, offset, stamp, message.key(), message.value())
            bad[row] += 1
        else:
            good[Article(partition, offset, **record)] += 1
    return Contents(good, bad)


def latest(every: Contents) -> Contents:
    """Of each article the version published last; of equals the one further on in Kafka."""
    newest: dict[str, Article] = {}
    for article in every.good:
        other = newest.get(article.id)
        if other is None or _rank(article) > _rank(other):
            newest[article.id] = article
    return Contents(Counter(newest.values()), every.bad)


def _rank(article: Article) -> tuple[datetime, int, int]:
    return article.published_at, article.partition, article.offset


def actual(database: Path, catalog_name: str, table: str, quarantine: str) -> Contents:
    """Every row of both tables as PyIceberg reads them."""
    catalog = SqlCatalog(catalog_name, uri=f"sqlite:///{database}")
    good = Counter(
        Article(
            row["kafka_partition"],
            row["kafka_offset"],
            *(row[field] for field in Article._fields[2:]),
        )
        for row in _rows(catalog, table)
    )
    bad = Counter(
        BadRecord(
            row["kafka_topic"],
            row["kafka_partition"],
            row["kafka_offset"],
            round(row["kafka_timestamp"].timestamp() * 1000),
            row["key"],
            row["value"],
        )
        for row in _rows(catalog, quarantine)
    )
    catalog.engine.dispose()
    return Contents(good, bad)


def assert_exactly_once(want: Contents, have: Contents) -> None:
    _assert_equal("good", Counter[Any](want.good), Counter[Any](have.good))
    _assert_equal("bad", Counter[Any](want.bad), Counter[Any](have.bad))


def _assert_equal(kind: str, wanted: Counter[Any], held: Counter[Any]) -> None:
    lost, surplus = wanted - held, held - wanted
    assert not lost, f"{lost.total()} {kind} rows lost, e.g. {next(iter(lost))}"
    assert not surplus, f"{surplus.total()} {kind} rows doubled, e.g. {next(iter(surplus))}"


def read_schema(path: Path) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(path.read_text())
    return schema


def _rows(catalog: SqlCatalog, name: str) -> list[dict[str, Any]]:
    """`name` is the table's in Spark, with that of the catalog there."""
    found = catalog.load_table(name.partition(".")[2])
    rows: list[dict[str, Any]] = found.scan().to_arrow().to_pylist()
    return rows


def _decoded(value: bytes | None, schema: Any) -> dict[str, Any] | None:
    """The record, or None where fastavro cannot read one."""
    if value is None:
        return None
    try:
        record = fastavro.schemaless_reader(io.BytesIO(value), schema, None)
    except (EOFError, ValueError, IndexError, TypeError, MemoryError, OverflowError):
        return None
    return record if isinstance(record, dict) else None


def records(bootstrap: str, topic: str) -> Iterator[Message]:
    """The whole topic as it stands, as a reader of committed records sees it; of each partition in
    order."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "oracle",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic].partitions
        consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
        unread = set(partitions)
        while unread:
            message = consumer.poll(ANSWER_SECONDS)
            assert message is not None, f"partitions {unread} of {topic} gave nothing"
            if (error := message.error()) is None:
                yield message
            else:
                assert error.code() == KafkaError._PARTITION_EOF, str(error)
                unread.discard(message.partition())
    finally:
        consumer.close()
