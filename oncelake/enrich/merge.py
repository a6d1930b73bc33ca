"""The merge: an article is written where it is new, or newer than what is there and not the same.

The articles are met with the table's rows at the snapshot the batch was placed on, first by the
columns that tell most: id and time. What was published at the very time of what is there is then
compared as a whole: the same content is no new version. Another content at the same time is one if
the raw table has it further on in Kafka, which is how the raw table itself decides.
Rows that are replaced go by deletion vectors, in the same commit as the files of the new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from oncelake.commit import Staging
from oncelake.enrich.function import Enricher
from oncelake.enrich.raw import RawArticles
from oncelake.enrich.schema import CONTENT, ENRICHED
from oncelake.errors import Unaccounted
from oncelake.lake import LakeTable, Staged
from oncelake.ledger import Placement
from oncelake.model import Counts, Ranges, show_ranges
from oncelake.rules import Versions

RANK, VERSIONS = "rank", "versions"
BY_TIME = Versions(("id",), ("published_at",))


@dataclass(frozen=True, slots=True)
class _Read:
    """What a batch holds: the newest rank of each article, and how many rows and articles."""

    newest: DataFrame
    rows: int
    without_id: int
    articles: int

    @property
    def older(self) -> int:
        return self.rows - self.without_id - self.articles


class Merge:
    def __init__(self, spark: SparkSession, raw: RawArticles, enricher: Enricher,
                 main: LakeTable) -> None:  # fmt: skip
        self._spark = spark
        self._raw = raw
        self._enricher = enricher
        self._main = main

    def stage(self, placement: Placement) -> Staging:
        """Write files and vectors for what is due, and know of each row what became of it."""
        return self._stage(placement, placement.todo)

    def again(self, ranges: Ranges) -> Callable[[Placement], Staging]:
        """The same for offsets that were read before: rows of them have come since."""

        def stage(placement: Placement) -> Staging:
            staging = self._stage(placement, ranges)
            counts = replace(staging.counts, read=0, replayed=staging.counts.read)
            return replace(staging, counts=counts)

        return stage

    def _stage(self, placement: Placement, ranges: Ranges) -> Staging:
        assert placement.base is not None, "the claim's commit gave the table a snapshot"
        due = self._raw.rows(self._spark, ranges)
        with (
            self._read(due) as read,
            self._enriched(due, read) as enriched,
            self._met(enriched, placement.base) as met,
            _kept(self._staying(met, enriched, read, placement)) as staying,
        ):
            stay = staying.count()
            main = self._main.stage(_winners(enriched, met, staying))
            gone = _gone(met, staying)
        replaced = sum(len(positions) for positions in gone.positions.values())
        counts = Counts(
            read=read.rows,
            written=main.rows,
            superseded=read.older + stay,
            filtered=read.without_id,
            inserted=main.rows - gone.articles,
            updated=gone.articles,
            # Somebody else may have put an article into the table twice: both give way to one.
            removed=replaced - gone.articles,
        )
        if not counts.balanced:
            raise Unaccounted(self._describe(counts, placement))
        deletes = self._main.stage_deletes(placement.base, gone.positions)
        staged = Staged(main.files, deletes, placement.base)
        return Staging(staged, counts, {}, read_to=self._raw.snapshot)

    @contextmanager
    def _read(self, due: DataFrame) -> Iterator[_Read]:
        """Reduce what is due to the newest rank of each article."""
        # Kept for a moment, it is not put together into fewer tasks by Spark: 200 by default.
        by_id = due.select("id", _rank(due)).repartition(_tasks(self._spark), "id")
        newest = by_id.groupBy("id").agg(F.max(RANK).alias(RANK), F.count("*").alias(VERSIONS))
        with _kept(newest) as kept:
            rows, without = (
                F.coalesce(F.sum(F.when(which, F.col(VERSIONS))), F.lit(0))
                for which in (F.lit(True), F.isnull("id"))
            )
            totals = kept.agg(rows, without, F.count("id")).collect()[0]
            yield _Read(kept, *(int(total) for total in totals))

    @contextmanager
    def _enriched(self, due: DataFrame, read: _Read) -> Iterator[DataFrame]:
        """The newest version of each article, enriched once: what a model says may vary."""
        articles = due.filter(F.isnotnull("id"))
        if read.older:
            rank = F.col(RANK)
            chosen = read.newest.select(
                "id",
                rank["partition"].alias("kafka_partition"),
                rank["offset"].alias("kafka_offset"),
            )
            articles = articles.join(chosen, chosen.columns, "left_semi")
        with _kept(self._enricher(articles)) as enriched:
            try:
                [(rows, ids)] = enriched.agg(F.count("*"), F.countDistinct("id")).collect()
            except PySparkException as error:
                raise self._enricher.failed(error) from error
            self._enricher.require_each_once(read.articles, rows, ids)
            yield enriched

    @contextmanager
    def _met(self, enriched: DataFrame, snapshot: int) -> Iterator[DataFrame]:
        """The table's rows that have an id of this batch, and how they stand to it in time."""
        rows = self._main.at(snapshot, self._spark)
        there = rows.select("id", "published_at", "version", "_file", "_pos")
        came = enriched.select("id", F.col("published_at").alias("came_at"))
        # As structs, since those compare with nulls in them: a null is before any time.
        newer = F.struct("published_at") > F.struct("came_at")
        with _kept(
            there.join(came, "id").select(
                "id",
                "published_at",
                "version",
                F.col("_file").alias("file"),
                F.col("_pos").alias("position"),
                newer.alias("newer"),
                F.col("published_at").eqNullSafe(F.col("came_at")).alias("as_old"),
            )
        ) as met:
            yield met

    def _staying(self, met: DataFrame, enriched: DataFrame, read: _Read,
                 placement: Placement) -> DataFrame:  # fmt: skip
        """The ids of articles that leave the table as it is."""
        assert placement.base is not None
        newer = met.filter("newer").select("id")
        as_old = met.filter("as_old")
        # Not as Python's times, which lose an hour when clocks are put back.
        micros = F.unix_micros("published_at")
        [(some, *bounds)] = as_old.agg(F.count("*"), F.min(micros), F.max(micros)).collect()
        if not some:
            return newer.distinct()
        # Bounds that a file's own are compared with: what cannot be as old is not read.
        published = F.col("published_at")
        first, last = (F.timestamp_micros(F.lit(bound)) for bound in bounds)
        whole = self._main.at(placement.base, self._spark).select(*CONTENT)
        whole = whole.filter(published.between(first, last) | published.isNull())
        same = whole.join(enriched, _same(whole, enriched), "left_semi").select("id")
        tied = as_old.select("id").join(same, "id", "left_anti")
        overtaken = self._overtaken(tied, read.newest, placement.todo)
        return newer.union(same).union(overtaken).distinct()

    def _overtaken(self, tied: DataFrame, newest: DataFrame, todo: Ranges) -> DataFrame:
        """Of articles whose time does not decide: those of which raw has a version further on."""
        everything = self._raw.due(None)
        if todo == everything:
            return tied.limit(0)
        every = self._raw.rows(self._spark, everything)
        versions = every.select("id", _rank(every)).join(tied, "id", "left_semi")
        latest = versions.groupBy("id").agg(F.max(RANK).alias("latest"))
        return latest.join(newest, "id").filter(F.col("latest") > F.col(RANK)).select("id")

    def _describe(self, counts: Counts, placement: Placement) -> str:
        return (
            f"{self._main.name}: {counts.read} rows were read from {show_ranges(placement.todo)} "
            f"of {self._raw.table}, but {counts.written} were staged, {counts.superseded} change "
            f"nothing and {counts.filtered} have no id. Nothing was committed: run again"
        )


