"""What every sink does with rows that are due: take the good ones, and account for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from oncelake.lake import LakeTable, Staged, observed

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


@dataclass(frozen=True, slots=True)
class Rest:
    """How many rows were read in all, and the files of those that were not taken."""

    read: int
    quarantined: int
    sides: Mapping[str, Staged]


class Intake:
    def __init__(self, shape: Shape, quarantine: LakeTable | None) -> None:
        self._shape = shape
        self._quarantine = quarantine

    def good(self, rows: DataFrame) -> DataFrame:
        return rows.filter(F.isnull(self._shape.reason)) if self._shape.reason else rows

    def rest(self, due: DataFrame, taken: int, read: int | None) -> Rest:
        """Of rows that are due, `taken` were good; `read` is how many there were, if it is known.

        Where some are missing, the same offsets are read again for the bad ones.
        """
        sides: Mapping[str, Staged] = {}
        if self._shape.reason is not None and read != taken:
            sides, read = self._stage_bad(due, self._shape.reason)
        put_aside = sum(side.rows for side in sides.values())
        if read is None or read != taken + put_aside:
            read = due.count()
        return Rest(read, put_aside, sides)

    def _stage_bad(self, due: DataFrame,
                   reason: str) -> tuple[Mapping[str, Staged], int | None]:  # fmt: skip
        assert self._quarantine is not None
        rows, observation = counted(due)
        bad = rows.filter(F.isnotnull(reason)).select(*self._shape.bad)
        staged = self._quarantine.stage(bad)
        return {self._quarantine.name: staged} if staged.rows else {}, rows_of(observation)


def counted(rows: DataFrame) -> tuple[DataFrame, Observation]:
    """Rows that are counted on their way through a job."""
    observation = Observation()
    return rows.observe(observation, F.count("*").alias(READ)), observation


def rows_of(observation: Observation) -> int | None:
    """The count: wrong after a lost shuffle, none where the plan was pruned."""
    seen = observed(observation)
    return None if seen is None else seen[READ]
