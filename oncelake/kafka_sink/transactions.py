"""A sink by Kafka's transactions: the rows of a slot and its receipt are committed together."""

from __future__ import annotations

from confluent_kafka import KafkaError, KafkaException
from pyspark.sql import DataFrame, Row

from oncelake.errors import CheckpointUnusable, KafkaUnreachable
from oncelake.kafka_sink import planlog, progress, slots, tail
from oncelake.kafka_sink.plan import Batch, Dealt, Plan, Receipt, Standing
from oncelake.kafka_sink.progress import Transactional
from oncelake.kafka_sink.send import FENCED, Order, send, send_nothing
from oncelake.kafka_sink.sink import KafkaSink, OnStep, Outgoing
from oncelake.kafka_sink.target import Target
from oncelake.kafka_sink.told import in_tasks, with_idle


class TransactionalSink(KafkaSink):
    def __init__(self, target: Target, on_step: OnStep = lambda when, step: None) -> None:
        super().__init__(target, on_step)
        self._planner: Transactional | None = None
        self._width = 0

    def _take_over(self) -> Standing:
        """Fence the former run by Kafka, and end what it has left open."""
        target = self._target
        self._widen(target.slots)
        try:
            self._planner = self._fenced("plan")
            text = self._last(progress.PLANS)
            plan = None if text is None else self._read(text)
            receipts = {slot: self._ended(slot) for slot in plan.slots} if plan else {}
        except KafkaException as error:
            raise KafkaUnreachable(
                f"Kafka did not let sink {target.name} take over {target.topic}: {error}. Check "
                "the address, and that the cluster has transactions and you may use them; for one "
                "without there is mode offsets"
            ) from error
        return Standing(plan, {slot: receipt for slot, receipt in receipts.items() if receipt})

    def _read(self, text: str) -> Plan:
        if planlog.is_entry(text):
            raise CheckpointUnusable(
                f"sink {self._target.name} into {self._target.topic} was run in mode offsets, and "
                "what that has sent is not known to transactions. Nothing was sent. Run it in that "
                "mode, or give it another name"
            )
        return Plan.from_text(text)

    def _plan(self, outgoing: Outgoing, batch: Batch) -> Plan:
        sequence = self._standing.sequence + 1
        if outgoing.parts is None:
            plan = Plan(sequence, batch, Dealt.BY_KEY, tuple(range(self._target.slots)))
        else:
            numbers = tuple(sorted(tp.partition for tp in outgoing.parts))
            plan = Plan(sequence, batch, Dealt.BY_SOURCE, numbers)
        # Before the plan: the next run looks for a receipt of every slot that it names.
        self._widen(max(plan.slots, default=0) + 1)
        return plan

    def _deliver(self, outgoing: Outgoing, plan: Plan) -> list[Row]:
        ready, numbers = self._dealt(outgoing, plan)
        self._widen(max(numbers, default=0) + 1)
        target = self._target
        order = Order(target.name, target.address, target.progress_topic, plan.sequence, numbers,
                      target.producing, target.timeout_ms, target.on_slot_step)  # fmt: skip
        found = in_tasks(ready, lambda _, rows: send(order, rows))
        return with_idle(found, plan.slots, lambda slot: send_nothing(order, slot))

    def _completed(self, plan: Plan) -> None:
        """The receipts tell."""

    def _dealt(self, outgoing: Outgoing, plan: Plan) -> tuple[DataFrame, tuple[int, ...]]:
        """The messages as the plan deals them, and the slot of each part."""
        messages = slots.hashed(outgoing.messages)
        if plan.dealt is Dealt.BY_KEY:
            return slots.dealt_by_key(messages, len(plan.slots)), plan.slots
        numbers = tuple(tp.partition for tp in outgoing.parts or ())
        if plan.dealt is not Dealt.BY_SOURCE or not set(plan.slots) <= set(numbers):
            read = ", ".join(map(str, plan.slots))
            how = f"with a slot for each partition that is {plan.dealt.value} ({read})"
            raise self._changed(plan, f"{how}, and the query now reads otherwise")
        return slots.as_read(messages), numbers

    def _widen(self, slots: int) -> None:
        """Each slot needs a partition of the progress topic."""
        if slots > self._width:
            progress.ensure(self._target.config, self._target.progress_topic, slots)
            self._width = slots

    def _fenced(self, slot: int | str) -> Transactional:
        target = self._target
        name = progress.transactional_id(target.name, slot)
        return Transactional(target.producing, name, target.timeout_ms)

    def _last(self, partition: int) -> str | None:
        return tail.last(self._target.config, self._target.progress_topic, partition)

    def _ended(self, slot: int) -> Receipt | None:
        """The slot's receipt, after whatever a dead run has left open there is aborted."""
        self._fenced(slot)
        text = self._last(progress.partition_of(slot))
        return None if text is None else Receipt.from_text(text)

    def _write_plan(self, plan: Plan) -> None:
        planner = self._planner
        assert planner is not None, "start() comes first"
        try:
            planner.begin()
            planner.note(self._target.progress_topic, progress.PLANS, plan.to_text())
            planner.commit()
        except KafkaException as error:
            raise self._refused(planner.cause(error)) from error

    def _refused(self, cause: KafkaError) -> Exception:
        if cause.code() in FENCED:
            return self._overtaken(f"Kafka says: {cause.str()}")
        return KafkaUnreachable(
            f"the plan of a batch could not be written to {self._target.progress_topic}: {cause}"
        )
