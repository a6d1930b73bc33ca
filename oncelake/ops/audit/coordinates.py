"""Is every coordinate in the tables at most once, and within what is dealt with? Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oncelake.model import Span
from oncelake.ops.audit.coverage import Coverage
from oncelake.ops.audit.evidence import RowFacts, Slice, Suspect
from oncelake.ops.audit.report import Finding, violated


def check_strays(coverage: Sequence[Coverage], strays: Sequence[Slice]) -> Iterator[Finding]:
    """Rows with coordinates of ours that no stamp speaks of."""
    positions = {each.tp: each.position for each in coverage}
    for each in strays:
        rows = each.main.rows + each.quarantine.rows
        if rows:
            kind, place = _place(each.span, positions.get(each.tp, Span(0, 0)))
            yield violated(kind, each.tp, f"{rows} rows at offsets {place}")


def _place(span: Span, position: Span) -> tuple[str, str]:
    if span.start >= position.end:
        return "rows-beyond-progress", f"from {span.start} on, past progress: no stamp covers them"
    if span.end <= position.start:
        return "rows-before-first", f"below {span.end}, where the pipeline began"
    return "rows-unstamped", f"{span}, which no stamp covers"


def check_twice(rows: RowFacts) -> Iterator[Finding]:
    main = sum(each.main.copies for each in rows.slices)
    quarantine = sum(each.quarantine.copies for each in rows.slices)
    both = sum(each.both for each in rows.slices)
    if main:
        twice = [s for s in rows.suspects if s.main > 1]
        yield violated("duplicates", "main", f"{main} rows too many{_named(twice)}")
    if quarantine:
        twice = [s for s in rows.suspects if s.quarantine > 1]
        yield violated("duplicates", "quarantine", f"{quarantine} rows too many{_named(twice)}")
    if both:
        shared = [s for s in rows.suspects if s.main and s.quarantine]
        yield violated(
            "in-both", "main and quarantine", f"{both} records are in both{_named(shared)}"
        )


def check_keys(table: str, rows: RowFacts) -> Iterator[Finding]:
    """In a table of latest versions a key stands once."""
    if rows.keys_twice:
        named = ", ".join(rows.repeated)
        yield violated(
            "key-twice", table, f"{rows.keys_twice} keys have more than one row, such as {named}"
        )


def _named(suspects: Sequence[Suspect]) -> str:
    named = [f"{s} ({s.main} in main, {s.quarantine} in quarantine)" for s in suspects]
    return f": {', '.join(named)}" if named else ""
