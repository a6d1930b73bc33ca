"""Is every coordinate in the tables at most once, and within what is dealt with? Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oncelake.model import Span
from oncelake.ops.audit.coverage import Coverage
from oncelake.ops.audit.evidence import Evidence, Slice, Suspect
from oncelake.ops.audit.report import Finding, explained, violated


def check_strays(coverage: Sequence[Coverage], strays: Sequence[Slice]) -> Iterator[Finding]:
    """Rows with coordinates of ours that no stamp speaks of."""
    positions = {each.tp: each.position for each in coverage}
    for each in strays:
        rows = each.main.rows + sum(found.rows for found in each.sides.values())
        if rows:
            kind, place = _place(each.span, positions.get(each.tp, Span(0, 0)))
            yield violated(kind, each.tp, f"{rows} rows at offsets {place}")


def _place(span: Span, position: Span) -> tuple[str, str]:
    if span.start >= position.end:
        return "rows-beyond-progress", f"from {span.start} on, past progress: no stamp covers them"
    if span.end <= position.start:
        return "rows-before-first", f"below {span.end}, where the pipeline began"
    return "rows-unstamped", f"{span}, which no stamp covers"


def check_twice(evidence: Evidence, replayed: int = 0) -> Iterator[Finding]:
    """No coordinate is in a table twice, nor in two tables, unless it was `replayed`: such rows
    stay in quarantine, marked."""
    rows = evidence.rows
    if copies := sum(each.main.copies for each in rows.slices):
        twice = [s for s in rows.suspects if s.main > 1]
        yield violated("duplicates", evidence.main.table, _too_many(copies, twice))
    for side in evidence.sides:
        if copies := sum(each.side(side.fate).copies for each in rows.slices):
            twice = [s for s in rows.suspects if s.sides.get(side.fate, 0) > 1]
            yield violated("duplicates", side.table, _too_many(copies, twice))
    both = sum(each.both for each in rows.slices) - replayed
    if both > 0:
        shared = [s for s in rows.suspects if s.shared]
        tables = " and ".join((evidence.main.table, *(side.table for side in evidence.sides)))
        told = f"{both} records are in more than one table{_named(shared)}"
        yield violated("in-both", tables, told)


def check_keys(evidence: Evidence) -> Iterator[Finding]:
    """In a table of latest versions a key stands once, unless it is not looked for far back."""
    rows, table = evidence.rows, evidence.main.table
    if not rows.keys_twice:
        return
    told = f"{rows.keys_twice} keys have more than one row, such as {', '.join(rows.repeated)}"
    if evidence.bounded:
        yield explained(
            "key-twice",
            table,
            f"{told}. The pipeline looks for a key only as far back as its horizon: one that comes "
            "again after that is a new row, by choice",
        )
    else:
        yield violated("key-twice", table, told)


def _too_many(copies: int, suspects: Sequence[Suspect]) -> str:
    return f"{copies} rows too many{_named(suspects)}"


def _named(suspects: Sequence[Suspect]) -> str:
    return f": {', '.join(map(str, suspects))}" if suspects else ""
