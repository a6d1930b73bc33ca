"""What is in the topics and the table, read by others: a plain consumer, fastavro and PyIceberg.

Nothing of oncelake takes part. What is wanted is what the raw topic holds,
decoded record by record.
"""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition
from pyiceberg.catalog.sql import SqlCatalog

from examples.chain.compare import Held, Places, compared

ANSWER_SECONDS = 20.0
UNDECODABLE = (EOFError, ValueError, IndexError, TypeError, MemoryError, OverflowError)


class Article(NamedTuple):
    """All that was produced of it."""

    id: str
    title: str
    body: str
    source: str
    url: str
    published_at: datetime

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> Article:
        """Times in milliseconds: JSON from Spark has no finer ones."""
        given = record["published_at"]
        time = datetime.fromisoformat(given) if isinstance(given, str) else given
        in_millis = time.microsecond // 1000 * 1000
        published_at = time.astimezone(UTC).replace(microsecond=in_millis)
        fields = {name: record[name] for name in cls._fields} | {"published_at": published_at}
        return cls(**fields)


@dataclass(frozen=True, slots=True)
class Where:
    """What to read. `table` is its name in the catalog, whose database is the file `catalog`."""

    bootstrap: str
    raw: str
    good: str
    lake: str
    schema: Path
    catalog: Path
    table: tuple[str, str]


def read(where: Where) -> Places:
    """Every place in full, compared with what the raw topic holds."""
    placed = _produced(where)
    keyed = Counter((article.id, article) for _, _, article in placed.elements())
    return Places(
        produced=placed.total(),
        table=compared(placed, _in_table(where)),
        good=_in_topic(where.bootstrap, where.good, keyed),
        lake=_in_topic(where.bootstrap, where.lake, keyed),
    )


def _produced(where: Where) -> Counter[tuple[int, int, Article]]:
    """The good articles, by where they are in Kafka."""
    schema = fastavro.parse_schema(json.loads(where.schema.read_text()))
    found = Counter[tuple[int, int, Article]]()
    for message in messages(where.bootstrap, where.raw):
        if (article := _decoded(message.value(), schema)) is not None:
            found[int(message.partition() or 0), int(message.offset() or 0), article] += 1
    return found


def _decoded(value: bytes | None, schema: Any) -> Article | None:
    """The article, or None where fastavro cannot read one."""
    try:
        record = fastavro.schemaless_reader(io.BytesIO(value or b""), schema, None)
    except UNDECODABLE:
        return None
    return Article.of(record) if isinstance(record, dict) else None


def _in_table(where: Where) -> Counter[tuple[int, int, Article]]:
    name, table = where.table
    catalog = SqlCatalog(name, uri=f"sqlite:///{where.catalog}")
    rows = catalog.load_table(table).scan().to_arrow().to_pylist()
    catalog.engine.dispose()
    return Counter((row["kafka_partition"], row["kafka_offset"], Article.of(row)) for row in rows)


def _in_topic(bootstrap: str, topic: str, wanted: Counter[tuple[str, Article]]) -> Held:
    """Each message under its key; and how many more a reader gets that asks for all."""
    found = Counter(
        ((message.key() or b"").decode(), Article.of(json.loads(message.value() or b"")))
        for message in messages(bootstrap, topic)
    )
    everything = sum(1 for _ in messages(bootstrap, topic, "read_uncommitted"))
    return compared(wanted, found, everything)


def messages(bootstrap: str, topic: str, isolation: str = "read_committed") -> Iterator[Message]:
    """The whole topic as it stands."""
    settings: dict[str, str | int | float | bool] = {
        "bootstrap.servers": bootstrap,
        "group.id": "check",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": isolation,
    }
    consumer = Consumer(settings)
    try:
        partitions = consumer.list_topics(topic, ANSWER_SECONDS).topics[topic].partitions
        consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
        unread = set(partitions)
        while unread:
            message = consumer.poll(ANSWER_SECONDS)
            if message is None:
                raise TimeoutError(f"partitions {unread} of {topic} gave nothing")
            if (error := message.error()) is None:
                yield message
            elif error.code() != KafkaError._PARTITION_EOF:
                raise OSError(str(error))
            else:
                unread.discard(message.partition())
    finally:
        consumer.close()
