"""One micro-batch: its ranges from Spark's offset log, the protocol, then a word to the world."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable

from pyspark.sql import DataFrame

from oncelake import events
from oncelake.checkpoint import Checkpoint
from oncelake.commit import Committer, Staging
from oncelake.events import Tell
from oncelake.ledger import Placement
from oncelake.model import Ranges, compact, non_empty, show_ranges, spans_to_json

Stage = Callable[[DataFrame, Placement], Staging]
After = Callable[[DataFrame, Ranges, int], None]
"""What is done with a batch that the table holds: its rows, its offsets, its number."""


class Parked(Exception):
    """The query was stopped before this batch began: it belongs to the next run."""


class BatchWriter(ABC):
    """What foreachBatch calls. It never returns normally from a batch that was not written."""

    def __init__(self) -> None:
        self._idle = threading.Condition()
        self._busy = False
        self._stopping = False
        self._parked = False
        self._released = False
        self.failure: BaseException | None = None
        self.doing = "the batch"

    @property
    @abstractmethod
    def advice(self) -> str:
        """What to do where a batch fails again and again."""

    @abstractmethod
    def _write(self, rows: DataFrame, batch_id: int) -> None:
        """Write it, once; `doing` says what is being done."""

    def __call__(self, rows: DataFrame, batch_id: int) -> None:
        self._enter()
        try:
            self._write(rows, batch_id)
        except BaseException as failure:
            self.failure = failure
            raise
        finally:
            self._leave()

    def stop_after_this_batch(self) -> None:
        """Let the running batch end; park the next one. Returns when none is being written."""
        with self._idle:
            self._stopping = True
            self._idle.wait_for(lambda: not self._busy)

    def release(self) -> None:
        """Let a parked batch end, by failing: it is not written."""
        with self._idle:
            self._released = True
            self._idle.notify_all()

    @property
    def parked(self) -> bool:
        """A further batch has come and waits: the one before it is in Spark's commit log."""
        with self._idle:
            return self._parked

    def _enter(self) -> None:
        with self._idle:
            if self._stopping:
                self._parked = True
                self._idle.wait_for(lambda: self._released)
                raise Parked
            self._busy = True

    def _leave(self) -> None:
        with self._idle:
            self._busy = False
            self._idle.notify_all()


class TableWriter(BatchWriter):
    """Batches into a table, through the protocol."""

    def __init__(self, committer: Committer, stage: Stage, logs: Checkpoint,
                 tell: Tell, after: After = lambda rows, ranges, number: None) -> None:  # fmt: skip
        super().__init__()
        self._committer = committer
        self._stage = stage
        self._logs = logs
        self._tell = tell
        self._after = after
        self._ranges: Ranges = {}

    @property
    def advice(self) -> str:
        offsets = compact(spans_to_json(self._ranges))
        return (
            "To see which record it fails by, type: oncelake check PIPELINE.yaml --offsets "
            f"'{offsets}'. Mend the cause and run again: the table knows where to go on"
        )

    def _write(self, rows: DataFrame, batch_id: int) -> None:
        began = time.monotonic()
        self.doing, self._ranges = f"batch {batch_id}", {}
        logged = self._committer.epochs.in_ledger(self._logs.ranges(batch_id))
        ranges = non_empty(logged)
        self.doing, self._ranges = f"batch {batch_id} ({show_ranges(ranges)})", ranges
        self._tell(events.planned(batch_id, ranges))

        def stage(placement: Placement) -> Staging:
            staging = self._stage(rows, placement)
            self._tell(events.staged(batch_id, len(staging.main.files), staging.counts))
            return staging

        outcome = self._committer.commit(ranges, stage)
        done = events.BatchDone(batch_id, outcome, time.monotonic() - began)
        self._tell(done.event())
        self._after(rows, logged, batch_id)
