"""What every sink does with rows that are due: take the good ones, and account for the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from oncelake.lake import LakeTable, Staged, observed
from oncelake.model import Counts

READ, LEFT_OUT, JUDGED = "read", "left_out", "judged"


@dataclass(frozen=True, slots=True)
class Aside:
    """Rows that do not go into the main table: into which they go, or none but are counted."""

    fate: str
    when: Column
    columns: tuple[Column, ...] = ()
    table: LakeTable | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """What becomes of rows: `good` are the main table's columns, `asides` the rows not for it.

    No row is of two asides. Those of which one is `left_out` (see Due) are of the first.
    """

    good: tuple[Column, ...]
    asides: tuple[Aside, ...] = ()


@dataclass(frozen=True, slots=True)
class Due:
    """Rows that are due: as they were read, and, judged, as the sinks take them.

    A transform may leave rows out when they are judged, and is not given those that are
    `left_out` before. Unless it has one, a batch has at most one row `one_an_offset`. A job's rows
    are `gathered` into its tasks last: further down, Spark would copy each of them once more.
    """

    read: DataFrame
    judge: Callable[[DataFrame], DataFrame] = lambda rows: rows
    left_out: Column | None = None
    one_an_offset: bool = True
    gathered: Callable[[DataFrame], DataFrame] = lambda rows: rows

    def rows(self) -> DataFrame:
        return self.judge(self.read)


@dataclass(frozen=True, slots=True)
class Seen:
    """How many rows were read, were filtered out by a transform, and are of each aside."""

    read: int
    filtered: int
    aside: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Rest:
    """The counts of what was not taken, and of what was read in all; the files by fate."""

    counts: Counts
    sides: Mapping[str, Staged] = field(default_factory=dict)


class Census:
    """Counts a batch's rows on their way through a job, by what becomes of them."""

    def __init__(self, due: Due, asides: Sequence[Aside]) -> None:
        self._due = due
        self._asides = asides
        self._read, self._judged = Observation(), Observation()

    def rows(self) -> DataFrame:
        """The judged rows, which are counted once they have gone through a job."""
        read = self._due.read
        if self._due.left_out is not None:
            read = read.observe(self._read, *_read_counts(self._due.left_out))
        return self._due.judge(read).observe(self._judged, *self._judged_counts())

    def seen(self) -> Seen | None:
        """The counts: wrong after a lost shuffle, none where the plan was pruned."""
        judged = observed(self._judged)
        read = judged if self._due.left_out is None else observed(self._read)
        return None if judged is None or read is None else self._sum_up(read, judged)

    def recount(self) -> Seen:
        """The same by a job of its own, which neither can mislead."""
        judged = self._due.rows().agg(*self._judged_counts()).collect()[0].asDict()
        read = judged
        if self._due.left_out is not None:
            counts = _read_counts(self._due.left_out)
            read = self._due.read.agg(*counts).collect()[0].asDict()
        return self._sum_up(read, judged)

    def _judged_counts(self) -> tuple[Column, ...]:
        return _count(JUDGED), *(F.count_if(each.when).alias(each.fate) for each in self._asides)

    def _sum_up(self, read: Mapping[str, int], judged: Mapping[str, int]) -> Seen:
        aside = {each.fate: judged[each.fate] for each in self._asides}
        if self._due.left_out is None:
            return Seen(judged[JUDGED], 0, aside)
        aside[self._asides[0].fate] += read[LEFT_OUT]
        return Seen(read[READ], read[READ] - read[LEFT_OUT] - judged[JUDGED], aside)


class Intake:
    def __init__(self, asides: Sequence[Aside]) -> None:
        self._asides = asides

    def census(self, due: Due) -> Census:
        return Census(due, self._asides)

    def good(self, rows: DataFrame) -> DataFrame:
        for each in self._asides:
            rows = rows.filter(~each.when)
        return rows

    def rest(self, due: Due, taken: int, seen: Seen | None) -> Rest:
        """Of rows that are due, `taken` were good; `seen` is what was counted on the way, if so.

        What is put aside is read again, from the same offsets.
        """
        sides: dict[str, Staged] = {}
        for each in self._asides:
            if each.table is None or (seen and not seen.aside[each.fate]):
                continue
            census = None if seen else self.census(due)
            staged = each.table.stage(due.gathered(self._aside(due, each, census)))
            seen = census.seen() if census else seen
            if staged.rows:
                sides[each.fate] = staged
        if seen is None or not self._agrees(seen, taken, sides):
            seen = self.census(due).recount()
        return Rest(self._counts(seen, sides), sides)

    def _aside(self, due: Due, aside: Aside, census: Census | None) -> DataFrame:
        rows = census.rows() if census else due.rows()
        rows = rows.filter(aside.when).select(*aside.columns)
        if due.left_out is not None and aside is self._asides[0]:
            rows = rows.unionByName(due.read.filter(due.left_out).select(*aside.columns))
        return rows

    def _agrees(self, seen: Seen, taken: int, sides: Mapping[str, Staged]) -> bool:
        staged = all(
            seen.aside[each.fate] == (sides[each.fate].rows if each.fate in sides else 0)
            for each in self._asides
            if each.table is not None
        )
        return staged and seen.read == taken + seen.filtered + sum(seen.aside.values())

    def _counts(self, seen: Seen, sides: Mapping[str, Staged]) -> Counts:
        """What was staged is counted by its files, the rest as it was seen."""
        nowhere = {e.fate: seen.aside[e.fate] for e in self._asides if e.table is None}
        staged = {fate: side.rows for fate, side in sides.items()}
        return Counts(
            read=seen.read,
            filtered=seen.filtered,
            dropped=sum(nowhere.values()),
            **{**nowhere, **staged},
        )


def _count(name: str) -> Column:
    return F.count("*").alias(name)


def _read_counts(left_out: Column) -> tuple[Column, ...]:
    return _count(READ), F.count_if(left_out).alias(LEFT_OUT)
