"""The rows of one task, slot by slot: it may read several partitions of the source, in turn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, pairwise
from operator import itemgetter

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]

from oncelake.errors import Unaccounted
from oncelake.kafka_sink.told import Rows

PART = "_part"
"""The column that tells to which part of the batch a row belongs."""


def by_part(rows: Rows) -> Iterator[tuple[int, Rows]]:
    """Each part's rows, to be taken whole before the next. Raises where one comes in two pieces:
    what is sent of it first would be taken for all of it."""
    known: set[int] = set()
    for part, pieces in groupby(_pieces(rows), itemgetter(0)):
        if part in known:
            raise Unaccounted(
                f"rows of part {part} of a batch came in two pieces, with others in between. "
                "Nothing of the second was sent. This Spark hands partitions on in another way "
                "than those it was tried with: report it"
            )
        known.add(part)
        yield part, (piece for _, piece in pieces)


def _pieces(rows: Rows) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Batches cut where the part changes; one without rows is of the part before it."""
    part: int | None = None
    for batch in rows:
        parts = batch.column(PART).to_numpy(zero_copy_only=False)
        plain = batch.drop_columns([PART])
        if not len(parts) and part is not None:
            yield part, plain
        cuts = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(parts)]
        for start, end in pairwise(cuts):
            if start < end:
                part = int(parts[start])
                yield part, plain.slice(start, end - start)
