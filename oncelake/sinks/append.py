"""Append: every good row once, with its coordinates; the rest whole, to quarantine.

One job a batch. An offset holds at most one record: a batch that writes as many rows as it has
offsets has read each of them, and each was good. Where fewer are written, the same offsets are
read again for the bad rows, and counted. A topic with holes (compaction, transactions) would pay
that for every batch: once one is seen, rows are counted while they are written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from oncelake.commit import Staging
from oncelake.errors import Unaccounted
from oncelake.lake import LakeTable, Staged, observed
from oncelake.model import Counts, Ranges, offsets_in, show_ranges

QUARANTINE_COLUMNS = (
    "kafka_topic string, kafka_partition int, kafka_offset bigint, kafka_timestamp timestamp, "
    "key binary, value binary, headers array<struct<key: string, value: binary>>, "
    "reason string, processed_at timestamp"
)
READ = "read"


@dataclass(frozen=True, slots=True)
class Shape:
    """What becomes of a row's columns.

    `good` are the main table's columns. `reason` is a column that is null for good rows; where
    there is none, every row is good. `bad` are the quarantine table's columns.
    """

    good: tuple[Column, ...]
    reason: str | None = None
    bad: tuple[Column, ...] = field(default=())


class AppendSink:
    def __init__(self, shape: Shape, main: LakeTable, quarantine: LakeTable | None) -> None:
        self._shape = shape
        self._main = main
        self._quarantine = quarantine
        # Without a reason the rows are as their user made them: none of an offset, or many.
        self._one_an_offset = shape.reason is not None
        self._count_on_the_way = not self._one_an_offset

    def stage(self, due: DataFrame, todo: Ranges) -> Staging:
        """Write the files of the rows that are due, and know of each what became of it."""
        main, read = self._stage_good(due)
        offsets = offsets_in(todo)
        if self._one_an_offset and main.rows == offsets:
            return Staging(main, Counts(read=offsets, written=offsets), {})
        sides: Mapping[str, Staged] = {}
        if self._one_an_offset and read != main.rows:
            sides, read = self._stage_bad(due)
        quarantined = sum(side.rows for side in sides.values())
        if read is None or read != main.rows + quarantined:
            read = due.count()
        counts = Counts(read=read, written=main.rows, quarantined=quarantined)
        if not counts.balanced:
            raise Unaccounted(_describe(self._main.name, counts, todo))
        self._count_on_the_way = not self._one_an_offset or read < offsets
        return Staging(main, counts, sides)

    def _stage_good(self, due: DataFrame) -> tuple[Staged, int | None]:
        """The good rows' files and, where it was counted on the way, how many rows were read."""
        rows, observation = _counted(due) if self._count_on_the_way else (due, None)
        good = rows.filter(F.isnull(self._shape.reason)) if self._shape.reason else rows
        staged = self._main.stage(good.select(*self._shape.good))
        return staged, _read(observation) if observation else None

    def _stage_bad(self, due: DataFrame) -> tuple[Mapping[str, Staged], int | None]:
        assert self._quarantine is not None
        assert self._shape.reason is not None
        rows, observation = _counted(due)
        bad = rows.filter(F.isnotnull(self._shape.reason)).select(*self._shape.bad)
        staged = self._quarantine.stage(bad)
        return {self._quarantine.name: staged} if staged.rows else {}, _read(observation)


def _counted(rows: DataFrame) -> tuple[DataFrame, Observation]:
    observation = Observation()
    return rows.observe(observation, F.count("*").alias(READ)), observation


def _read(observation: Observation) -> int | None:
    """Rows counted on the way: wrong after a lost shuffle, none where the plan was pruned."""
    seen = observed(observation)
    return None if seen is None else seen[READ]


def _describe(table: str, counts: Counts, todo: Ranges) -> str:
    return (
        f"{table}: {counts.read} rows were read from {show_ranges(todo)}, but {counts.written} "
        f"were staged as good and {counts.quarantined} as bad. Nothing was committed. Counting "
        "twice gave this: look for a transform that is not deterministic, or for a topic whose "
        "records were removed in between, and run again"
    )
