"""A running query: wait for it, end it after its batch, and say what really stopped it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from oncelake.batch import BatchWriter
from oncelake.errors import CheckpointUnusable, Gap, OncelakeError, TerminalError
from oncelake.lake import JAVA_ERRORS

POLL_SECONDS = 1
# Spark's words when two drivers write one checkpoint: the fenced one may still be ending. The
# second are those of two that write one file at the same instant: their class is not in the text.
CONTENDED = ("CONCURRENT_STREAM_LOG_UPDATE", "Multiple streaming queries are concurrently using")
RESTARTS = 5


class RunningQuery:
    """`start` makes Spark's query; `require_ownership` raises where a newer run has taken over."""

    def __init__(self, start: Callable[[], StreamingQuery], writer: BatchWriter,
                 require_ownership: Callable[[], None]) -> None:  # fmt: skip
        self._start = start
        self._writer = writer
        self._require_ownership = require_ownership
        self._restarts, self._disturbed = 0, ""
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
                    raise self._explained(error) from error
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

    def _explained(self, error: StreamingQueryException) -> OncelakeError:
        """An error that is not ours: whoever looks for its cause needs the stack."""
        cause = self._writer.failure or error
        batch, message = self._writer.doing, str(cause)
        logging.getLogger(__name__).error("%s failed", batch, exc_info=cause)
        if "failOnDataLoss" in message or "data may have been lost" in message:
            return Gap(
                f"Kafka no longer holds offsets that are due: {message}. Nothing was written past "
                "them"
            )
        return TerminalError(
            f"{batch} failed and nothing of it was committed: {message}. Mend the cause and run "
            "again: the table knows where to go on"
        )
