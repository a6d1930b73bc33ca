"""Raw and enriched tables without Kafka: articles made by hand, the real sinks, and an oracle."""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from oncelake import lake
from oncelake.commit import Committer, OnStep, Staging
from oncelake.enrich import job
from oncelake.lake import LakeTable
from oncelake.ledger import Placement
from oncelake.model import Counts, Origin, Progress, Ranges, Span, TopicPartition
from oncelake.planner import local_rows
from oncelake.refusals import progress_key
from oncelake.rules import Versions
from oncelake.sinks.append import AppendSink
from oncelake.sinks.intake import Due, Shape
from oncelake.sinks.upsert import UpsertSink

PARTITIONS = 2
ARTICLE = "id string, title string, body string, source string, url string, published_at timestamp"
COORDINATES = "kafka_partition int, kafka_offset bigint, processed_at timestamp"
ORIGIN = Origin("cluster", {"t": "topic"})
NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
PROGRESS = progress_key(job.PIPELINE)
_numbers = itertools.count(1)


class Sent(NamedTuple):
    """A record of the topic: `minute` None is an article without a time."""

    partition: int
    id: str | None
    minute: int | None
    title: str = "A title"
    body: str | None = "and some text"


@dataclass(frozen=True)
class Row:
    """A row of the enriched table but for its time; `version` counts changes."""

    id: str
    title: str
    body: str | None
    published_at: datetime | None
    score: float
    label: str
    entities: tuple[str, ...]
    keywords: tuple[str, ...]
    version: int = 1


def letters(articles: DataFrame) -> DataFrame:
    """To enrich by: what a test can work out on its own."""
    return articles.select(
        "*",
        (F.length("title") / 8).alias("sentiment_score"),
        F.upper("source").alias("sentiment_label"),
        F.split("title", " ").alias("entities"),
        F.array("id").alias("keywords"),
    )


