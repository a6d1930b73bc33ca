"""The two ways into Kafka, by their names."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import SparkSession

from oncelake.kafka_sink.offsets import OffsetSink, require_no_copies
from oncelake.kafka_sink.send import OnSlotStep, no_step
from oncelake.kafka_sink.sink import KafkaSink, OnStep
from oncelake.kafka_sink.slots import slots_of
from oncelake.kafka_sink.target import OFFSETS, Sending
from oncelake.kafka_sink.transactions import TransactionalSink


def open_sink(spark: SparkSession, sending: Sending, on_step: OnStep,
              on_slot_step: OnSlotStep = no_step) -> KafkaSink:  # fmt: skip
    """The sink that is asked for; nothing is taken over yet."""
    if sending.mode == OFFSETS:
        require_no_copies(spark)
    target = replace(sending.target(slots_of(spark)), on_slot_step=on_slot_step)
    return (OffsetSink if sending.mode == OFFSETS else TransactionalSink)(target, on_step)