@dataclass(frozen=True, slots=True)
class _Gone:
    """Rows that give way, by file and position, and of how many articles they are."""

    positions: dict[str, list[int]]
    articles: int


def _gone(met: DataFrame, staying: DataFrame) -> _Gone:
    rows = met.join(staying, "id", "left_anti")
    by_file = rows.groupBy("file").agg(
        F.collect_list("position").alias("positions"), F.collect_list("id").alias("ids")
    )
    found = by_file.collect()
    positions = {row["file"]: row["positions"] for row in found}
    return _Gone(positions, len({each for row in found for each in row["ids"]}))


def _winners(enriched: DataFrame, met: DataFrame, staying: DataFrame) -> DataFrame:
    """The rows to write. A version counts changes: one more than what is there."""
    there = met.groupBy("id").agg(F.max("version").alias("version"))
    changed = enriched.join(staying, "id", "left_anti").join(there, "id", "left")
    version = (F.coalesce("version", F.lit(0)) + 1).cast("int").alias("version")
    now = F.current_timestamp().alias("processed_at")
    return changed.select(*CONTENT, now, version).select(*ENRICHED)


def _same(there: DataFrame, came: DataFrame) -> Column:
    """By id first, which is what a join goes by; nulls are equal to nulls."""
    others = (there[name].eqNullSafe(came[name]) for name in CONTENT if name != "id")
    return reduce(Column.__and__, others, there["id"] == came["id"])


def _rank(rows: DataFrame) -> Column:
    partition, offset = rows["kafka_partition"], rows["kafka_offset"]
    return BY_TIME.rank([rows["published_at"]], partition, offset).alias(RANK)


def _tasks(spark: SparkSession) -> int:
    return spark.sparkContext.defaultParallelism


@contextmanager
def _kept(rows: DataFrame) -> Iterator[DataFrame]:
    """Worked out once, however often it is used."""
    kept = rows.persist()
    try:
        yield kept
    finally:
        kept.unpersist()
