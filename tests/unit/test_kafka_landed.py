"""What has landed of a batch is compared with its rows, not only counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oncelake.errors import Unaccounted
from oncelake.kafka_sink.landed import Record, unsent

ROWS = ("a", "b", "c", "d")


def _batches(rows: Sequence[str], size: int = 3) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(rows), size):
        values = [text.encode() for text in rows[start : start + size]]
        yield pa.RecordBatch.from_pydict({"key": pa.array(values), "value": pa.array(values)})


def _landed(records: Sequence[str]) -> Iterator[tuple[int, Record]]:
    for offset, text in enumerate(records, 100):
        yield offset, Record(text.encode(), text.encode(), ())


def _rest(rows: Sequence[str], records: Sequence[str], strict: bool = True) -> list[str]:
    found = unsent(_batches(rows), _landed(records), strict, "partition 0 of t")
    return [value.decode() for batch in found for value in batch.column("value").to_pylist()]


@pytest.mark.parametrize("landed", range(len(ROWS) + 1))
def test_what_has_landed_is_left_out(landed: int) -> None:
    assert _rest(ROWS, ROWS[:landed]) == list(ROWS[landed:])


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (("x",), "offset 100"),
        (("a", "x"), "offset 101"),
        (("a", "c"), "offset 101"),
        (("b",), "offset 100"),
        ((*ROWS, "x"), "offset 104 of partition 0 of t holds a record .* past the last row"),
    ],
)
def test_anything_else_stops_before_a_row_is_sent(records: tuple[str, ...], said: str) -> None:
    sent: list[str] = []
    with pytest.raises(Unaccounted, match=said):
        sent += _rest(ROWS, records)
    assert sent == []


def test_key_and_headers_are_compared_too() -> None:
    rows = pa.RecordBatch.from_pydict({"key": [b"k"], "value": [b"v"]})
    for other in (
        Record(b"j", b"v", ()),
        Record(b"k", b"v", (("h", b""),)),
        Record(None, b"v", ()),
    ):
        with pytest.raises(Unaccounted):
            list(unsent(iter([rows]), iter([(0, other)]), True, "there"))
    assert list(unsent(iter([rows]), iter([(0, Record(b"k", b"v", ()))]), True, "there")) == []


@given(st.data())
def test_passing_over_what_is_foreign_loses_and_doubles_nothing(data: st.DataObject) -> None:
    landed = data.draw(st.integers(0, len(ROWS)))
    records = list(ROWS[:landed])
    for _ in range(data.draw(st.integers(0, 4))):
        records.insert(data.draw(st.integers(0, len(records))), "x")
    assert _rest(ROWS, records, strict=False) == list(ROWS[landed:])
