"""A sink into Kafka, on the driver: owns the plan, and has tasks send it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]
from confluent_kafka import KafkaError, KafkaException
from pyspark import TaskContext
from pyspark.sql import DataFrame

from oncelake import lake
from oncelake.errors import CheckpointUnusable, Fenced, KafkaUnreachable, TooLarge, Unaccounted
from oncelake.kafka_sink import progress, slots
from oncelake.kafka_sink.plan import Batch, Dealt, Plan, Receipt, Standing, Verdict, place
from oncelake.kafka_sink.progress import Transactional
from oncelake.kafka_sink.send import FENCED, Order, send
from oncelake.kafka_sink.target import Target
from oncelake.model import Ranges, Span, TopicPartition

RESULT = (
    "slot int, rows long, aside long, sent boolean, seconds double, sending double, fault string, "
    "problem string"
)
FAULTS = {each.__name__: each for each in (TooLarge, Unaccounted)}


class Step(Enum):
    """What a batch goes through; a crash between any two loses and doubles nothing."""

    FENCE = "fence"
    PLAN = "plan"
    SEND = "send"


OnStep = Callable[[str, Step], None]


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a batch: `fresh` rows were sent by this run, the others before it; of the
    fresh ones those `aside` are too large and went to the quarantine. `busy` are the seconds of
    all tasks together, `sending` those of them in which messages went out."""

    verdict: Verdict
    sequence: int
    rows: int = 0
    fresh: int = 0
    aside: int = 0
    busy: float = 0.0
    sending: float = 0.0

    def to_json(self) -> dict[str, Any]:
        return {
            "outcome": self.verdict.value,
            "sequence": self.sequence,
            "rows": self.rows,
            "fresh": self.fresh,
            "aside": self.aside,
            "busy": round(self.busy, 3),
            "sending": round(self.sending, 3),
        }


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A batch's rows, how they become messages, and which partition of Kafka each task reads."""

    rows: DataFrame
    messages: slots.Messages
    parts: tuple[TopicPartition, ...] | None

    def within(self, ranges: Ranges) -> Outgoing:
        return replace(self, rows=slots.within(self.rows, ranges))

    def dealt(self, plan: Plan) -> tuple[DataFrame, tuple[int, ...]]:
        """The messages as the plan deals them, and the slot of each task."""
        ready = slots.hashed(self.messages(self.rows))
        if plan.dealt is Dealt.BY_KEY:
            return slots.dealt_by_key(ready, len(plan.slots)), plan.slots
        numbers = tuple(tp.partition for tp in self.parts or ())
        if not set(plan.slots) <= set(numbers):
            raise CheckpointUnusable(
                f"batch {plan.sequence} of the sink was begun with a slot for each partition that "
                f"is read ({', '.join(map(str, plan.slots))}), and the query now reads otherwise. "
                "Nothing more was sent. Run it once as it was, and change it then"
            )
        return ready, numbers


