"""The rows of a task, cut where another partition's begin."""

from __future__ import annotations

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oncelake.errors import Unaccounted
from oncelake.kafka_sink.parts import PART, by_part

lengths = st.dictionaries(st.integers(0, 9), st.integers(1, 20), max_size=5)


def _batch(rows: list[tuple[int, int]]) -> pa.RecordBatch:
    parts, values = zip(*rows, strict=True) if rows else ((), ())
    columns = {PART: pa.array(parts, pa.int32()), "value": pa.array(values, pa.int64())}
    return pa.RecordBatch.from_pydict(columns)


def _cut(rows: list[tuple[int, int]], size: int) -> list[pa.RecordBatch]:
    """As Spark hands them over: its batches know nothing of parts, and may be empty."""
    return [_batch([]), *(_batch(rows[at : at + size]) for at in range(0, len(rows), size))]


@settings(deadline=None)
@given(lengths, st.integers(1, 30))
def test_each_part_comes_whole_and_in_order(rows_of: dict[int, int], size: int) -> None:
    rows = [(part, number) for part, count in rows_of.items() for number in range(count)]
    found = {
        part: [value for piece in pieces for value in piece.column("value").to_pylist()]
        for part, pieces in by_part(_cut(rows, size))
    }
    assert found == {part: list(range(count)) for part, count in rows_of.items()}
    assert list(found) == list(rows_of)


def test_the_column_that_tells_the_part_is_not_sent() -> None:
    ((_, pieces),) = ((part, list(pieces)) for part, pieces in by_part([_batch([(3, 1)])]))
    assert [piece.schema.names for piece in pieces] == [["value"]]


def test_a_part_in_two_pieces_is_refused() -> None:
    parts = by_part([_batch([(1, 0), (2, 0)]), _batch([(1, 1)])])
    with pytest.raises(Unaccounted, match="rows of part 1"):
        [list(pieces) for _, pieces in parts]
