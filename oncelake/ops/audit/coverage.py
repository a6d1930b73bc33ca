"""Do the stamps of a partition lie end to end, from progress's first offset to its next? Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from oncelake.model import Progress, Ranges, Span, TopicPartition
from oncelake.ops.audit.chain import Sealed
from oncelake.ops.audit.report import Finding, violated


@dataclass(frozen=True, slots=True)
class Coverage:
    """One partition. `position` is what progress says is dealt with, `expired` the part of it
    whose stamps were expired, `reach` where the newest stamp ends."""

    tp: TopicPartition
    position: Span
    expired: Span
    reach: int
    gaps: tuple[Span, ...] = ()
    overlaps: tuple[Span, ...] = ()


def cover(progress: Progress | None, sealed: Sequence[Sealed], complete: bool
          ) -> tuple[Coverage, ...]:  # fmt: skip
    """Every partition that progress or a stamp names, in order."""
    positions: Ranges = progress.positions if progress else {}
    spans: dict[TopicPartition, list[Span]] = {tp: [] for tp in positions}
    for each in sealed:
        for tp, span in each.stamp.ranges.items():
            spans.setdefault(tp, []).append(span)
    return tuple(_cover_one(tp, positions, spans[tp], complete) for tp in sorted(spans))


def _cover_one(tp: TopicPartition, positions: Mapping[TopicPartition, Span],
               spans: Sequence[Span], complete: bool) -> Coverage:  # fmt: skip
    first = spans[0].start if spans else positions[tp].start
    position = positions.get(tp, Span(first, first))
    known = position.start
    if not complete:
        known = max(known, spans[0].start if spans else position.end)
    gaps, overlaps, reach = _walk(known, spans)
    if reach < position.end:
        gaps = (*gaps, Span(reach, position.end))
    return Coverage(tp, position, Span(position.start, known), reach, gaps, overlaps)


def _walk(start: int, spans: Iterable[Span]) -> tuple[tuple[Span, ...], tuple[Span, ...], int]:
    """Gaps and overlaps of spans in the order of their commits, and where they end."""
    gaps, overlaps, reach = [], [], start
    for span in spans:
        if span.start > reach:
            gaps.append(Span(reach, span.start))
        elif span.start < reach:
            overlaps.append(Span(span.start, min(reach, span.end)))
        reach = max(reach, span.end)
    return tuple(gaps), tuple(overlaps), reach


def check_coverage(coverage: Iterable[Coverage], progress: Progress | None) -> Iterator[Finding]:
    for each in coverage:
        for gap in each.gaps:
            yield violated("gap", each.tp, f"no stamp covers offsets {gap}")
        for overlap in each.overlaps:
            yield violated("overlap", each.tp, f"offsets {overlap} are covered more than once")
        if each.reach > each.position.end:
            says = (
                f"but progress says that {each.position.end} is next: the next batch would be "
                "written twice"
                if progress
                else "and no progress says what is next: a run stops there and writes nothing"
            )
            yield violated("progress-behind", each.tp, f"stamps reach offset {each.reach}, {says}")
