"""A sink for clusters without transactions: what has landed is told by where the topic ended.

1. Claim: the sink's log is one order for all runs (see planlog).
2. Plan: where each partition of the topic ends is written down before a batch is sent.
3. Send: a task for each partition compares what has landed since with the batch's first rows, which
   come in an order that is always the same, and sends the rest (see landed).
4. The batch is said to be done; only until then must nobody else write to the topic.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import Row, SparkSession

from oncelake import lake
from oncelake.errors import TerminalError
from oncelake.kafka_sink import progress, slots
from oncelake.kafka_sink.landed import Landing, land
from oncelake.kafka_sink.plan import Batch, Dealt, Plan, Receipt, Standing
from oncelake.kafka_sink.planlog import Overtaken, PlanLog
from oncelake.kafka_sink.sink import KafkaSink, OnStep, Outgoing
from oncelake.kafka_sink.target import Target
from oncelake.kafka_sink.told import in_tasks, with_idle


class OffsetSink(KafkaSink):
    def __init__(self, target: Target, on_step: OnStep = lambda when, step: None) -> None:
        super().__init__(target, on_step)
        self._log: PlanLog | None = None

    def _take_over(self) -> Standing:
        progress.ensure(self._target.config, self._target.progress_topic, slots=0)
        self._log = PlanLog(self._target.config, self._target.progress_topic)
        with self._heeded():
            said = self._log.claim()
        if said.plan is None or not said.done:
            return Standing(said.plan, {})
        return Standing(said.plan, {s: Receipt(said.plan.sequence, 0, 0) for s in said.plan.slots})

    def _plan(self, outgoing: Outgoing, batch: Batch) -> Plan:
        if "topic" in outgoing.messages.columns:
            raise TerminalError(
                "the stream has a column topic, but in mode offsets all rows go to "
                f"{self._target.topic}: leave the column out, or use transactions"
            )
        numbers = tuple(range(self._target.partitions))
        sequence = self._standing.sequence + 1
        return Plan(sequence, batch, Dealt.BY_TARGET, numbers, self._ends(numbers))

    def _ends(self, partitions: tuple[int, ...]) -> tuple[int, ...]:
        target = self._target
        config = {**progress.connection(target.config), **progress.READING_ALL}
        reader = Consumer({**config, "group.id": f"{target.name}.ends"})
        try:
            here = (TopicPartition(target.topic, partition) for partition in partitions)
            return tuple(progress.watermarks(reader, each)[1] for each in here)
        finally:
            reader.close()

    def _write_plan(self, plan: Plan) -> None:
        standing = self._standing
        self._say(plan, done=not plan.slots or (plan == standing.last and standing.complete))

    def _completed(self, plan: Plan) -> None:
        self._say(plan, done=True)

    def _say(self, plan: Plan, *, done: bool) -> None:
        assert self._log is not None, "start() comes first"
        with self._heeded():
            self._log.say(plan, done)

    @contextmanager
    def _heeded(self) -> Iterator[None]:
        try:
            yield
        except Overtaken as error:
            raise self._overtaken(f"its claim stands in {self._target.progress_topic}") from error

    def _deliver(self, outgoing: Outgoing, plan: Plan) -> list[Row]:
        target, messages = self._target, outgoing.messages
        if plan.dealt is not Dealt.BY_TARGET:
            raise self._changed(plan, "with transactions")
        spark = messages.sparkSession
        dealt = slots.dealt_by_target(messages, len(plan.slots), lake.kafka_hash(spark))
        landing = Landing(target.name, target.address, plan.sequence, plan.held, target.producing,
                          target.strict, target.on_slot_step)  # fmt: skip
        found = in_tasks(dealt, lambda task, rows: land(landing, task, rows))
        return with_idle(found, plan.slots, lambda slot: land(landing, slot, ()))


def require_no_copies(spark: SparkSession) -> None:
    """Two tasks that send the same rows at once cannot be told apart without transactions."""
    if spark.conf.get("spark.speculation", "false") == "true":
        raise TerminalError(
            "spark.speculation is on, and in mode offsets two copies of a task would send the same "
            "rows. Nothing was sent. Set spark.speculation to false, or use transactions"
        )
