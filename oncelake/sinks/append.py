"""Append: every good row once, with its coordinates; the rest whole, to quarantine.

One job a batch. An offset holds at most one record: a batch that writes as many rows as it has
offsets has read each of them, and each was good. Where fewer are written, the same offsets are
read again for the bad rows, and counted. A topic with holes (compaction, transactions) would pay
that for every batch: once one is seen, rows are counted while they are written.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from oncelake.commit import Staging
from oncelake.errors import Unaccounted
from oncelake.lake import LakeTable, Staged
from oncelake.model import Counts, Ranges, offsets_in, show_ranges
from oncelake.sinks.intake import Intake, Shape, counted, rows_of


class AppendSink:
    def __init__(self, shape: Shape, main: LakeTable, quarantine: LakeTable | None) -> None:
        self._shape = shape
        self._main = main
        self._intake = Intake(shape, quarantine)
        # Without a reason the rows are as their user made them: none of an offset, or many.
        self._one_an_offset = shape.reason is not None
        self._count_on_the_way = not self._one_an_offset

    def stage(self, due: DataFrame, todo: Ranges) -> Staging:
        """Write the files of the rows that are due, and know of each what became of it."""
        main, read = self._stage_good(due)
        offsets = offsets_in(todo)
        if self._one_an_offset and main.rows == offsets:
            return Staging(main, Counts(read=offsets, written=offsets), {})
        rest = self._intake.rest(due, main.rows, read)
        counts = Counts(read=rest.read, written=main.rows, quarantined=rest.quarantined)
        if not counts.balanced:
            raise Unaccounted(_describe(self._main.name, counts, todo))
        self._count_on_the_way = not self._one_an_offset or rest.read < offsets
        return Staging(main, counts, rest.sides)

    def _stage_good(self, due: DataFrame) -> tuple[Staged, int | None]:
        """The good rows' files and, where it was counted on the way, how many rows were read."""
        rows, observation = counted(due) if self._count_on_the_way else (due, None)
        staged = self._main.stage(self._intake.good(rows).select(*self._shape.good))
        return staged, rows_of(observation) if observation else None


def _describe(table: str, counts: Counts, todo: Ranges) -> str:
    return (
        f"{table}: {counts.read} rows were read from {show_ranges(todo)}, but {counts.written} "
        f"were staged as good and {counts.quarantined} as bad. Nothing was committed. Counting "
        "twice gave this: look for a transform that is not deterministic, or for a topic whose "
        "records were removed in between, and run again"
    )
