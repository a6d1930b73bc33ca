"""Upsert: of each key the newest version, whenever and how often the others come.

A batch is read twice and shuffled only by its keys. First its versions are reduced to the newest of
each key, which are looked up in the table as it stood when the batch was placed: those that are
newer than what is there win, and the rows they replace are known by file and position. Then the
winners are written as they are read and, beside that, the replaced rows marked as gone by deletion
vectors. Files and vectors go into one commit, onto that very snapshot.

A tombstone is a version too: one that, where it wins, leaves no row. It is kept in a side table, so
that an older version which comes after it loses against it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import nullcontext
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from oncelake.commit import Staging
from oncelake.decode import RECORD
from oncelake.errors import Unaccounted
from oncelake.lake import LakeTable, Staged
from oncelake.ledger import Placement
from oncelake.model import Ranges, show_ranges
from oncelake.planner import as_written, local_rows
from oncelake.rules import TOMBSTONE, Versions
from oncelake.sinks.append import describe
from oncelake.sinks.intake import Due, Intake, Shape
from oncelake.sinks.lookup import EVENT, RANK, Found, Horizon, Lookup, day_of

NEWEST = "_newest"


@dataclass(frozen=True, slots=True)
class Tombstones:
    """Where tombstones are kept, and as which columns."""

    table: LakeTable
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class _Totals:
    keys: int
    versions: int
    tombstones: int
    days: tuple[int | None, ...]

    @property
    def near(self) -> tuple[int | None, ...] | None:
        """Near which days to look for the keys: a tombstone does not tell that of its row."""
        return None if self.tombstones else self.days


class UpsertSink:
    def __init__(self, shape: Shape, versions: Versions, main: LakeTable,
                 tombstones: Tombstones | None = None,
                 horizon: Horizon | None = None) -> None:  # fmt: skip
        main.require_vectors()
        self._versions = versions
        self._main = main
        self._tombstones = tombstones
        self._lookup = Lookup(versions, main, tombstones.table if tombstones else None, horizon)
        self._intake = Intake(shape.asides)
        self._shape = shape
        # One thread for all batches of a run: each leaves a connection to Java behind, until the
        # query is forgotten.
        self._beside = ThreadPoolExecutor(1, "vectors")

    def stage(self, due: Due, placement: Placement) -> Staging:
        """Write files and vectors for what is due, and know of each row what became of it."""
        # What a user's own code puts into the plan is Spark's to plan.
        ours_alone = due.one_an_offset
        with as_written(due.read.sparkSession) if ours_alone else nullcontext():
            return self._stage(due, placement)

    def _stage(self, due: Due, placement: Placement) -> Staging:
        assert placement.base is not None, "the claim's commit gave the table a snapshot"
        census = self._intake.census(due)
        ranked = self._ranked(due, self._intake.good(census.rows())).persist()
        try:
            totals = self._totals(ranked)
            if not due.one_an_offset:
                self._require_one_an_offset(ranked, totals.versions, placement.todo)
            rest = self._intake.rest(due, totals.versions, census.seen())
            found = self._lookup.find(ranked.filter(NEWEST), placement.base, totals.near)
            marking = self._beside.submit(self._main.stage_deletes, placement.base, found.gone)
            try:
                winners = self._winners(due, ranked, found, totals)
                main = self._main.stage(due.gathered(self._rows(winners)))
                deleted = self._stage_tombstones(due, winners, totals.tombstones)
            finally:
                wait([marking])
        finally:
            ranked.unpersist()
        # Somebody else may have put a key into the table twice: then both rows give way to one.
        updated = min(found.replaced - found.to_tombstones, main.rows)
        counts = replace(
            rest.counts,
            written=main.rows,
            superseded=totals.versions - totals.keys + len(found.stale),
            deleted=deleted.rows,
            inserted=main.rows - updated,
            updated=updated,
            removed=found.replaced - updated,
        )
        if not counts.balanced or counts.filtered < 0:
            raise Unaccounted(describe(self._main.name, counts, placement.todo))
        sides = {**rest.sides, **({"deleted": deleted} if deleted.rows else {})}
        return Staging(Staged(main.files, marking.result(), placement.base), counts, sides)

    def _ranked(self, due: Due, good: DataFrame) -> DataFrame:
        """Each version's key and rank, and whether it is the newest of its key."""
        key = [self._key(name).alias(name) for name in self._versions.key]
        order = [self._order(number) for number in range(len(self._versions.order))]
        rank = self._versions.rank(order, F.col("partition"), F.col("offset"), self._told())
        slim = due.gathered(good.select(*key, rank.alias(RANK)))
        # Kept for a moment, it is not put together into fewer tasks by Spark: 200 by default.
        tasks = good.sparkSession.sparkContext.defaultParallelism
        versions = Window.partitionBy(*self._versions.key).orderBy(F.desc(RANK))
        number = F.row_number().over(versions)
        return slim.repartition(tasks, *self._versions.key).withColumn(NEWEST, number == 1)

    def _totals(self, ranked: DataFrame) -> _Totals:
        """What the batch holds. It is this that reads it."""
        newest, none = F.col(NEWEST), F.lit(None).cast("bigint")
        day = day_of(F.col(RANK)[EVENT]) if self._lookup.horizon else none
        tombstone = F.col(RANK)[TOMBSTONE] if self._tombstones else F.lit(False)
        sums = (
            F.count_if(newest),
            F.count("*"),
            F.count_if(newest & tombstone),
            F.collect_set(F.when(newest, day)),
            F.count_if(newest & day.isNull()),
        )
        keys, versions, tombstones, days, dateless = ranked.agg(*sums).collect()[0]
        return _Totals(keys, versions, tombstones, (*days, None) if dateless else tuple(days))

    def _require_one_an_offset(self, ranked: DataFrame, versions: int, todo: Ranges) -> None:
        """Winners and losers are told apart by their coordinates."""
        place = (F.col(RANK)[name] for name in ("partition", "offset"))
        if surplus := versions - ranked.select(*place).distinct().count():
            raise Unaccounted(
                f"{self._main.name}: of {versions} rows from {show_ranges(todo)}, {surplus} are of "
                "a record that another row is of already. Nothing was committed. With a key, a "
                "transform or a stream gives at most one row of a record: have yours do so, or "
                "append its rows and upsert from that table"
            )

    def _key(self, name: str) -> Column:
        """A tombstone has its key from Kafka."""
        of_record = F.col(RECORD)[name]
        return F.coalesce(of_record, F.col("key").cast("string")) if self._tombstones else of_record

    def _order(self, number: int) -> Column:
        """A tombstone has its time in Kafka for its order: it has no field of its own."""
        of_record = F.col(RECORD)[self._versions.order[number]]
        if self._tombstones is None or number:
            return of_record
        return F.when(F.col(TOMBSTONE), F.col("timestamp")).otherwise(of_record)

    def _told(self) -> dict[str, Column]:
        """What else is to be known of the newest version."""
        told = {TOMBSTONE: F.col(TOMBSTONE)} if self._tombstones else {}
        if horizon := self._lookup.horizon:
            told[EVENT] = F.col(RECORD)[horizon.column]
        return told

    def _winners(self, due: Due, ranked: DataFrame, found: Found, totals: _Totals) -> DataFrame:
        """The rows that win: each key's newest, unless the table has a newer one."""
        good = self._intake.good(due.rows())
        place = ["partition", "offset"]
        losers = totals.versions - totals.keys
        if losers:
            # Whichever are fewer are sent to every task.
            fewer = ~F.col(NEWEST) if losers < totals.keys else F.col(NEWEST)
            named = (F.col(RANK)[name].alias(name) for name in place)
            told_apart = F.broadcast(ranked.filter(fewer).select(*named))
            how = "left_anti" if losers < totals.keys else "left_semi"
            good = good.join(told_apart, place, how)
        if found.stale:
            stale = local_rows(due.read.sparkSession, found.stale, "partition int, offset bigint")
            good = good.join(F.broadcast(stale), place, "left_anti")
        return good

    def _rows(self, winners: DataFrame) -> DataFrame:
        rows = winners if self._tombstones is None else winners.filter(~F.col(TOMBSTONE))
        return rows.select(*self._shape.good)

    def _stage_tombstones(self, due: Due, winners: DataFrame, any_of_them: int) -> Staged:
        if self._tombstones is None or not any_of_them:
            return Staged()
        rows = winners.filter(TOMBSTONE).select(*self._tombstones.columns)
        return self._tombstones.table.stage(due.gathered(rows))
