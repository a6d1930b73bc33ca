"""A running query: wait for it, end it after its batch, and say what really stopped it."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from oncelake import events
from oncelake.batch import BatchWriter
from oncelake.errors import CheckpointUnusable, Gap, OncelakeError, TerminalError
from oncelake.events import Tell
from oncelake.lake import JAVA_ERRORS, in_short, without_stack
from oncelake.spec import scrub

POLL_SECONDS = 1
FULL = "No space left on device"
# Spark's words when two drivers write one checkpoint: the fenced one may still be ending. The
# second are those of two that write one file at the same instant: their class is not in the text.
CONTENDED = ("CONCURRENT_STREAM_LOG_UPDATE", "Multiple streaming queries are concurrently using")
RESTARTS = 5
# A batch that fails is tried again, as what it failed by may have passed: a lost executor, say.
RETRY_SECONDS = (0.5, 2.0, 5.0)


class RunningQuery:
    """`start` makes Spark's query; `require_ownership` raises where a newer run has taken over."""

    def __init__(self, start: Callable[[], StreamingQuery], writer: BatchWriter,
                 require_ownership: Callable[[], None],
                 tell: Tell = lambda event: None) -> None:  # fmt: skip
        self._start = start
        self._writer = writer
        self._require_ownership = require_ownership
        self._tell = tell
        self._restarts, self._disturbed = 0, ""
        self._failures, self._failing = 0, ""
        self._query = self._started()

    @property
    def query(self) -> StreamingQuery:
        return self._query

    def wait(self, stop: threading.Event | None = None) -> bool:
        """True once the query has ended by itself; False as soon as `stop` is set."""
        while not (stop is not None and stop.is_set()):
            try:
                if self._query.awaitTermination(POLL_SECONDS):
                    return True
            except StreamingQueryException as error:
                if isinstance(self._writer.failure, OncelakeError):
                    raise self._writer.failure from error
                if not self._goes_on(error):
                    (stop or threading.Event()).wait(self._pause_before_retry(error))
                self._query = self._started()
        return False

    def end_gracefully(self) -> None:
        """End the running batch, let Spark log it, begin no other.

        A batch that Spark had planned already fails in Spark's eyes; the next run writes it.
        """
        self._writer.stop_after_this_batch()
        pause = threading.Event()
        while self._query.isActive and self._query.status["isTriggerActive"]:
            if self._writer.parked:
                break
            pause.wait(0.02)
        self._writer.release()
        self._query.stop()

    def _started(self) -> StreamingQuery:
        """Spark's query, whose id too is a file of the checkpoint, written before it runs."""
        while True:
            self._writer.failure = None
            try:
                return self._start()
            except JAVA_ERRORS as error:
                if not self._goes_on(error):
                    raise

    def _goes_on(self, error: Exception) -> bool:
        """Whether an overtaken run disturbed the checkpoint: then the owner starts anew."""
        self._require_ownership()
        if not any(words in str(error) for words in CONTENDED):
            return False
        # Counted anew once a batch has gone through.
        if self._disturbed != self._writer.doing:
            self._restarts, self._disturbed = 0, self._writer.doing
        self._restarts += 1
        if self._restarts > RESTARTS:
            raise CheckpointUnusable(
                f"{self._writer.doing}: another query writes to the same checkpoint, again and "
                "again, and is no run of this pipeline. Nothing of the batch was committed. Give "
                "each query a checkpoint of its own (CHECKPOINT_LOCATION), or stop the other"
            ) from error
        return True

    def _pause_before_retry(self, error: StreamingQueryException) -> float:
        """How long to wait before a batch that failed is tried again; raises in the end."""
        cause, batch = self._writer.failure or error, self._writer.doing
        # Counted anew once a batch has gone through.
        if self._failing != batch:
            self._failures, self._failing = 0, batch
        if "failOnDataLoss" in str(cause) or "data may have been lost" in str(cause):
            raise Gap(
                f"Kafka no longer holds offsets that are due: {cause}. Nothing was written past "
                "them"
            ) from error
        if self._failures == len(RETRY_SECONDS):
            raise self._explained(cause) from error
        self._failures += 1
        pause = RETRY_SECONDS[self._failures - 1]
        self._tell(events.retrying(batch, in_short(cause), self._failures, pause))
        return pause

    def _explained(self, cause: BaseException) -> OncelakeError:
        """An error that is not ours: whoever looks for its cause needs the stack."""
        batch, tries = self._writer.doing, self._failures + 1
        if FULL in str(cause):
            return TerminalError(
                f"{batch} failed {tries} times: no space is left on a disk, that of the "
                "warehouse, of the checkpoint, or of Spark's temporary files (spark.local.dir). "
                "Nothing is lost: make room and run again, the table knows where to go on"
            )
        stack = scrub("".join(traceback.format_exception(cause)))
        logging.getLogger(__name__).error("%s failed\n%s", batch, stack)
        return TerminalError(
            f"{batch} failed {tries} times and nothing of it was committed: "
            f"{without_stack(cause)}. {self._writer.advice}"
        )