class KafkaSink:
    """Exactly once into a topic. Raises Fenced as soon as a newer run has taken over."""

    def __init__(self, target: Target, on_step: OnStep = lambda when, step: None) -> None:
        self._target = target
        self._on_step = on_step
        self._planner: Transactional | None = None
        self._width = 0
        self._standing = Standing()

    def start(self) -> Standing:
        """Fence the former run, end what it has left open, and see how far it came."""
        target = self._target
        self._widen(target.slots)
        self._on_step("before", Step.FENCE)
        try:
            self._planner = self._fenced("plan")
            text = self._last(progress.PLANS)
            plan = None if text is None else Plan.from_text(text)
            receipts = {slot: self._ended(slot) for slot in plan.slots} if plan else {}
        except KafkaException as error:
            raise KafkaUnreachable(
                f"Kafka did not let sink {target.name} take over {target.topic}: {error}. Check "
                "the address, and that the cluster has transactions and you may use them"
            ) from error
        known = {slot: receipt for slot, receipt in receipts.items() if receipt}
        self._standing = Standing(plan, known)
        self._on_step("after", Step.FENCE)
        return self._standing

    def begin_at(self, batch: Batch) -> None:
        """Where a sink begins that has sent nothing yet: written down, as a run that died after its
        first batch would guess otherwise."""
        plan = Plan(1, batch, Dealt.BY_KEY, ())
        self._write_plan(plan)
        self._standing = Standing(plan, {})

    @property
    def standing(self) -> Standing:
        return self._standing

    def write(self, rows: DataFrame, messages: slots.Messages, offered: Batch) -> Sent:
        """Send what is missing of a batch."""
        verdict = place(self._standing, offered)
        last = self._standing.last
        outgoing = Outgoing(rows, messages, lake.parts(rows))
        if last is None or verdict is Verdict.NEXT:
            return self._send(outgoing, self._planned(outgoing, offered), verdict)
        if verdict is Verdict.SKIP:
            self.require_ownership()
            return Sent(verdict, last.sequence)
        if verdict is Verdict.AGAIN:
            return self._send(outgoing, last, verdict)
        return self._write_past(outgoing, last, offered)

    def require_ownership(self) -> None:
        """Raises Fenced where a newer run has taken over: Kafka refuses the plan, said again."""
        if self._standing.last is not None:
            self._write_plan(self._standing.last)

    def _write_past(self, outgoing: Outgoing, last: Plan, offered: Batch) -> Sent:
        """Of a batch that holds what was sent, and more: first what is missing, then the rest."""
        sent, due = last.batch.ranges, offered.ranges
        assert sent is not None
        assert due is not None
        if not self._standing.complete:
            self._send(outgoing.within(sent), last, Verdict.AGAIN)
        rest: Ranges = {
            tp: Span(max(span.start, sent[tp].end if tp in sent else 0), span.end)
            for tp, span in due.items()
        }
        beyond = replace(offered, begins=last.batch.ends)
        kept = outgoing.within(rest)
        return self._send(kept, self._planned(kept, beyond), Verdict.PAST)

    def _planned(self, outgoing: Outgoing, batch: Batch) -> Plan:
        """A plan for what follows, written down before anything of it is sent."""
        target, sequence = self._target, self._standing.sequence + 1
        if outgoing.parts is None:
            plan = Plan(sequence, batch, Dealt.BY_KEY, tuple(range(target.slots)))
        else:
            numbers = tuple(sorted(tp.partition for tp in outgoing.parts))
            plan = Plan(sequence, batch, Dealt.BY_SOURCE, numbers)
        # Before the plan: the next run looks for a receipt of every slot that it names.
        self._widen(max(plan.slots, default=0) + 1)
        self._on_step("before", Step.PLAN)
        self._write_plan(plan)
        self._standing = Standing(plan, self._standing.receipts)
        self._on_step("after", Step.PLAN)
        return plan

    def _send(self, outgoing: Outgoing, plan: Plan, verdict: Verdict) -> Sent:
        ready, numbers = outgoing.dealt(plan)
        self._widen(max(numbers, default=0) + 1)
        order = self._order(plan, numbers)
        self._on_step("before", Step.SEND)
        found = ready.mapInArrow(_task(order), RESULT).collect()
        self._on_step("after", Step.SEND)
        for row in found:
            if row.fault:
                raise FAULTS[row.fault](row.problem)
        done = {row.slot: Receipt(plan.sequence, row.rows, 0) for row in found}
        self._standing = Standing(plan, {**(self._standing.receipts or {}), **done})
        return Sent(
            verdict,
            plan.sequence,
            rows=sum(row.rows for row in found),
            fresh=sum(row.rows for row in found if row.sent),
            aside=sum(row.aside for row in found),
            busy=sum(row.seconds for row in found),
            sending=sum(row.sending for row in found),
        )

    def _widen(self, slots: int) -> None:
        """Each slot needs a partition of the progress topic."""
        if slots > self._width:
            progress.ensure(self._target.config, self._target.progress_topic, slots)
            self._width = slots

    def _order(self, plan: Plan, numbers: tuple[int, ...]) -> Order:
        target = self._target
        return Order(target.name, target.address, target.progress_topic, plan.sequence, numbers,
                     target.producing, target.timeout_ms, target.on_slot_step)  # fmt: skip

    def _fenced(self, slot: int | str) -> Transactional:
        target = self._target
        name = progress.transactional_id(target.name, slot)
        return Transactional(target.producing, name, target.timeout_ms)

    def _last(self, partition: int) -> str | None:
        return progress.last(self._target.config, self._target.progress_topic, partition)

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
            raise self._taken_over(planner.cause(error)) from error

    def _taken_over(self, cause: KafkaError) -> Exception:
        if cause.code() in FENCED:
            return Fenced(
                f"sink {self._target.name} into {self._target.topic} was taken over by a newer "
                f"run; Kafka says: {cause.str()}. Nothing of this batch was sent by this one. If "
                "the other is a stream of its own, give it another pipeline_name"
            )
        return KafkaUnreachable(
            f"the plan of a batch could not be written to {self._target.progress_topic}: {cause}"
        )


def _task(order: Order) -> Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]:
    def task(rows: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        return send(order, context.partitionId(), rows)

    return task
