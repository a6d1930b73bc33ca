"""Upsert: of each key the newest version, whenever and how often the others come.

A batch is read twice and shuffled only by its keys. First its versions are reduced to the newest of
each key, which are looked up in the table as it stood when the batch was placed: those that are
newer than what is there win, and the rows they replace are known by file and position. Then the
winners are written as they are read, and the replaced rows marked as gone by deletion vectors.
Files and vectors go into one commit, onto that very snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from oncelake.commit import Staging
from oncelake.errors import Unaccounted
from oncelake.lake import LakeTable, Staged
from oncelake.ledger import Placement
from oncelake.model import Counts, show_ranges
from oncelake.planner import local_rows
from oncelake.rules import Versions
from oncelake.sinks.intake import Intake, Shape, counted, rows_of

RANK, VERSIONS = "rank", "versions"


@dataclass(frozen=True, slots=True)
class _Found:
    """The table's rows that have a key of this batch: those that give way, and those that stay."""

    gone: dict[str, list[int]]
    stale: list[tuple[int, int]]

    @property
    def replaced(self) -> int:
        return sum(len(positions) for positions in self.gone.values())


class UpsertSink:
    def __init__(self, shape: Shape, versions: Versions, main: LakeTable,
                 quarantine: LakeTable) -> None:  # fmt: skip
        main.require_vectors()
        self._versions = versions
        self._main = main
        self._intake = Intake(shape, quarantine)
        self._shape = shape

    def stage(self, due: DataFrame, placement: Placement) -> Staging:
        """Write files and vectors for what is due, and know of each row what became of it."""
        assert placement.base is not None, "the claim's commit gave the table a snapshot"
        rows, observation = counted(due)
        newest = self._newest(self._intake.good(rows)).persist()
        try:
            keys, versions = self._totals(newest)
            rest = self._intake.rest(due, versions, rows_of(observation))
            found = self._look_up(newest, placement.base)
            winners = self._winners(due, newest, found, one_each=versions == keys)
            main = self._main.stage(winners.select(*self._shape.good))
        finally:
            newest.unpersist()
        # Somebody else may have put a key into the table twice: then both rows give way to one.
        updated = min(found.replaced, main.rows)
        counts = Counts(
            read=rest.read,
            written=main.rows,
            superseded=versions - keys + len(found.stale),
            quarantined=rest.quarantined,
            inserted=main.rows - updated,
            updated=updated,
            removed=found.replaced - updated,
        )
        if not counts.balanced:
            raise Unaccounted(self._describe(counts, placement))
        deletes = self._main.stage_deletes(placement.base, found.gone)
        return Staging(Staged(main.files, deletes, placement.base), counts, rest.sides)

    def _totals(self, newest: DataFrame) -> tuple[int, int]:
        """How many keys, and how many versions of them all. It is this that reads the batch."""
        sums = F.count("*"), F.coalesce(F.sum(VERSIONS), F.lit(0))
        keys, versions = newest.agg(*sums).collect()[0]
        return int(keys), int(versions)

    def _newest(self, good: DataFrame) -> DataFrame:
        """The newest rank of each key, and how many versions of it there are."""
        columns = {name: F.col(f"record.{name}") for name in self._versions.key}
        order = [F.col(f"record.{name}") for name in self._versions.order]
        rank = self._versions.rank(order, F.col("partition"), F.col("offset"))
        slim = good.select(*(c.alias(name) for name, c in columns.items()), rank.alias(RANK))
        newest = F.max(RANK).alias(RANK), F.count("*").alias(VERSIONS)
        # Kept for a moment, it is not put together into fewer tasks by Spark: 200 by default.
        tasks = good.sparkSession.sparkContext.defaultParallelism
        by_key = slim.repartition(tasks, *self._versions.key)
        return by_key.groupBy(*self._versions.key).agg(*newest)

    def _look_up(self, newest: DataFrame, snapshot: int) -> _Found:
        """Find the keys in the table, by a read of just the columns that tell."""
        there = self._table_at(newest.sparkSession, snapshot)
        key = [there[name] == newest[name] for name in self._versions.key]
        order = [there[name] for name in self._versions.order]
        rank = self._versions.rank(order, there["kafka_partition"], there["kafka_offset"])
        newer = newest[RANK] > rank
        stale = F.struct(newest[RANK]["partition"], newest[RANK]["offset"])
        found = (
            there.join(F.broadcast(newest), key)
            .groupBy(there["_file"].alias("file"))
            .agg(
                F.collect_list(F.when(newer, there["_pos"])).alias("gone"),
                F.collect_list(F.when(~newer, stale)).alias("stale"),
            )
            .collect()
        )
        return _Found(
            {row["file"]: row["gone"] for row in found if row["gone"]},
            sorted({tuple(each) for row in found for each in row["stale"]}),
        )

    def _table_at(self, spark: SparkSession, snapshot: int) -> DataFrame:
        columns = *self._versions.key, *self._versions.order, "kafka_partition", "kafka_offset"
        table = spark.read.format("iceberg").option("versionAsOf", snapshot)
        return table.load(self._main.name).select(*dict.fromkeys(columns), "_file", "_pos")

    def _winners(self, due: DataFrame, newest: DataFrame, found: _Found,
                 one_each: bool) -> DataFrame:  # fmt: skip
        """The rows to write: each key's newest, unless the table has a newer one."""
        good = self._intake.good(due)
        place = ["partition", "offset"]
        if not one_each:
            chosen = newest.select(*(F.col(RANK)[name].alias(name) for name in place))
            good = good.join(F.broadcast(chosen), place, "left_semi")
        if found.stale:
            stale = local_rows(due.sparkSession, found.stale, "partition int, offset bigint")
            good = good.join(F.broadcast(stale), place, "left_anti")
        return good

    def _describe(self, counts: Counts, placement: Placement) -> str:
        return (
            f"{self._main.name}: {counts.read} rows were read from {show_ranges(placement.todo)}, "
            f"but {counts.written} were staged, {counts.superseded} had been overtaken and "
            f"{counts.quarantined} were bad. Nothing was committed: run again"
        )
