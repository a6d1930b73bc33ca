"""A stream into Kafka: what `oncelake.write(stream, kafka="topic")` starts."""

from __future__ import annotations

import time
from dataclasses import dataclass

from pyspark.sql import DataFrame

from oncelake import events, lake, pipeline
from oncelake.batch import BatchWriter
from oncelake.checkpoint import prepare
from oncelake.events import Tell
from oncelake.kafka_sink.modes import open_sink
from oncelake.kafka_sink.offered import offered
from oncelake.kafka_sink.send import OnSlotStep, no_step
from oncelake.kafka_sink.sink import KafkaSink, OnStep
from oncelake.kafka_sink.slots import Messages, messages
from oncelake.kafka_sink.target import Sending
from oncelake.query import RunningQuery


@dataclass(frozen=True, slots=True)
class Steps:
    """Who is told of each step: of the driver's, and of those that a slot goes through."""

    driver: OnStep = lambda when, step: None
    slot: OnSlotStep = no_step


NO_STEPS = Steps()


class KafkaWriter(BatchWriter):
    """Batches into a topic, each row once."""

    def __init__(self, sink: KafkaSink, become: Messages, files: lake.Folder, tell: Tell) -> None:
        super().__init__()
        self._sink = sink
        self._become = become
        self._files = files
        self._tell = tell

    @property
    def advice(self) -> str:
        return "Mend the cause and run again: the sink's progress topic knows where to go on"

    def _write(self, rows: DataFrame, batch_id: int) -> None:
        began = time.monotonic()
        self.doing = f"batch {batch_id}"
        batch = offered(self._files, batch_id)
        self.doing = f"batch {batch_id} ({batch.in_words()})"
        sent = self._sink.write(rows, self._become, batch)
        self._tell(events.sent(batch_id, sent.to_json(), time.monotonic() - began))


def write(stream: DataFrame, sending: Sending, running: pipeline.Running,
          steps: Steps = NO_STEPS) -> RunningQuery:  # fmt: skip
    """Fence the former run and begin to send."""
    spark = stream.sparkSession
    become = messages(stream, sending.key)
    sink = open_sink(spark, sending, steps.driver, steps.slot)
    prepare(running.checkpoint)
    standing = sink.start()
    running.tell(events.took_over(sink.name, sending.topic, standing.sequence))
    files = lake.Folder(spark, running.checkpoint)
    writer = KafkaWriter(sink, become, files, running.tell)
    return pipeline.query(stream, writer, running, sink.require_ownership)
