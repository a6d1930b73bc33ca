"""A query whose checkpoint an overtaken run disturbs: its owner starts it anew.

Spark says so in two ways. That of a batch planned by the other is had by writing Spark's own log
under its hands; that of a file written in the same instant cannot be had at will, so a query gives
the error that Spark makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from oncelake.batch import BatchWriter
from oncelake.errors import CheckpointUnusable, Fenced, OncelakeError
from oncelake.query import RESTARTS, RunningQuery

Start = Callable[[], StreamingQuery]


def run(start: Start, require_ownership: Callable[[], None] = lambda: None) -> bool:
    writer = cast(BatchWriter, SimpleNamespace(failure=None, doing="the batch", advice="Mend it"))
    return RunningQuery(start, writer, require_ownership).wait()


class Disturbed:
    """A query that fails as often as is said, when it is started or when it is waited for."""

    def __init__(self, spark: SparkSession, times: int, when_started: bool) -> None:
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        taken = jvm.org.apache.hadoop.fs.FileAlreadyExistsException("offsets/0")
        errors = jvm.org.apache.spark.sql.errors.QueryExecutionErrors
        self._error = errors.multiStreamingQueriesUsingPathConcurrentlyError("here", taken)
        self._times = times
        self._when_started = when_started
        self.starts = 0

    def start(self) -> StreamingQuery:
        self.starts += 1
        if self._when_started and self.starts <= self._times:
            raise Py4JJavaError("An error occurred", self._error)
        return cast(StreamingQuery, self)

    def awaitTermination(self, timeout: int) -> bool:
        if self.starts <= self._times:
            raise StreamingQueryException(f"[STREAM_FAILED] {self._error.getMessage()}")
        return True


@pytest.mark.parametrize("when_started", [True, False])
def test_the_owner_starts_anew(spark: SparkSession, when_started: bool) -> None:
    query = Disturbed(spark, times=RESTARTS, when_started=when_started)
    assert run(query.start)
    assert query.starts == RESTARTS + 1


@pytest.mark.parametrize("when_started", [True, False])
def test_but_not_for_ever(spark: SparkSession, when_started: bool) -> None:
    query = Disturbed(spark, times=RESTARTS + 1, when_started=when_started)
    with pytest.raises(CheckpointUnusable, match=r"the batch: another query.*CHECKPOINT_LOCATION"):
        run(query.start)
    assert query.starts == RESTARTS + 1


def test_restarts_are_counted_anew_for_another_batch(spark: SparkSession) -> None:
    query = Disturbed(spark, times=3 * RESTARTS, when_started=False)
    writer = SimpleNamespace(failure=None, doing="")

    def start() -> StreamingQuery:
        writer.doing = f"batch {query.starts // RESTARTS}"
        return query.start()

    assert RunningQuery(start, cast(BatchWriter, writer), lambda: None).wait()


@pytest.mark.parametrize("when_started", [True, False])
def test_an_overtaken_run_does_not(spark: SparkSession, when_started: bool) -> None:
    query = Disturbed(spark, times=1, when_started=when_started)

    def require_ownership() -> None:
        raise Fenced("overtaken")

    with pytest.raises(Fenced):
        run(query.start, require_ownership)
    assert query.starts == 1


def test_a_batch_that_another_run_has_planned(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "input").mkdir()
    for name in ("one", "two"):
        (tmp_path / "input" / name).write_text(f"{name}\n")
    logs = tmp_path / "checkpoint" / "offsets"
    stream = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "input"))
    started: list[StreamingQuery] = []
    seen: list[int] = []

    def write(rows: DataFrame, batch: int) -> None:
        seen.append(rows.count())
        if batch == 0:
            planned = (logs / "0").read_text().replace('{"logOffset":0}', '{"logOffset":1}')
            (logs / "1").write_text(planned)

    def start() -> StreamingQuery:
        writer = stream.writeStream.option("checkpointLocation", str(logs.parent))
        started.append(writer.trigger(availableNow=True).foreachBatch(write).start())
        return started[-1]

    assert run(start)
    assert len(started) == 2
    assert seen == [1, 1]


def test_another_error_is_told_and_ends_the_run(spark: SparkSession, tmp_path: Path) -> None:
    def fail(rows: DataFrame, batch: int) -> None:
        raise ValueError("foo")

    def start() -> StreamingQuery:
        (tmp_path / "input").mkdir(exist_ok=True)
        (tmp_path / "input" / "lines.txt").write_text("one\n")
        writer = spark.readStream.text(str(tmp_path / "input")).writeStream
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        return writer.foreachBatch(fail).start()

    with pytest.raises(OncelakeError, match="foo"):
        run(start)
