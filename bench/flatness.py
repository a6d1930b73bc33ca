"""Upsert into tables that grow: 20,000 keys into 0.2, 1 and 4 million rows, by day.

With a bounded horizon only the days near a batch are read: its time should not grow with the table.
Of the smallest one too the horizon takes in only a part, so that all read as many days.
Without one the key of every row is looked at: its time should grow far slower than the table. The
tables take turns, round after round, with and without a horizon; each batch is committed for good,
by the real sink and protocol. Half of it are later versions of the table's newest articles, half
are new.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import to_avro
from rich.console import Console

from bench.results import Result
from bench.stack import TOPIC, Load, Stack, stack
from oncelake import layout, pipeline
from oncelake.commit import Committer
from oncelake.ledger import Placement
from oncelake.model import Origin, Span, TopicPartition
from oncelake.reading import Reading
from oncelake.samples import articles
from oncelake.spec import HorizonSpec, PipelineSpec

SIZES = (200_000, 1_000_000, 4_000_000)
KEYS = 20_000
A_DAY = 25_000
DAY_SECONDS = 24 * 3600
BY_DAY = ("days(published_at)",)
WARM_UPS = 3
MOST = {"bounded": 1.2, "unbounded": 2.0}
NAMES = {"bounded": "upsert_flatness", "unbounded": "upsert_flatness_unbounded"}
PLACE = TopicPartition(TOPIC, 0)
FIELDS = ("id", "title", "body", "source", "url", "published_at")


def run(rounds: int, out: Console) -> list[Result]:
    with stack(Load(1000, 1000), out) as ground:
        tables = {(size, how): _Table(ground, size, how) for size in SIZES for how in MOST}
        for (size, how), table in tables.items():
            out.print(f"filling        {size:>9,} rows, {how}")
            table.fill()
        times: dict[tuple[int, str], list[float]] = {key: [] for key in tables}
        for number in range(1 - WARM_UPS, rounds + 1):
            for (size, how), table in tables.items():
                ground.collect_garbage()
                seconds = table.upsert()
                label = f"round {number} of {rounds}" if number > 0 else "warm-up"
                out.print(f"{label:<14} {size:>9,} rows, {how:<10} {seconds:>7.2f} s")
                if number > 0:
                    times[size, how].append(seconds)
    return [_result(how, {size: times[size, how] for size in SIZES}) for how in MOST]


def _result(how: str, times: Mapping[int, list[float]]) -> Result:
    """Paired by round: the machine's mood is the same for both."""
    ratios = [large / small for small, large in zip(times[SIZES[0]], times[SIZES[-1]], strict=True)]
    value = median(ratios)
    shown = ", ".join(f"{size / 1e6:g} M: {median(each):.2f} s" for size, each in times.items())
    details: dict[str, Any] = {
        "keys": KEYS,
        "seconds": {str(size): [round(t, 3) for t in each] for size, each in times.items()},
        "ratios": [round(ratio, 3) for ratio in ratios],
    }
    return Result(
        name=NAMES[how],
        value=round(value, 3),
        target=f"{SIZES[-1] / 1e6:g} M at most {MOST[how]:g} times {SIZES[0] / 1e6:g} M",
        holds=value <= MOST[how],
        shown=f"{value:.2f} times ({shown})",
        details=details,
    )


@dataclass
class _Table:
    """One table of `size` rows, and a pipeline that upserts into it."""

    ground: Stack
    size: int
    how: str
    offset: int = 0

    def fill(self) -> None:
        spec = self._spec()
        reading = Reading.of(self.ground.spark, spec)
        tables = layout.make_tables(self.ground.spark, spec, reading.record)
        rows = _articles(self.ground.spark.range(self.size), version=0)
        there = rows.select(
            *FIELDS, F.lit(0).alias("kafka_partition"), F.col("number").alias("kafka_offset"),
            F.current_timestamp().alias("processed_at"),
        )  # fmt: skip
        # As years of batches and their maintenance leave it: a few files a day.
        there.repartitionByRange(8, "published_at").sortWithinPartitions("published_at").writeTo(
            spec.table.name
        ).append()
        self.offset = self.size
        self._stage = pipeline.stager(spec, reading, tables)
        self._committer = Committer(spec.name, tables.main, tables.sides)
        self._committer.claim(Origin("bench", {TOPIC: "bench"}), {PLACE: self.offset})

    def upsert(self) -> float:
        """How long it takes to commit a batch, all told."""
        batch = _as_kafka(self._versions(), self.offset).localCheckpoint()
        span = Span(self.offset, self.offset + KEYS)

        def stage(placement: Placement) -> Any:
            return self._stage(batch, placement)

        began = time.perf_counter()
        outcome = self._committer.commit({PLACE: span}, stage)
        seconds = time.perf_counter() - began
        counts = outcome.counts
        assert (counts.updated, counts.inserted) == (KEYS // 2, KEYS // 2), counts
        self.offset = span.end
        return seconds

    def _versions(self) -> DataFrame:
        """The newest articles again, as later versions, and as many that are new."""
        spark, half = self.ground.spark, KEYS // 2
        again = spark.range(self.size - half, self.size)
        return _articles(again.union(spark.range(self.offset, self.offset + half)), self.offset)

    def _spec(self) -> PipelineSpec:
        spec = self.ground.fresh(f"f{self.size}_{self.how}", BY_DAY)
        horizon = HorizonSpec("published_at", 3.0 * DAY_SECONDS) if self.how == "bounded" else None
        return replace(spec, mode="upsert", key=("id",), order=("published_at",), horizon=horizon)


def _articles(numbers: DataFrame, version: int) -> DataFrame:
    """Articles of about 530 bytes; each day A_DAY of them, each version a moment later."""
    number = F.col("id")
    seconds = number * F.lit(DAY_SECONDS / A_DAY)
    micros = F.lit(articles.BASE_MICROS) + (seconds * 1_000_000).cast("bigint") + F.lit(version)
    return numbers.select(
        F.substring(F.sha2(number.cast("string"), 256), 1, 16).alias("id"),
        F.concat(F.lit("title "), number.cast("string")).alias("title"),
        F.repeat(F.md5(number.cast("string")), 12).alias("body"),
        F.lit("wire").alias("source"),
        F.concat(F.lit("https://news.example/"), number.cast("string")).alias("url"),
        F.timestamp_micros(micros).alias("published_at"),
        number.alias("number"),
    )


def _as_kafka(rows: DataFrame, first: int) -> DataFrame:
    """As records of the topic, one an offset from `first` on."""
    schema = articles.SCHEMA_FILE.read_text()
    offset = F.monotonically_increasing_id() + F.lit(first)
    return rows.coalesce(1).select(
        F.lit(TOPIC).alias("topic"), F.lit(0).alias("partition"), offset.alias("offset"),
        F.col("published_at").alias("timestamp"), F.col("id").cast("binary").alias("key"),
        to_avro(F.struct(*FIELDS), schema).alias("value"),
        F.lit(None).cast("array<struct<key: string, value: binary>>").alias("headers"),
    ).repartition(2)  # fmt: skip
