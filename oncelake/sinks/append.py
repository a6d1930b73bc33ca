"""Append: every good row once, with its coordinates; the rest whole, to quarantine.

One job a batch: the rows are counted while they are written. Only a batch that holds bad rows
reads its ranges a second time, for those alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from oncelake.commit import Staging
from oncelake.errors import Unaccounted
from oncelake.lake import LakeTable, Staged, observed
from oncelake.model import Counts, Ranges, show_ranges

QUARANTINE_COLUMNS = (
    "kafka_topic string, kafka_partition int, kafka_offset bigint, kafka_timestamp timestamp, "
    "key binary, value binary, headers array<struct<key: string, value: binary>>, "
    "reason string, processed_at timestamp"
)


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

    def stage(self, due: DataFrame, todo: Ranges) -> Staging:
        """Write the files of the rows that are due, and know of each what became of it."""
        counted, observation = self._counted(due)
        main = self._main.stage(self._good(counted))
        seen = observed(observation)
        if seen is None or seen["read"] != main.rows + seen["bad"]:
            seen = self._recount(due)
        sides = self._stage_bad(due) if seen["bad"] else {}
        quarantined = sum(side.rows for side in sides.values())
        counts = Counts(read=seen["read"], written=main.rows, quarantined=quarantined)
        if not counts.balanced:
            raise Unaccounted(_describe(self._main.name, counts, todo))
        return Staging(main, counts, sides)

    def _counted(self, due: DataFrame) -> tuple[DataFrame, Observation]:
        """Counted on the way. The counting also keeps Spark from pushing a filter on the reason
        below the decoding, where it would decode a record once for each of the reason's parts."""
        observation = Observation()
        counts = F.count("*").alias("read"), self._bad().alias("bad")
        return due.observe(observation, *counts), observation

    def _good(self, rows: DataFrame) -> DataFrame:
        good = rows if self._shape.reason is None else rows.filter(F.isnull(self._shape.reason))
        return good.select(*self._shape.good)

    def _bad(self) -> Column:
        return F.count(F.col(self._shape.reason) if self._shape.reason else F.lit(None))

    def _stage_bad(self, due: DataFrame) -> Mapping[str, Staged]:
        assert self._quarantine is not None
        assert self._shape.reason is not None
        counted, _ = self._counted(due)
        bad = counted.filter(F.col(self._shape.reason).isNotNull()).select(*self._shape.bad)
        return {self._quarantine.name: self._quarantine.stage(bad)}

    def _recount(self, due: DataFrame) -> Mapping[str, int]:
        """Count the same ranges by a read of their own."""
        row = due.agg(F.count("*").alias("read"), self._bad().alias("bad")).collect()[0]
        return {"read": int(row["read"]), "bad": int(row["bad"])}


def _describe(table: str, counts: Counts, todo: Ranges) -> str:
    return (
        f"{table}: {counts.read} rows were read from {show_ranges(todo)}, but {counts.written} "
        f"were staged as good and {counts.quarantined} as bad. Nothing was committed. Counting "
        "twice gave this: look for a transform that is not deterministic, or for a topic whose "
        "records were removed in between, and run again"
    )
