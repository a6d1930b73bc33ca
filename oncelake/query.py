"""A running query: wait for it, end it after its batch, and say what really stopped it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from oncelake.batch import BatchWriter
from oncelake.errors import Gap, OncelakeError, TerminalError

POLL_SECONDS = 1
# Spark's words when two drivers write one checkpoint: the fenced one may still be ending.
CONTENDED = "CONCURRENT_STREAM_LOG_UPDATE"
RESTARTS = 5


class RunningQuery:
    """`start` makes Spark's query; `require_ownership` raises where a newer run has taken over."""

    def __init__(self, start: Callable[[], StreamingQuery], writer: BatchWriter,
                 require_ownership: Callable[[], None]) -> None:  # fmt: skip
        self._start = start
        self._writer = writer
        self._require_ownership = require_ownership
        self._restarts = 0
        self._query = start()

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
                self._restart_or_raise(error)
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

    def _restart_or_raise(self, error: StreamingQueryException) -> None:
        """The owner of the pipeline goes on where an overtaken run disturbed its checkpoint."""
        if isinstance(self._writer.failure, OncelakeError):
            raise self._writer.failure from error
        self._require_ownership()
        if CONTENDED in str(error) and self._restarts < RESTARTS:
            self._restarts += 1
            self._query = self._start()
            return
        cause = self._writer.failure or error
        # An error that is not ours: whoever looks for its cause needs the stack.
        logging.getLogger(__name__).error("%s failed", self._writer.doing, exc_info=cause)
        raise _explained(self._writer.doing, str(cause)) from error


def _explained(batch: str, message: str) -> OncelakeError:
    if "failOnDataLoss" in message or "data may have been lost" in message:
        return Gap(
            f"Kafka no longer holds offsets that are due: {message}. Nothing was written past them"
        )
    return TerminalError(
        f"{batch} failed and nothing of it was committed: {message}. Mend the cause and run "
        "again: the table knows where to go on"
    )
