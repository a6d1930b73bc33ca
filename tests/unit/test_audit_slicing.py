"""Every offset finds exactly the slice it lies in, by its zone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from oncelake.model import Ranges, Span
from oncelake.ops.audit.evidence import NO_END
from oncelake.ops.audit.slicing import cut
from tests.unit.audit_history import P0, P1

spans = st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda s: Span(min(s), max(s)))


@given(st.lists(spans, max_size=8), st.integers(0, 80))
def test_an_offset_meets_one_slice_and_no_boundary_lies_inside_it(
    drawn: list[Span], offset: int
) -> None:
    ranges: list[Ranges] = [{P0: span} for span in drawn]
    (grid,) = cut(ranges, [P0])
    zone = grid.zone(offset)
    met = [s for z, s in grid.zoned() if z == zone and s.start <= offset < s.end]
    assert len(met) == 1
    boundaries = {mark for span in drawn for mark in span}
    assert not any(met[0].start < mark < met[0].end for mark in boundaries)


@given(st.lists(spans, min_size=1, max_size=8))
def test_there_are_only_a_few_zoned_slices_a_slice(drawn: list[Span]) -> None:
    ranges: list[Ranges] = [{P0: span} for span in drawn]
    (grid,) = cut(ranges, ())
    assert len(list(grid.zoned())) <= 4 * len(grid.spans) + 2


def test_a_partition_that_no_stamp_names_is_all_past_its_start() -> None:
    (grid,) = cut([], [P1])
    assert [span for _, span in grid.zoned() if not span.empty] == [Span(0, NO_END)]
