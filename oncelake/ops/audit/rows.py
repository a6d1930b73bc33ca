"""Are the rows in a table those its stamps say? Pure, and the same for main and each side table.

Rows may be fewer than stamped where others deleted some: their snapshots say how many. A delete
explains only rows that were written before it, and not more rows than it removed. An upsert's own
stamps say how many rows they replaced: just those must be gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from oncelake.model import Span, TopicPartition
from oncelake.ops.audit.chain import stamp_of
from oncelake.ops.audit.evidence import SAMPLE, Foreign, History, Slice, Snapshot, Tally
from oncelake.ops.audit.report import Finding, explained, violated

Holes = Sequence[tuple[TopicPartition, Span]]


@dataclass(frozen=True, slots=True)
class Expectation:
    """The rows one account should have in a table, whose history has it at `index`.

    `replaced`: rows of accounts before it that it took away.
    """

    name: str
    index: int
    expected: int
    found: Tally
    replaced: int = 0

    @property
    def missing(self) -> int:
        return max(0, self.expected - self.found.coordinates)

    @property
    def extra(self) -> int:
        return max(0, self.found.coordinates - self.expected)


@dataclass(frozen=True, slots=True)
class TableRows:
    """One table's side of the audit; `strays` are slices of it that no account holds."""

    history: History
    pipeline: str
    expectations: Sequence[Expectation]
    strays: Sequence[tuple[Slice, Tally]]
    foreign: Foreign

    @property
    def missing(self) -> int:
        return sum(each.missing for each in self.expectations)

    @property
    def replaced(self) -> int:
        return sum(each.replaced for each in self.expectations)

    @property
    def extra(self) -> int:
        return sum(each.extra for each in self.expectations)

    @property
    def copies(self) -> int:
        return sum(e.found.copies for e in self.expectations) + sum(
            t.copies for _, t in self.strays
        )

    @property
    def not_ours(self) -> int:
        """Rows in the table that no stamp of ours speaks of."""
        strays = sum(found.coordinates for _, found in self.strays)
        return self.foreign.rows + self.copies + self.extra + strays

    def by_others(self) -> list[tuple[int, Snapshot]]:
        """The snapshots that are not the pipeline's, with their place in the history."""
        found = ((i, s, stamp_of(s)) for i, s in enumerate(self.history.ancestors))
        return [(i, s) for i, s, stamp in found if not stamp or stamp.pipeline != self.pipeline]


def check_rows(table: TableRows, holes: Holes = ()) -> Iterator[Finding]:
    found = [*_check_numbers(table, holes)]
    yield from found
    if not found and not table.not_ours:
        yield from _check_changed(table)


def _check_numbers(table: TableRows, holes: Holes) -> Iterator[Finding]:
    yield from _check_missing(table, holes)
    yield from _check_extra(table)
    yield from _check_removed_stamps(table)
    if table.foreign.rows:
        yield explained(
            "foreign-rows",
            table.history.table,
            f"{table.foreign.rows} rows are of others: {table.foreign.without} without Kafka "
            f"coordinates, {table.foreign.unknown} with those of another topic or partition",
        )


def _check_changed(table: TableRows) -> Iterator[Finding]:
    """The numbers are right, and yet others may have put rows in the place of ours."""
    changed = [s for _, s in table.by_others() if s.changed and s.stamp_text is None]
    if changed:
        what = [f"{s} added {s.number('added-records')}, removed {s.withdrawn}" for s in changed]
        yield explained(
            "rows-changed",
            table.history.table,
            f"others wrote here, and every coordinate is there once: {_some(what)}. Whether these "
            "rows are still as the pipeline wrote them cannot be told",
        )


def unexplained(table: TableRows) -> int:
    """How many of the missing rows neither we replaced nor a delete by others can have removed."""
    removed = {i: s.removed for i, s in table.by_others() if s.removed}
    missing: dict[int, int] = {}
    replaced: dict[int, int] = {}
    for each in table.expectations:
        missing[each.index] = missing.get(each.index, 0) + each.missing
        replaced[each.index] = replaced.get(each.index, 0) + each.replaced
    # The expired stamps have one account: there they may have replaced rows of their own.
    spare, lost = 0, 0
    for index in range(len(table.history.ancestors) - 1, -2, -1):
        spare += removed.get(index, 0) + (replaced.get(index, 0) if index < 0 else 0)
        taken = min(spare, missing.get(index, 0))
        lost += missing.get(index, 0) - taken
        spare += replaced.get(index, 0) - taken
    added = sum(s.added for _, s in table.by_others())
    of_others = max(0, added - table.not_ours)
    told = max(0, sum(removed.values()) - of_others) + table.replaced
    return max(lost, table.missing - told)


def _check_missing(table: TableRows, holes: Holes) -> Iterator[Finding]:
    name, lost, missing = table.history.table, unexplained(table), table.missing - table.replaced
    if missing < 0:
        yield violated("rows-not-replaced", name,
                       f"{-missing} rows that later versions replaced are still there")  # fmt: skip
    if missing <= 0 and not lost:
        return
    removals = [f"{s} removed {s.removed}" for _, s in table.by_others() if s.removed]
    missing = max(missing, lost)
    told = f"{missing} rows of ours are not in {name}{_which(table, holes)}."
    if not lost:
        yield explained("rows-deleted", name, f"{told} Deletes by others explain it: "
                        f"{_some(removals)}")  # fmt: skip
        return
    known = f"only {missing - lost} of them ({_some(removals)})" if removals else "none"
    since = "" if table.history.complete or not table.history.ancestors else (
        f"; the history begins with {table.history.ancestors[0]}, and older deletes are not told"
    )  # fmt: skip
    yield violated("rows-missing", name, f"{told} Deletes by others explain {known}{since}")


def _which(table: TableRows, holes: Holes) -> str:
    """Which rows are missing, as far as it can be told: among replaced rows it cannot."""
    if table.replaced:
        return f", besides {table.replaced} that later versions replaced"
    short = [f"{e.missing} of {e.expected} of {e.name}" for e in table.expectations if e.missing]
    return f": {_some(short)}{_in_words(holes)}"


def _check_extra(table: TableRows) -> Iterator[Finding]:
    over = [
        f"{each.found.coordinates} instead of {each.expected} of {each.name}"
        for each in table.expectations
        if each.extra
    ]
    if over:
        yield violated(
            "rows-unaccounted",
            table.history.table,
            f"{table.extra} rows lie in the ranges of stamps that do not count them: {_some(over)}",
        )


def _check_removed_stamps(table: TableRows) -> Iterator[Finding]:
    """Rows added without a stamp must be found among the rows that are not ours."""
    others = table.by_others()
    added, removed = sum(s.added for _, s in others), sum(s.removed for _, s in others)
    hidden = added - removed - table.not_ours
    if hidden > 0:
        names = [f"{s} added {s.added}" for _, s in others if s.added]
        yield violated(
            "stamp-removed",
            table.history.table,
            f"{hidden} rows in ranges of ours were added by snapshots without a stamp of ours: "
            f"{_some(names)}; a stamp was taken away, or someone wrote in the pipeline's place",
        )


def _in_words(holes: Holes) -> str:
    if not holes:
        return ""
    named = [
        f"{tp} {span.start}" + (f"–{span.end - 1}" if span.end - span.start > 1 else "")
        for tp, span in holes
    ]
    return f" (offsets in no table: {_some(named)})"


def _some(items: Sequence[str]) -> str:
    """A few of them by name, the rest by number."""
    more = f" and {len(items) - SAMPLE} more" if len(items) > SAMPLE else ""
    return ", ".join(items[:SAMPLE]) + more