class Newsdesk:
    """A topic that is a list of articles, a raw table that it is written to, and the job."""

    def __init__(self, spark: SparkSession, mode: str = "append",
                 catalog: str = "demo") -> None:  # fmt: skip
        self.spark = spark
        number = next(_numbers)
        self.raw = f"{catalog}.enriching.raw{number}"
        self.enriched = f"{catalog}.enriching.enriched{number}"
        self.mode = mode
        self.origin = ORIGIN
        self.topic: list[list[Sent]] = [[] for _ in range(PARTITIONS)]
        self.wanted: dict[str, Row] = {}
        self.make_raw()

    @property
    def settings(self) -> job.Settings:
        return job.Settings(self.raw, self.enriched, "tests.spark.enriching:letters")

    def make_raw(self) -> None:
        columns = f"{ARTICLE}, {COORDINATES}"
        lake.create_table(self.spark, self.raw, columns, (), {"format-version": "3"})

    def send(self, *articles: Sent) -> None:
        """To the topic and, as a run of the pipeline, into the raw table."""
        for article in articles:
            self.topic[article.partition].append(article)
        table = LakeTable(self.spark, self.raw)
        committer = Committer("articles", table, {})
        committer.claim(self.origin, {TopicPartition("t", p): 0 for p in range(PARTITIONS)})
        ends = {TopicPartition("t", p): Span(0, len(sent)) for p, sent in enumerate(self.topic)}
        committer.commit(ends, lambda placement: self._stage(table, placement))

    def hold_back(self, partition: int, offset: int) -> None:
        """As if it were in quarantine."""
        place = f"kafka_partition = {partition} AND kafka_offset = {offset}"
        self.spark.sql(f"DELETE FROM {self.raw} WHERE {place}")

    def replay(self, partition: int, offset: int) -> None:
        """As `oncelake replay` would."""
        table = LakeTable(self.spark, self.raw)
        committer = Committer("articles", table, {})
        committer.claim(self.origin, {})
        here = {TopicPartition("t", partition): Span(offset, offset + 1)}

        def stage(placement: Placement) -> Staging:
            staging = self._stage(table, replace(placement, todo=here))
            return replace(staging, counts=Counts(written=1, replayed=1))

        committer.replay(stage)

    def run(self, on_step: OnStep = lambda when, step: None) -> job.Result:
        result = job.run(self.spark, self.settings, on_step)
        assert result.counts.balanced
        self.want()
        return result

    def want(self) -> None:
        """What a run must leave: of each article the newest, and one version more if it is new."""
        newest: dict[str, tuple[Any, ...]] = {}
        rows: dict[str, Row] = {}
        for partition, sent in enumerate(self.topic):
            for offset, article in enumerate(sent):
                if article.id is None:
                    continue
                time = -1 if article.minute is None else article.minute
                rank = (time, partition, offset)
                if rank > newest.get(article.id, (-2,)):
                    newest[article.id], rows[article.id] = rank, _row(article)
        for key, row in rows.items():
            there = self.wanted.get(key)
            version = 1 if there is None else there.version + (replace(there, version=1) != row)
            self.wanted[key] = replace(row, version=version)

    def assert_as_wanted(self, warehouse: Path) -> None:
        have = sorted((_as_row(row) for row in self.contents(warehouse)), key=lambda row: row.id)
        assert have == [self.wanted[key] for key in sorted(self.wanted)]

    def contents(self, warehouse: Path) -> list[dict[str, Any]]:
        """Every row as PyIceberg reads it, times and all."""
        name, table = self.enriched.split(".", 1)
        catalog = SqlCatalog(name, uri=f"sqlite:///{warehouse}/catalog.db")
        try:
            rows = catalog.load_table(table).scan().to_arrow().to_pylist()
        finally:
            catalog.engine.dispose()
        return sorted(rows, key=lambda row: str(row["id"]))

    def digest(self, warehouse: Path) -> str:
        return hashlib.sha256(repr(self.contents(warehouse)).encode()).hexdigest()

    def compact(self, table: str) -> None:
        catalog = table.split(".")[0]
        self.spark.sql(
            f"CALL {catalog}.system.rewrite_data_files("
            f"table => '{table}', options => map('rewrite-all', 'true'))"
        ).collect()

    def expire(self, table: str) -> None:
        catalog = table.split(".")[0]
        self.spark.sql(
            f"CALL {catalog}.system.expire_snapshots(table => '{table}', "
            "older_than => TIMESTAMP '2100-01-01', retain_last => 1)"
        ).collect()

    def forget(self) -> None:
        self.spark.sql(f"ALTER TABLE {self.enriched} UNSET TBLPROPERTIES ('{PROGRESS}')")

    def snapshots(self, table: str) -> list[int]:
        query = f"SELECT snapshot_id FROM {table}.snapshots ORDER BY committed_at"
        return [row.snapshot_id for row in self.spark.sql(query).collect()]

    def progress(self) -> Progress:
        return Progress.from_text(LakeTable(self.spark, self.enriched).properties()[PROGRESS])

    def _stage(self, table: LakeTable, placement: Placement) -> Staging:
        names = [column.split()[0] for column in ARTICLE.split(", ")]
        shape = Shape((
            *(F.col("record")[name].alias(name) for name in names),
            F.col("partition").alias("kafka_partition"),
            F.col("offset").alias("kafka_offset"),
            F.current_timestamp().alias("processed_at"),
        ))  # fmt: skip
        rows = self._rows(placement.todo).select(
            "partition", "offset", F.struct(*names).alias("record")
        )
        if self.mode == "append":
            return AppendSink(shape, table).stage(Due(rows), placement.todo)
        sink = UpsertSink(shape, Versions(("id",), ("published_at",)), table)
        return sink.stage(Due(rows), placement)

    def _rows(self, ranges: Ranges) -> DataFrame:
        rows = [
            (tp.partition, offset, sent.id, sent.title, sent.body, "dpa", f"https://{sent.id}",
             _time(sent, text=True))
            for tp, span in ranges.items()
            for offset in range(span.start, span.end)
            for sent in [self.topic[tp.partition][offset]]
        ]  # fmt: skip
        return local_rows(self.spark, rows, f"partition int, offset bigint, {ARTICLE}")


def _time(sent: Sent, text: bool = False) -> Any:
    if sent.minute is None:
        return None
    time = NOON + timedelta(minutes=sent.minute)
    return time.isoformat() if text else time


def _row(sent: Sent) -> Row:
    assert sent.id is not None
    words = tuple(sent.title.split(" "))
    return Row(
        sent.id, sent.title, sent.body, _time(sent), len(sent.title) / 8, "DPA", words, (sent.id,)
    )


def _as_row(row: dict[str, Any]) -> Row:
    return Row(
        row["id"], row["title"], row["body"], row["published_at"], row["sentiment_score"],
        row["sentiment_label"], tuple(row["entities"]), tuple(row["keywords"]), row["version"],
    )  # fmt: skip
