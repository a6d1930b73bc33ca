"""What a task tells the driver of a slot: one row, whichever way it has sent."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar
from zipimport import zipimporter

import pyarrow as pa  # type: ignore[import-untyped]
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row

from oncelake.errors import TerminalError, TooLarge, Unaccounted

COLUMNS = (
    "slot int, rows long, fresh long, aside long, superseded long, seconds double, "
    "sending double, fault string, problem string"
)
_ARROW = {"int": pa.int32(), "long": pa.int64(), "double": pa.float64(), "string": pa.string()}
_SCHEMA = pa.schema([(n, _ARROW[t]) for n, t in (c.split() for c in COLUMNS.split(", "))])
FAULTS = {each.__name__: each for each in (TooLarge, Unaccounted)}

AT_ONCE = 4

Rows = Iterable[pa.RecordBatch]
T = TypeVar("T")


@dataclass(slots=True)
class Tally:
    """What a slot's rows come to: `fresh` ones were sent by this task, the others before it; of the
    fresh ones those `aside` went to the quarantine; `superseded` ones are older than another of
    their key, and not sent. `digest` is the sum of the rows' hashes, in any order; `sending` are
    the seconds in which messages went out."""

    rows: int = 0
    fresh: int = 0
    aside: int = 0
    superseded: int = 0
    digest: int = 0
    sending: float = 0.0


class Report:
    """What becomes of a slot, whose work is done in steps."""

    def __init__(self, slot: int) -> None:
        self.slot, self.tally, self.failed = slot, Tally(), False
        self._fault: tuple[str | None, str | None] = (None, None)
        self._began = time.perf_counter()

    def of(self, step: Callable[[], T]) -> T | None:
        """Do a step. One that cannot be mended by trying the task again is told to the driver."""
        try:
            return step()
        except TerminalError as error:
            self.failed, self._fault = True, (type(error).__name__, str(error))
            return None

    def row(self) -> pa.RecordBatch:
        tally, seconds = self.tally, time.perf_counter() - self._began
        row = (self.slot, tally.rows, tally.fresh, tally.aside, tally.superseded, seconds,
               tally.sending, *self._fault)  # fmt: skip
        named = dict(zip(_SCHEMA.names, row, strict=True))
        return pa.RecordBatch.from_pylist([named], schema=_SCHEMA)


def in_tasks(messages: DataFrame, task: Callable[[int, Rows], Rows]) -> list[Row]:
    """Have each task do its part, by its number; what they tell. Raises what went wrong."""

    def numbered(rows: Rows) -> Rows:
        _forget_archives()
        context = TaskContext.get()
        assert context is not None
        return task(context.partitionId(), rows)

    return _without_fault(messages.mapInArrow(numbered, COLUMNS).collect())


def with_idle(found: list[Row], slots: Iterable[int], task: Callable[[int], Rows]) -> list[Row]:
    """And what the slots tell that no task has spoken of: their part of the batch has no rows.

    It is a part like any other: until each slot is done, nothing may follow.
    """
    known = {row.slot for row in found}
    idle = [slot for slot in slots if slot not in known]
    with ThreadPoolExecutor(AT_ONCE) as beside:
        told = beside.map(lambda slot: list(task(slot)), idle)
        rows = [Row(**row) for each in told for batch in each for row in batch.to_pylist()]
    return found + _without_fault(rows)


def _without_fault(rows: list[Row]) -> list[Row]:
    for row in rows:
        if row.fault:
            raise FAULTS[row.fault](row.problem)
    return rows


def _forget_archives() -> None:
    """Keep the next task of this worker from reading PySpark's archive over and over.

    PySpark begins each task by having Python's importers forget what they know, and an importer of
    a zip file then reads its directory anew, at once: a fifth of a second a task, and more. One
    that is not there is made again when something is imported, from what Python remembers.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]
