"""What a task tells the driver of its slot: one row, whichever way it has sent."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
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

Rows = Iterable[pa.RecordBatch]


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


def told(slot: int, tally: Tally, work: Callable[[], None]) -> Iterator[pa.RecordBatch]:
    """Do the work of a slot; one row says what became of it."""
    began = time.perf_counter()
    fault: tuple[str | None, str | None] = (None, None)
    try:
        work()
    except TerminalError as error:
        # Told to the driver: to try the task again would not mend it.
        fault = (type(error).__name__, str(error))
    row = (slot, tally.rows, tally.fresh, tally.aside, tally.superseded,
           time.perf_counter() - began, tally.sending, *fault)  # fmt: skip
    yield pa.RecordBatch.from_pylist([dict(zip(_SCHEMA.names, row, strict=True))], schema=_SCHEMA)


def in_tasks(messages: DataFrame, tasks: int, task: Callable[[int, Rows], Rows]) -> list[Row]:
    """Have each task do its part, by its number; what they tell.

    Of a batch without rows Spark may run no task at all, as of a snapshot of Iceberg's without
    files. It is a batch like any other: until each slot is done, nothing may follow.
    """

    def numbered(rows: Rows) -> Rows:
        _forget_archives()
        context = TaskContext.get()
        assert context is not None
        return task(context.partitionId(), rows)

    found = messages.mapInArrow(numbered, COLUMNS).collect()
    return found or [
        Row(**row) for n in range(tasks) for told in task(n, ()) for row in told.to_pylist()
    ]


def _forget_archives() -> None:
    """Keep the next task of this worker from reading PySpark's archive over and over.

    PySpark begins each task by having Python's importers forget what they know, and an importer of
    a zip file then reads its directory anew, at once: a fifth of a second a task, and more. One
    that is not there is made again when something is imported, from what Python remembers.
    """
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimporter):
            del sys.path_importer_cache[path]


def raise_fault(found: Iterable[Row]) -> None:
    """Of the tasks that could not do their part, the first one's reason."""
    for row in found:
        if row.fault:
            raise FAULTS[row.fault](row.problem)
