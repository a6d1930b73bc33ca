"""Find the keys of a batch in the table: which of its rows give way, and which stay.

Only the columns that tell are read, of the table as it stood when the batch was placed. Within a
horizon only those files are read whose time is near that of the batch's rows. A tombstone does not
tell the time of the row that it deletes: for a batch with one, all are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from oncelake.lake import LakeTable
from oncelake.rules import MICROS, TOMBSTONE, Versions

# Beside a key's own columns: such names as those will hardly have.
RANK, EVENT, HASH = "_rank", "event", "_hash"
DAY = 24 * 3600 * MICROS
FIRST, LAST = -(2**63), 2**63 - 1
"""The bounds of a timestamp, in microseconds."""
MOST_SPANS = 50


@dataclass(frozen=True, slots=True)
class Horizon:
    """How far from its own `column` a row's key is looked for, in microseconds."""

    column: str
    reach: int


@dataclass(frozen=True, slots=True)
class Found:
    """Rows of the table that give way, by file and position, `to_tombstones` so many of them.

    `stale` are coordinates of the batch's rows that the table has overtaken.
    """

    gone: dict[str, list[int]]
    to_tombstones: int
    stale: list[tuple[int, int]]

    @property
    def replaced(self) -> int:
        return sum(len(positions) for positions in self.gone.values())


class Lookup:
    def __init__(self, versions: Versions, main: LakeTable, tombstones: LakeTable | None,
                 horizon: Horizon | None) -> None:  # fmt: skip
        self._versions = versions
        self._main = main
        self._tombstones = tombstones
        self.horizon = horizon

    def find(self, newest: DataFrame, snapshot: int,
             days: Collection[int | None] | None) -> Found:  # fmt: skip
        """`newest` has each key once, with its rank; `days` are those of its rows, since 1970, or
        None where that does not tell how far to look."""
        if self._main.empty_at(snapshot):
            return Found({}, 0, sorted(self._deleted(newest)))
        there = self.there(newest.sparkSession, snapshot, days)
        newest = newest.withColumn(HASH, self._hash_of(newest, there))
        same, newer = self._same_key(there, newest), self._rank_of(newest) > self._rank_there(there)
        by_tombstone = newest[RANK][TOMBSTONE] if self._tombstones else F.lit(False)
        found = (
            there.join(F.broadcast(newest), self._hash_of(there, there) == newest[HASH])
            .groupBy(there["_file"].alias("file"))
            .agg(
                F.collect_list(F.when(same & newer, there["_pos"])).alias("gone"),
                F.count_if(same & newer & by_tombstone).alias("to_tombstones"),
                F.collect_list(F.when(same & ~newer, _place(newest))).alias("stale"),
            )
            .collect()
        )
        stale = {tuple(each) for row in found for each in row["stale"]}
        return Found(
            {row["file"]: row["gone"] for row in found if row["gone"]},
            sum(row["to_tombstones"] for row in found),
            sorted(stale | self._deleted(newest)),
        )

    def _deleted(self, newest: DataFrame) -> set[tuple[int, int]]:
        """Coordinates of rows that a tombstone, which came before them, is newer than."""
        if self._tombstones is None:
            return set()
        self._tombstones.refresh()
        head = self._tombstones.head()
        if head is None or self._tombstones.empty_at(head):
            return set()
        there = self._tombstones.at(head, newest.sparkSession)
        older = self._rank_of(newest) < self._rank_there(there)
        on = self._same_key(there, newest) & older
        found = there.join(F.broadcast(newest), on).select(_place(newest).alias("place"))
        return {tuple(row["place"]) for row in found.distinct().collect()}

    def there(self, spark: SparkSession, snapshot: int,
              days: Collection[int | None] | None) -> DataFrame:  # fmt: skip
        """The table's rows that may have the keys, by the columns that tell."""
        versions = self._versions
        columns = *versions.key, *versions.order, "kafka_partition", "kafka_offset"
        rows = self._main.at(snapshot, spark)
        if self.horizon is not None and days is not None:
            rows = rows.filter(_near(rows[self.horizon.column], days, self.horizon.reach))
        return rows.select(*dict.fromkeys(columns), "_file", "_pos")

    def _same_key(self, there: DataFrame, newest: DataFrame) -> Column:
        pairs = (there[name] == newest[name] for name in self._versions.key)
        return reduce(Column.__and__, pairs)

    def _hash_of(self, rows: DataFrame, there: DataFrame) -> Column:
        """By one number Spark joins far faster than by text. It is of the table's own types: as
        another type the same key has another hash."""
        kinds = there.schema
        return F.xxhash64(*(rows[name].cast(kinds[name].dataType) for name in self._versions.key))

    def _rank_of(self, newest: DataFrame) -> Column:
        rank = newest[RANK]
        order = [rank[f"o{number}"] for number in range(len(self._versions.order))]
        return self._versions.rank(order, rank["partition"], rank["offset"])

    def _rank_there(self, there: DataFrame) -> Column:
        order = [there[name] for name in self._versions.order]
        return self._versions.rank(order, there["kafka_partition"], there["kafka_offset"])


def _place(newest: DataFrame) -> Column:
    return F.struct(newest[RANK]["partition"], newest[RANK]["offset"])


def day_of(time: Column) -> Column:
    """Days since 1970 in UTC, whatever the session's zone. No step leaves a long's bounds."""
    micros = F.unix_micros(time)
    begun = (micros < 0) & (micros % F.lit(DAY) != 0)
    return F.call_function("div", micros, F.lit(DAY)) - F.when(begun, 1).otherwise(0)


def _near(column: Column, days: Collection[int | None], reach: int) -> Column:
    """Literals on the column that parts of the table are made by: files far off are not read."""
    near = column.isNull() if None in days else F.lit(False)
    for start, end in spans_of([day for day in days if day is not None], reach):
        after = F.lit(True) if start <= FIRST else column >= _at(start)
        near |= after if end > LAST else after & (column < _at(end))
    return near


def spans_of(days: Sequence[int], reach: int) -> Iterator[tuple[int, int]]:
    """The stretches of time, in microseconds, within reach of these days; not too many."""
    merged: list[tuple[int, int]] = []
    for day in sorted(days):
        start, end = day * DAY - reach, (day + 1) * DAY + reach
        if merged and (start <= merged[-1][1] or len(merged) == MOST_SPANS):
            start = merged.pop()[0]
        merged.append((start, end))
    yield from merged


def _at(micros: int) -> Column:
    return F.timestamp_micros(F.lit(micros))
