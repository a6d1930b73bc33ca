"""A stream into Kafka: what `oncelake.write(stream, kafka="topic")` starts."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame

from oncelake import events, lake, pipeline, source
from oncelake.batch import BatchWriter
from oncelake.checkpoint import prepare
from oncelake.errors import TerminalError
from oncelake.events import Tell
from oncelake.kafka_sink.offered import offered
from oncelake.kafka_sink.send import OnSlotStep, no_step
from oncelake.kafka_sink.sink import KafkaSink, OnStep
from oncelake.kafka_sink.slots import Messages, messages
from oncelake.kafka_sink.target import Target, ensure_quarantine, most_bytes
from oncelake.query import RunningQuery

STOP, QUARANTINE = "stop", "quarantine"


@dataclass(frozen=True, slots=True)
class Sending:
    """Where to and how. `options` are librdkafka settings, of the producers too."""

    topic: str
    bootstrap: str
    key: str | None = None
    name: str | None = None
    options: Mapping[str, str] | None = None
    transaction_timeout: float = 120.0
    too_large: str = STOP

    @property
    def config(self) -> dict[str, str]:
        return {"bootstrap.servers": self.bootstrap, **(self.options or {})}

    def target(self, slots: int) -> Target:
        """As the topic is: asks Kafka, and makes the quarantine where one is wanted."""
        partitions = len(source.describe(self.config, [self.topic]).partitions)
        aside = None
        if self.too_large == QUARANTINE:
            aside = f"{self.topic}.quarantine"
            ensure_quarantine(self.config, aside, partitions)
        elif self.too_large != STOP:
            raise TerminalError(f"too_large is {STOP!r} or {QUARANTINE!r}, not {self.too_large!r}")
        largest = most_bytes(self.config, self.topic)
        timeout_ms = round(self.transaction_timeout * 1000)
        name = self.name or self.topic
        return Target(name, self.topic, self.config, slots, largest, aside, timeout_ms)


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
    slots = max(2, spark.sparkContext.defaultParallelism)
    target = replace(sending.target(slots), on_slot_step=steps.slot)
    prepare(running.checkpoint)
    sink = KafkaSink(target, steps.driver)
    standing = sink.start()
    running.tell(events.took_over(target.name, target.topic, standing.sequence))
    files = lake.Folder(spark, running.checkpoint)
    writer = KafkaWriter(sink, become, files, running.tell)
    return pipeline.query(stream, writer, running, sink.require_ownership)
