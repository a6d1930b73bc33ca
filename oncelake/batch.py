"""One micro-batch: its ranges from Spark's offset log, the protocol, then a word to the world."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pyspark.sql import DataFrame

from oncelake import events
from oncelake.checkpoint import Checkpoint
from oncelake.commit import Committer, Staging
from oncelake.events import Tell
from oncelake.ledger import Placement
from oncelake.model import Ranges, non_empty, show_ranges

Stage = Callable[[DataFrame, Placement], Staging]


class Parked(Exception):
    """The query was stopped before this batch began: it belongs to the next run."""


class BatchWriter:
    """What foreachBatch calls. It never returns normally from a batch that main does not hold."""

    def __init__(self, committer: Committer, stage: Stage, logs: Checkpoint,
                 tell: Tell, between: Callable[[], None] = lambda: None) -> None:  # fmt: skip
        self._committer = committer
        self._stage = stage
        self._logs = logs
        self._tell = tell
        self._between = between
        self._idle = threading.Condition()
        self._busy = False
        self._stopping = False
        self._parked = False
        self._released = False
        self.failure: BaseException | None = None
        self.ranges: Ranges = {}
        self.doing = "the batch"

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
        """Let a parked batch end, by failing: main does not hold it."""
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

    def _write(self, rows: DataFrame, batch_id: int) -> None:
        began = time.monotonic()
        self.doing, self.ranges = f"batch {batch_id}", {}
        ranges = non_empty(self._committer.epochs.in_ledger(self._logs.ranges(batch_id)))
        self.doing, self.ranges = f"batch {batch_id} ({show_ranges(ranges)})", ranges
        self._tell(events.planned(batch_id, ranges))

        def stage(placement: Placement) -> Staging:
            staging = self._stage(rows, placement)
            self._tell(events.staged(batch_id, len(staging.main.files), staging.counts))
            return staging

        outcome = self._committer.commit(ranges, stage)
        done = events.BatchDone(batch_id, outcome, time.monotonic() - began)
        self._tell(done.event())
        self.doing = f"what comes after batch {batch_id}"
        self._between()
