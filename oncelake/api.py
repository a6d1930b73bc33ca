"""What a program of yours calls: `write` a stream, `audit` what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, overload

from pyspark.sql import DataFrame, SparkSession

from oncelake import outbound, pipeline
from oncelake.errors import TerminalError
from oncelake.kafka_sink.target import Sending
from oncelake.lake import answering
from oncelake.ops.audit import Names, Report
from oncelake.ops.audit import audit as ask_outside
from oncelake.query import RunningQuery
from oncelake.stream import Kafka, into_table, named_after, names_of, quarantine_of


@overload
def write(
    stream: DataFrame,
    table: str,
    *,
    kafka: Kafka,
    checkpoint: str,
    key: str | Sequence[str] = (),
    order: str | Sequence[str] = (),
    pipeline_name: str | None = None,
    partition_by: Sequence[str] = (),
    once: bool = False,
    trigger_seconds: float = 0.0,
) -> RunningQuery: ...


@overload
def write(
    stream: DataFrame,
    *,
    kafka: str,
    bootstrap: str,
    checkpoint: str,
    key: str | None = None,
    pipeline_name: str | None = None,
    once: bool = False,
    trigger_seconds: float = 0.0,
    options: Mapping[str, str] | None = None,
    transaction_timeout: float = 120.0,
    too_large: str = "stop",
    mode: str = "transactions",
    foreign: str = "stop",
) -> RunningQuery: ...


def write(
    stream: DataFrame,
    table: str | None = None,
    *,
    kafka: Kafka | str,
    checkpoint: str,
    once: bool = False,
    trigger_seconds: float = 0.0,
    **how: Any,
) -> RunningQuery:
    """Write a streaming DataFrame, each row exactly once: into an Iceberg table, or, where `kafka`
    is a topic's name, into that topic.

    Into a table: the stream must still have Kafka's `topic`, `partition` and `offset`; they are
    stored as `kafka_topic`, `kafka_partition` and `kafka_offset`, every other column under its own
    name. The table is created when missing. It begins where the table ends: a stream that starts
    later than that is refused as a gap, one that starts earlier has its replay left out.

    Without `key` every row is appended. With it, of rows of one key the greatest by `order`, then
    by Kafka's partition and offset, stays; the stream then has at most one row of a record, and of
    one topic. Rows without a key go to `<table>_quarantine`.

    Into a topic, from any stream that Spark can replay: the columns are those of Spark's own sink,
    `value` and, if you like, `key`, `headers`, `partition` and `topic`. `key` names the column that
    is the message's key; without a column `value` every row is sent as JSON. Readers with
    `isolation.level=read_committed` see each row once. `options` are librdkafka settings. A row
    larger than the topic takes stops the stream, or goes to `<topic>.quarantine` with
    `too_large="quarantine"`. For a cluster without transactions there is `mode="offsets"`, which
    sends of each key the newest row of a batch, and wants nobody else to write to the topic
    meanwhile (docs/to-kafka.md).
    """
    running = pipeline.Running(checkpoint, trigger_seconds, once)
    if isinstance(kafka, str):
        return _into_topic(stream, kafka, running, **how)
    if table is None:
        raise TerminalError("say into which table, or give kafka the name of a topic to send to")
    return into_table(stream, table, kafka, running, **how)


def audit(spark: SparkSession, table: str, *, kafka: Kafka, key: str | Sequence[str] = (),
          pipeline_name: str | None = None) -> Report:  # fmt: skip
    """Whether a table that `write` fills, as it was told there, holds each record exactly once.

    What `oncelake audit` prints, as a value: `report.verdict` is clean, explained or violated.
    """
    sides = {"quarantined": quarantine_of(table)} if key else {}
    names = Names(table, pipeline_name or named_after(table), sides, names_of(key))
    with answering(table):
        return ask_outside(spark, names, kafka.config)


def _into_topic(  # noqa: PLR0913 (most by keyword)
    stream: DataFrame,
    topic: str,
    running: pipeline.Running,
    *,
    bootstrap: str,
    key: str | None = None,
    pipeline_name: str | None = None,
    options: Mapping[str, str] | None = None,
    transaction_timeout: float = 120.0,
    too_large: str = "stop",
    mode: str = "transactions",
    foreign: str = "stop",
) -> RunningQuery:
    sending = Sending(topic, bootstrap, key, pipeline_name, options, transaction_timeout, too_large,
                      mode, foreign)  # fmt: skip
    return outbound.write(stream, sending, running)
