"""Records made by hand through all of a pipeline but Kafka, and an oracle for what comes of them.

The spec, decoding, transform, rules, sinks and the protocol are the real ones. The oracle is a
dictionary and a few lines; tables are compared as PyIceberg reads them.
"""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from oncelake import layout, ledger, pipeline
from oncelake.commit import Committer, Outcome
from oncelake.ledger import Placement
from oncelake.model import Origin, Progress, Ranges, Span, TopicPartition
from oncelake.ops.audit import Names, Report, audit
from oncelake.planner import local_rows
from oncelake.reading import Reading
from oncelake.spec import PipelineSpec, read_spec

TOPIC, PARTITIONS = "articles", 2
ORIGIN = Origin("cluster", {TOPIC: "topic"})
MINUTE = 60_000_000
NOON = 1_767_268_800_000_000
"""The first of January 2026 in UTC, in microseconds: minute 0 of all records."""

SCHEMA = {
    "type": "record", "name": "Article", "fields": [
        {"name": "id", "type": ["null", "string"]},
        {"name": "title", "type": "string"},
        {"name": "published_at",
         "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
    ],
}  # fmt: skip
SPEC = """\
pipeline: p
source: {{bootstrap: "localhost:9", topic: articles}}
decode: {{schema: article.avsc}}
table: {{name: {table}, partition_by: [days(published_at)]}}
checkpoint: checkpoint
catalog: {{type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: warehouse}}
"""
KAFKA = "topic string, partition int, offset bigint, micros bigint, key string, value string"
HEADERS = "array<struct<key: string, value: binary>>"
_parsed = fastavro.parse_schema(SCHEMA)
UNTITLED = "untitled"
_numbers = itertools.count(1)


class Record(NamedTuple):
    """`at` is its event time, `sent` its time in Kafka, in minutes; it may be corrupt, or gone."""

    partition: int
    id: str | None
    at: float | None = 0
    sent: float = 0
    kind: str = "article"
    title: str = UNTITLED

    @property
    def value(self) -> bytes | None:
        if self.kind == "gone":
            return None
        if self.kind == "corrupt":
            return b"\xff"
        time = None if self.at is None else NOON + round(self.at * MINUTE)
        out = io.BytesIO()
        article = {"id": self.id, "title": self.title, "published_at": time}
        fastavro.schemaless_writer(out, _parsed, article)
        return out.getvalue()


Place = tuple[int, int]


class Article(NamedTuple):
    """A row of the main table; its time in minutes."""

    place: Place
    title: str
    at: float | None


@dataclass
class Tables:
    """What the tables hold: each article by its id, and the places of the others."""

    main: dict[str, Article] = field(default_factory=dict)
    quarantined: set[Place] = field(default_factory=set)
    late: set[Place] = field(default_factory=set)
    deleted: set[Place] = field(default_factory=set)


class Records:
    """A topic that is a list of records, the tables, and a pipeline between them."""

    def __init__(self, spark: SparkSession, warehouse: Path, folder: Path, more: str = "") -> None:
        self.spark = spark
        self._warehouse = warehouse
        self.table = f"demo.records.t{next(_numbers)}"
        (folder / "article.avsc").write_text(json.dumps(SCHEMA))
        (folder / "pipeline.yaml").write_text(SPEC.format(table=self.table) + more)
        self._file = folder / "pipeline.yaml"
        self.topic: list[list[Record]] = [[] for _ in range(PARTITIONS)]
        self.batches: list[Ranges] = []
        self.restart()

    @property
    def spec(self) -> PipelineSpec:
        return read_spec(self._file, {}).spec

    def restart(self) -> None:
        """As a new run of the pipeline, whose checkpoint is gone."""
        spec = self.spec
        reading = Reading.of(self.spark, spec)
        tables = layout.make_tables(self.spark, spec, reading.record)
        self.main = tables.main
        self._stage = pipeline.stager(spec, reading, tables)
        self.committer = Committer("p", tables.main, tables.sides)
        starts = {TopicPartition(TOPIC, number): 0 for number in range(PARTITIONS)}
        self.committer.claim(ORIGIN, starts)
        self.committer.finish()

    def send(self, *records: Record) -> None:
        for record in records:
            here = self.topic[record.partition]
            title = f"{record.partition}-{len(here)}" if record.title == UNTITLED else record.title
            here.append(record._replace(title=title))

    def write(self, ends: Sequence[int] | None = None) -> Outcome:
        """One batch from the beginning to `ends`; what the table has of it is left out."""
        ends = ends or [len(records) for records in self.topic]
        ranges = {TopicPartition(TOPIC, p): Span(0, end) for p, end in enumerate(ends)}
        outcome = self.committer.commit(ranges, self._staged)
        if outcome.kind != "skipped":
            self.batches.append(outcome.ranges)
        return outcome

    def _staged(self, placement: Placement) -> Any:
        return self._stage(self._rows(placement.todo), placement)

    def _rows(self, ranges: Ranges) -> DataFrame:
        rows = [
            (TOPIC, tp.partition, offset, NOON + round(record.sent * MINUTE),
             None if record.id is None else record.id.encode().hex(),
             None if record.value is None else record.value.hex())
            for tp, offset, record in self._of(ranges)
        ]  # fmt: skip
        given = local_rows(self.spark, rows, KAFKA)
        return given.select(
            "topic", "partition", "offset", F.timestamp_micros("micros").alias("timestamp"),
            F.unhex("key").alias("key"), F.unhex("value").alias("value"),
            F.lit(None).cast(HEADERS).alias("headers"),
        )  # fmt: skip

    def _of(self, ranges: Ranges) -> Iterable[tuple[TopicPartition, int, Record]]:
        for tp, span in ranges.items():
            for offset in range(span.start, span.end):
                yield tp, offset, self.topic[tp.partition][offset]

    @property
    def progress(self) -> Progress:
        found = ledger.look(self.main, "p").progress
        assert found is not None
        return found

    def held(self) -> Tables:
        """What PyIceberg reads, and that no place is there twice."""
        names = self.spec.sides
        rows = {fate: self._read(name) for fate, name in names.items()}
        main = self._read(self.table)
        assert len({row["id"] for row in main}) == len(main), "a key twice"
        for each in (main, *rows.values()):
            assert len({_place(row) for row in each}) == len(each), "a record twice"
        sides = {fate: {_place(row) for row in each} for fate, each in rows.items()}
        return Tables({row["id"]: _article(row) for row in main}, **sides)

    def _read(self, name: str) -> list[dict[str, Any]]:
        catalog = SqlCatalog("demo", uri=f"sqlite:///{self._warehouse}/catalog.db")
        table = catalog.load_table(name.removeprefix("demo."))
        rows: list[dict[str, Any]] = table.scan().to_arrow().to_pylist()
        catalog.engine.dispose()
        return rows

    def audit(self) -> Report:
        spec = self.spec
        names = Names(self.table, "p", spec.sides, spec.key, spec.horizon is not None)
        return audit(self.spark, names, None)

    def expected(self, delay: float | None = None, skew: float = 5, keep: bool = True) -> Tables:
        """By the rules of the spec, batch by batch as they were committed; times in minutes."""
        made, watermark = Tables(), None
        deletes = "deleted" in self.spec.sides
        newest: dict[str, tuple[bool, float, Place, bool]] = {}
        for ranges in self.batches:
            before = dict(newest)
            for tp, offset, record in self._of(ranges):
                place = (tp.partition, offset)
                gone = record.kind == "gone" and record.id is not None and deletes
                time = record.sent if gone else record.at
                if not gone and _is_bad(record, delay is not None, skew):
                    made.quarantined.add(place)
                elif not gone and watermark is not None and _time(record) < watermark:
                    made.late |= {place} if keep else set()
                else:
                    assert record.id is not None
                    rank = (time is not None, time or 0, place, gone)
                    newest[record.id] = max(newest.get(record.id, rank), rank)
            won = {key: rank for key, rank in newest.items() if before.get(key) != rank}
            made.deleted |= {place for _, _, place, gone in won.values() if gone}
            times = [time for _, time, _, gone in won.values() if not gone]
            if delay is not None and times:
                reached = max(times) - delay
                watermark = reached if watermark is None else max(watermark, reached)
        for key, (_, _, place, gone) in newest.items():
            if not gone:
                record = self.topic[place[0]][place[1]]
                made.main[key] = Article(place, record.title, record.at)
        return made


def _is_bad(record: Record, timed: bool, skew: float) -> bool:
    if record.kind != "article" or record.id is None:
        return True
    return timed and (record.at is None or record.at > record.sent + skew)


def _time(record: Record) -> float:
    assert record.at is not None
    return record.at


def _article(row: Mapping[str, Any]) -> Article:
    time = row["published_at"]
    at = None if time is None else (round(time.timestamp() * 1_000_000) - NOON) / MINUTE
    return Article(_place(row), row["title"], at)


def _place(row: Mapping[str, Any]) -> Place:
    return row["kafka_partition"], row["kafka_offset"]
