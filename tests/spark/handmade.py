"""A pipeline's tables written by hand: plain Spark writes with stamps, and no code of ours."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from pyspark.sql import SparkSession

from oncelake.model import (
    FOLLOWED_PREFIX,
    PROGRESS_PREFIX,
    STAMP_KEY,
    Counts,
    Origin,
    Pending,
    Progress,
    Ranges,
    Span,
    Stamp,
    TopicPartition,
    compact,
)

TOPIC, PIPELINE = "articles.raw.v1", "articles"
Coordinate = tuple[int, int]

MAIN = "title string, kafka_partition int, kafka_offset bigint"
SIDE = "kafka_topic string, kafka_partition int, kafka_offset bigint, value binary, reason string"


class Handmade:
    """`demo.news.<name>`, its quarantine table and, from the first late row on, one for those;
    every step is a commit of its own."""

    def __init__(self, spark: SparkSession, name: str, properties: str = "") -> None:
        self._name(spark, name)
        spark.sql("CREATE NAMESPACE IF NOT EXISTS demo.news")
        kept = f"TBLPROPERTIES ({properties})" if properties else ""
        spark.sql(f"CREATE TABLE {self.main} ({MAIN}) USING iceberg {kept}")
        spark.sql(f"CREATE TABLE {self.side} ({SIDE}) USING iceberg")
        # Ids are random, so there is one with words in it that Spark takes for a secret's.
        origin = Origin("cluster-1", {TOPIC: "PURlraTokenDCQm6su2I9I"})
        positions = {TopicPartition(TOPIC, p): Span(0, 0) for p in (0, 1)}
        self.progress = Progress(PIPELINE, origin, positions=positions)
        self.away: dict[str, list[Coordinate]] = {}
        self.claim()

    def _name(self, spark: SparkSession, name: str) -> None:
        self.spark = spark
        self.main, self.side = f"demo.news.{name}", f"demo.news.{name}_quarantine"
        self.late = f"demo.news.{name}_late"

    @property
    def sides(self) -> dict[str, str]:
        return {"quarantined": self.side, "late": self.late}

    def copy(self, name: str) -> Handmade:
        """The same history under other names, but for late rows; only expiry is felt in both."""
        made = Handmade.__new__(Handmade)
        made._name(self.spark, name)
        made.progress, made.away = self.progress, self.away
        for old, new in ((self.main, made.main), (self.side, made.side)):
            log = f"SELECT max_by(file, timestamp) FROM {old}.metadata_log_entries"
            (latest,) = self.spark.sql(log).collect()[0]
            self.spark.sql(
                f"CALL demo.system.register_table(table => '{new}', metadata_file => '{latest}')"
            ).collect()
        return made

    def claim(self) -> None:
        stamp = self._stamp("claim", {}, Counts())
        self._append(self.main, "SELECT '' AS title, 0, 0L WHERE false", stamp)
        self._advance(stamp, self.progress.pending)

    def batch(self, lengths: Mapping[int, int], bad: Iterable[Coordinate] = (),
              late: Iterable[Coordinate] = (), follow: bool = True) -> None:  # fmt: skip
        starts = {p: self.progress.next_offset(TopicPartition(TOPIC, p)) for p in lengths}
        ranges = {TopicPartition(TOPIC, p): Span(s, s + lengths[p]) for p, s in starts.items()}
        read = [(tp.partition, o) for tp, span in ranges.items() for o in range(*span)]
        self.away = {"quarantined": [*bad], "late": [*late]}
        good = [c for c in read if c not in {*bad, *late}]
        numbers = {fate: len(rows) for fate, rows in self.away.items()}
        counts = Counts(read=len(read), written=len(good), **numbers)
        assert counts.balanced
        stamp = self._stamp("batch", ranges, counts)
        self._append(self.main, _values("'t', {}, {}L", good), stamp)
        pending = [
            Pending(self.sides[fate], stamp.sequence, stamp.attempt, (), rows, fate)
            for fate, rows in numbers.items()
            if rows
        ]
        self._advance(stamp, pending)
        if follow:
            self.follow()

    def follow(self) -> None:
        for pending in self.progress.pending:
            counts = Counts.from_json({"read": pending.rows, pending.fate: pending.rows})
            stamp = Stamp("follow", PIPELINE, self.progress.generation, pending.sequence,
                          pending.attempt, self.progress.origin, counts=counts)  # fmt: skip
            rows = _values(f"'{TOPIC}', {{}}, {{}}L, X'00', 'not Avro'", self.away[pending.fate])
            self.spark.sql(f"CREATE TABLE IF NOT EXISTS {pending.table} ({SIDE}) USING iceberg")
            self._append(pending.table, rows, stamp)
            mark = compact({"sequence": pending.sequence, "attempt": pending.attempt})
            self._set(pending.table, FOLLOWED_PREFIX + PIPELINE, mark)

    def snapshots(self, table: str = "") -> list[int]:
        """The ids of all snapshots, oldest first."""
        query = f"SELECT snapshot_id FROM {table or self.main}.snapshots ORDER BY committed_at"
        return [row.snapshot_id for row in self.spark.sql(query).collect()]

    def expire(self, retain: int) -> None:
        self.spark.sql(
            f"CALL demo.system.expire_snapshots(table => '{self.main}', "
            f"older_than => TIMESTAMP '2100-01-01', retain_last => {retain})"
        ).collect()

    def _stamp(self, kind: str, ranges: Ranges, counts: Counts) -> Stamp:
        before = self.progress
        sequence, generation = before.sequence + 1, before.generation + (kind == "claim")
        return Stamp(kind, PIPELINE, generation, sequence, f"attempt-{sequence}", before.origin,
                     ranges, counts, before.digest)  # fmt: skip

    def _append(self, table: str, rows: str, stamp: Stamp) -> None:
        columns = MAIN if table == self.main else SIDE
        frame = self.spark.sql(rows).toDF(*(column.split()[0] for column in columns.split(", ")))
        frame.writeTo(table).option(f"snapshot-property.{STAMP_KEY}", stamp.to_text()).append()

    def _advance(self, stamp: Stamp, pending: Iterable[Pending]) -> None:
        self.progress = self.progress.after(stamp, pending)
        self._set(self.main, PROGRESS_PREFIX + PIPELINE, self.progress.to_text())

    def _set(self, table: str, key: str, value: str) -> None:
        self.spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{key}' = '{value}')")


def _values(row: str, coordinates: Iterable[Coordinate]) -> str:
    return "VALUES " + ", ".join(f"({row.format(p, o)})" for p, o in coordinates)


def tamper(catalog: Path, table: str, change: Callable[[dict[str, Any]], object]) -> None:
    """Rewrite a table's metadata file and point the catalog at the new one."""
    _, namespace, name = table.split(".")
    row = "table_namespace = ? AND table_name = ?"
    connection = sqlite3.connect(catalog)
    try:
        (location,) = connection.execute(
            f"SELECT metadata_location FROM iceberg_tables WHERE {row}", (namespace, name)
        ).fetchone()
        path = Path(urlparse(location).path)
        metadata = json.loads(path.read_text())
        change(metadata)
        forged = path.with_name(f"{name}-{path.name}")
        forged.write_text(json.dumps(metadata))
        connection.execute(
            f"UPDATE iceberg_tables SET metadata_location = ? WHERE {row}",
            (location.replace(path.name, forged.name), namespace, name),
        )
        connection.commit()
    finally:
        connection.close()
