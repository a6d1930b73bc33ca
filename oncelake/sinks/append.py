"""Append: every good row once, with its coordinates; the rest to the tables for it.

One job a batch. An offset holds at most one record: a batch that writes as many rows as it has
offsets has read each of them, and each was good. Where fewer are written, the same offsets are
read again for the others, and counted. A batch after such a one is likely to be one too (bad or
late records, or a topic with holes): there rows are counted while they are written.
"""

from __future__ import annotations

from dataclasses import replace

from oncelake.commit import Staging
from oncelake.errors import Unaccounted
from oncelake.lake import LakeTable, Staged
from oncelake.model import Counts, Ranges, offsets_in, show_ranges
from oncelake.sinks.intake import Due, Intake, Seen, Shape


class AppendSink:
    def __init__(self, shape: Shape, main: LakeTable) -> None:
        self._shape = shape
        self._main = main
        self._intake = Intake(shape.asides)
        self._count_on_the_way = False

    def stage(self, due: Due, todo: Ranges) -> Staging:
        """Write the files of the rows that are due, and know of each what became of it."""
        main, seen = self._stage_good(due)
        offsets = offsets_in(todo)
        self._count_on_the_way = main.rows != offsets
        if due.one_an_offset and main.rows == offsets:
            return Staging(main, Counts(read=offsets, written=offsets), {})
        rest = self._intake.rest(due, main.rows, seen)
        counts = replace(rest.counts, written=main.rows)
        if not counts.balanced or counts.filtered < 0:
            raise Unaccounted(describe(self._main.name, counts, todo))
        return Staging(main, counts, rest.sides)

    def _stage_good(self, due: Due) -> tuple[Staged, Seen | None]:
        """The good rows' files and, where it was counted on the way, how many rows there were."""
        count = self._count_on_the_way or not due.one_an_offset
        census = self._intake.census(due) if count else None
        rows = census.rows() if census else due.rows()
        good = self._intake.good(rows).select(*self._shape.good)
        staged = self._main.stage(due.gathered(good))
        return staged, census.seen() if census else None


def describe(table: str, counts: Counts, todo: Ranges) -> str:
    """What does not add up. Where a transform made rows, more came out than were filtered."""
    made = ""
    if counts.filtered < 0:
        made = f" The transform gave {-counts.filtered} rows more than it was given."
    fates = counts.fates_in_words("written", "quarantined")
    return (
        f"{table}: {counts.read} rows were read from {show_ranges(todo)}, but {fates} were "
        f"accounted for.{made} Nothing was committed. Counting twice gave this: look for a "
        "transform that is not deterministic, or for a topic whose records were removed in "
        "between, and run again"
    )
