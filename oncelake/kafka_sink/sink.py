"""A sink into Kafka, on the driver: owns the plan, and has tasks send it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from pyspark.sql import DataFrame, Row

from oncelake import lake
from oncelake.errors import CheckpointUnusable, Fenced
from oncelake.kafka_sink import slots
from oncelake.kafka_sink.plan import Batch, Dealt, Plan, Receipt, Standing, Verdict, place
from oncelake.kafka_sink.target import Target
from oncelake.model import Ranges, Span, TopicPartition


class Step(Enum):
    """What a batch goes through; a crash between any two loses and doubles nothing."""

    FENCE = "fence"
    PLAN = "plan"
    SEND = "send"


OnStep = Callable[[str, Step], None]


@dataclass(frozen=True, slots=True)
class Sent:
    """What became of a batch: of all tasks together what each has told (see told.Tally). `busy` are
    the seconds of all tasks, `sending` those of them in which messages went out."""

    verdict: Verdict
    sequence: int
    rows: int = 0
    fresh: int = 0
    aside: int = 0
    superseded: int = 0
    busy: float = 0.0
    sending: float = 0.0

    @classmethod
    def of(cls, verdict: Verdict, plan: Plan, found: Sequence[Row]) -> Sent:
        rows, fresh, aside, superseded, busy, sending = (
            sum(row[name] for row in found)
            for name in ("rows", "fresh", "aside", "superseded", "seconds", "sending")
        )
        return cls(verdict, plan.sequence, rows, fresh, aside, superseded, busy, sending)

    def to_json(self) -> dict[str, Any]:
        return {
            "outcome": self.verdict.value,
            "sequence": self.sequence,
            "rows": self.rows,
            "fresh": self.fresh,
            "aside": self.aside,
            "superseded": self.superseded,
            "busy": round(self.busy, 3),
            "sending": round(self.sending, 3),
        }


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A batch's rows, how they become messages, and which partition of Kafka each task reads."""

    rows: DataFrame
    become: slots.Messages
    parts: tuple[TopicPartition, ...] | None

    @property
    def messages(self) -> DataFrame:
        return self.become(self.rows)

    def within(self, ranges: Ranges) -> Outgoing:
        return replace(self, rows=slots.within(self.rows, ranges))


class KafkaSink(ABC):
    """Exactly once into a topic. Raises Fenced as soon as a newer run has taken over."""

    def __init__(self, target: Target, on_step: OnStep = lambda when, step: None) -> None:
        self._target = target
        self._on_step = on_step
        self._standing = Standing()

    @abstractmethod
    def _take_over(self) -> Standing:
        """Shut the former run out, and see how far it came."""

    @abstractmethod
    def _plan(self, outgoing: Outgoing, batch: Batch) -> Plan:
        """How a batch that follows is to be dealt out."""

    @abstractmethod
    def _write_plan(self, plan: Plan) -> None:
        """Raises Fenced where a newer run has taken over."""

    @abstractmethod
    def _deliver(self, outgoing: Outgoing, plan: Plan) -> list[Row]:
        """Have tasks send what is missing of a plan; what each tells."""

    @abstractmethod
    def _completed(self, plan: Plan) -> None:
        """Every slot has sent its part: make it known, where that does not tell by itself."""

    def start(self) -> Standing:
        self._on_step("before", Step.FENCE)
        self._standing = self._take_over()
        self._on_step("after", Step.FENCE)
        return self._standing

    def begin_at(self, batch: Batch) -> None:
        """Where a sink begins that has sent nothing yet: written down, as a run that died after its
        first batch would guess otherwise."""
        plan = Plan(1, batch, Dealt.BY_KEY, ())
        self._write_plan(plan)
        self._standing = Standing(plan, {})

    @property
    def name(self) -> str:
        return self._target.name

    @property
    def standing(self) -> Standing:
        return self._standing

    def write(self, rows: DataFrame, become: slots.Messages, offered: Batch) -> Sent:
        """Send what is missing of a batch."""
        verdict = place(self._standing, offered)
        last = self._standing.last
        outgoing = Outgoing(rows, become, lake.parts(rows))
        if last is None or verdict is Verdict.NEXT:
            return self._send(outgoing, self._planned(outgoing, offered), verdict)
        if verdict is Verdict.SKIP:
            self.require_ownership()
            return Sent(verdict, last.sequence)
        if verdict is Verdict.AGAIN:
            return self._send(outgoing, last, verdict)
        return self._write_past(outgoing, last, offered)

    def require_ownership(self) -> None:
        """Raises Fenced where a newer run has taken over: the plan is said again."""
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
        plan = self._plan(outgoing, batch)
        self._on_step("before", Step.PLAN)
        self._write_plan(plan)
        self._standing = Standing(plan, self._standing.receipts)
        self._on_step("after", Step.PLAN)
        return plan

    def _send(self, outgoing: Outgoing, plan: Plan, verdict: Verdict) -> Sent:
        self._on_step("before", Step.SEND)
        found = self._deliver(outgoing, plan)
        self._on_step("after", Step.SEND)
        self._completed(plan)
        done = {row.slot: Receipt(plan.sequence, row.rows, 0) for row in found}
        self._standing = Standing(plan, {**(self._standing.receipts or {}), **done})
        return Sent.of(verdict, plan, found)

    def _changed(self, plan: Plan, how: str) -> CheckpointUnusable:
        return CheckpointUnusable(
            f"batch {plan.sequence} of sink {self._target.name} was begun {how}. Nothing more was "
            "sent. Run it once as it was, and change it then"
        )

    def _overtaken(self, says: str) -> Fenced:
        return Fenced(
            f"sink {self._target.name} into {self._target.topic} was taken over by a newer run; "
            f"{says}. Nothing of this batch was sent by this one. If the other is a stream of its "
            "own, give it another pipeline_name"
        )
