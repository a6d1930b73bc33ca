"""A pipeline's good rows into Kafka besides its table: the same batches, progress of their own.

The table decides first. A run that dies in between has the next one send what the table holds
already: Spark offers that batch again or, where the checkpoint is lost, the stream goes on from
whichever of table and sinks is furthest behind. Each leaves out what it has.

What is sent is every record that was decoded, passed the transform and fits the rules. Late ones
too: whether a record is late depends on what was read before it, and a batch that is sent again
must give the same rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from oncelake import events, lake, source
from oncelake.decode import REASON, RECORD
from oncelake.errors import Gap
from oncelake.events import Tell
from oncelake.kafka_sink.modes import open_sink
from oncelake.kafka_sink.plan import Batch
from oncelake.kafka_sink.slots import JSON
from oncelake.kafka_sink.target import Sending
from oncelake.model import (
    Epochs,
    Progress,
    Ranges,
    Span,
    TopicPartition,
    epoch_number,
    kafka_name,
    non_empty,
    show_ranges,
)
from oncelake.reading import Reading
from oncelake.spec import KafkaSinkSpec, PipelineSpec

OnStep = Callable[[str, Any], None]


class Forward:
    """One sink of a pipeline."""

    def __init__(self, spark: SparkSession, spec: PipelineSpec, given: KafkaSinkSpec,
                 reading: Reading, on_step: OnStep) -> None:  # fmt: skip
        self._spark = spark
        self._spec = spec
        self._given = given
        self._reading = reading
        self._sink = open_sink(spark, _sending(spec, given), on_step)
        self._epochs = Epochs()

    def start(self, progress: Progress, held: Ranges, tell: Tell) -> Ranges:
        """Take over, and complete what a former run has begun. Gives the table's positions, or
        this sink's where it is behind. `held` is what Kafka holds."""
        standing = self._sink.start()
        self._epochs = progress.origin.epochs
        if standing.last is None:
            here = source.offsets_as_json({tp: s.end for tp, s in progress.positions.items()})
            self._sink.begin_at(Batch(self._spec.name, -1, (here,), (here,)))
        elif not standing.complete:
            self._complete(standing.last.batch, tell)
        tell(events.took_over(self._given.name, self._given.topic, self._sink.standing.sequence))
        reached = self._reached(progress.positions)
        self._refuse_gone(reached, held)
        self._refuse_unsent_epochs(progress.positions)
        return reached

    def write(self, rows: DataFrame, ranges: Ranges, number: int, tell: Tell) -> None:
        """A batch that the table holds."""
        due = non_empty(self._epochs.in_kafka(ranges))
        if lake.planned(rows) != due:
            rows = self._read(due)
        begins = source.offsets_as_json({tp: span.start for tp, span in ranges.items()})
        ends = source.offsets_as_json({tp: span.end for tp, span in ranges.items()})
        self._send(rows, Batch(self._spec.name, number, (begins,), (ends,)), tell)

    def _complete(self, batch: Batch, tell: Tell) -> None:
        """Of just the offsets that were planned, however Spark would batch them now."""
        planned = non_empty(batch.ranges or {})
        there = self._epochs.in_kafka(planned)
        if len(there) != len(planned):
            raise Gap(
                f"sink {self._given.name} had begun to send {show_ranges(planned)} into "
                f"{self._given.topic}, and the topic they are from was made anew since: what is "
                "missing of them cannot be read. Nothing was sent. To go on without them, give the "
                "sink another name"
            )
        self._send(self._read(there), batch, tell)

    def _send(self, rows: DataFrame, batch: Batch, tell: Tell) -> None:
        began = time.monotonic()
        sent = self._sink.write(self._good(rows), _as_they_are, batch)
        facts = {"topic": self._given.topic, **sent.to_json()}
        tell(events.sent(batch.number, facts, time.monotonic() - began))

    def _good(self, rows: DataFrame) -> DataFrame:
        """Messages of the records that are good, and where each was read."""
        key, column = F.col("key"), self._given.key_column
        if column:
            # A tombstone has no columns: it is known by the key that it had.
            own = F.col(RECORD)[column].cast("string").cast("binary")
            key = F.when(F.isnull(RECORD), key).otherwise(own)
        judged = self._reading.due(rows, watermark=None).rows()
        return judged.filter(F.isnull(REASON)).select(
            key.alias("key"),
            F.to_json(RECORD, JSON).cast("binary").alias("value"),
            F.col("partition").alias("kafka_partition"),
            F.col("offset").alias("kafka_offset"),
        )

    def _read(self, ranges: Ranges) -> DataFrame:
        return source.read_ranges(self._spark, self._spec.source, self._spec.limits, ranges)

    def _refuse_gone(self, reached: Ranges, held: Ranges) -> None:
        """What the table holds and this sink has not sent must still be in Kafka."""
        due = self._epochs.in_kafka(reached)
        gone = {tp: Span(span.end, held[tp].start) for tp, span in due.items()
                if tp in held and span.end < held[tp].start}  # fmt: skip
        if gone:
            raise Gap(
                f"sink {self._given.name} has yet to send into {self._given.topic} what Kafka no "
                f"longer holds: {show_ranges(gone)}. Nothing was sent. To go on without them, give "
                "the sink another name in the spec: it then begins where the table stands"
            )

    def _refuse_unsent_epochs(self, positions: Ranges) -> None:
        """What the table holds of a topic that was made anew must have been sent before that."""
        last = self._sink.standing.last
        if last and (gone := unsent_epochs(last.batch.ranges or {}, positions, self._epochs)):
            raise Gap(
                f"sink {self._given.name} has yet to send into {self._given.topic} what the table "
                f"holds of a topic that was made anew since: {show_ranges(gone)}. Kafka no longer "
                "has it, and nothing was sent. To go on without it, give the sink another name in "
                "the spec: it then begins where the table stands"
            )

    def _reached(self, positions: Ranges) -> dict[TopicPartition, Span]:
        last = self._sink.standing.last
        sent = (last.batch.ranges or {}) if last else {}
        return {
            tp: Span(span.start, min(span.end, sent[tp].end if tp in sent else span.start))
            for tp, span in positions.items()
        }


def unsent_epochs(sent: Ranges, positions: Ranges, epochs: Epochs) -> Ranges:
    """Of topics that were made anew, what was not sent of the former ones. A plan names one epoch,
    or all of them: of those before the one that it names, all was sent when it was made."""
    newest: dict[str, int] = {}
    for topic, _ in sent:
        name = kafka_name(topic)
        newest[name] = max(newest.get(name, 0), epoch_number(topic))
    former = {tp: span for tp, span in positions.items() if not epochs.is_newest(tp.topic)
              and epoch_number(tp.topic) >= newest.get(kafka_name(tp.topic), 0)}  # fmt: skip
    left = {tp: Span(max(span.start, sent[tp].end if tp in sent else 0), span.end)
            for tp, span in former.items()}  # fmt: skip
    return non_empty(left)


def _as_they_are(rows: DataFrame) -> DataFrame:
    return rows


def _sending(spec: PipelineSpec, given: KafkaSinkSpec) -> Sending:
    """With what it takes to reach the source's cluster, where it is the same."""
    same = given.bootstrap == spec.source.bootstrap
    options = {**(source.client_config(spec.source) if same else {}), **given.options}
    options.pop("bootstrap.servers", None)
    return Sending(given.topic, given.bootstrap, None, given.name, options,
                   given.transaction_timeout_seconds, given.too_large, given.mode,
                   given.foreign)  # fmt: skip
