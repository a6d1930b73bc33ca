"""Who owns a sink and what it has planned, without transactions: by the order of one log.

All that the runs of a sink say stands in the first partition of its progress topic, in one order
for everybody. A run *claims* the sink by an entry; what any other says counts only up to that. So a
run that was overtaken while it slept may still write, but nobody heeds it, and it finds the claim
before its own entry when it reads on to that.

The topic is compacted, and each entry has a key of its own. An entry is removed only by the owner,
once one of its own that takes its place is in the log: what nobody heeds can never push out what
counts.
"""

from __future__ import annotations

import itertools
import json
import uuid
from dataclasses import dataclass

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)

from oncelake.errors import CheckpointUnusable, KafkaUnreachable
from oncelake.kafka_sink.plan import Plan
from oncelake.kafka_sink.progress import ANSWER_SECONDS, PLANS, READING_ALL, Config, connection
from oncelake.model import compact


@dataclass(frozen=True, slots=True)
class Entry:
    """What a run says; a claim has no plan. `done`: all of the plan was sent."""

    run: str
    plan: Plan | None = None
    done: bool = False

    def to_text(self) -> str:
        plan = {} if self.plan is None else self.plan.to_json()
        return compact({"run": self.run, "done": self.done, **plan})

    @classmethod
    def from_text(cls, text: str) -> Entry:
        data = json.loads(text)
        plan = Plan.from_json(data) if "sequence" in data else None
        return cls(data["run"], plan, data["done"])


def is_entry(text: str) -> bool:
    """Not a plan of a sink with transactions, which stands in the same place."""
    return "run" in json.loads(text)


@dataclass(frozen=True, slots=True)
class Said:
    """What counts of a log so far."""

    owner: str | None = None
    plan: Plan | None = None
    done: bool = True

    def then(self, entry: Entry) -> Said:
        if entry.plan is None:
            return Said(entry.run, self.plan, self.done)
        if entry.run != self.owner:
            return self
        return Said(entry.run, entry.plan, entry.done)


class Overtaken(Exception):
    """A newer run has claimed the sink: what this one says no longer counts."""


class PlanLog:
    """The log of one sink, as one run reads and writes it."""

    def __init__(self, config: Config, topic: str) -> None:
        self._topic = topic
        self._run = uuid.uuid4().hex
        self._numbers = itertools.count()
        own = {**connection(config), "log_level": "0"}
        # Without an end: what could not be sent yet must come before what is said later.
        self._producer = Producer(
            {**own, "acks": "all", "enable.idempotence": "true", "message.timeout.ms": "0"}
        )
        self._reader = Consumer({**own, **READING_ALL, "group.id": f"{topic}.reader"})
        self._reader.assign([TopicPartition(topic, PLANS, OFFSET_BEGINNING)])
        self._said = Said()
        self._claim = ""
        self._live: set[str] = set()

    def claim(self) -> Said:
        """Own the sink; what was said of it before."""
        self._claim = self._append(Entry(self._run))
        if self._said.plan is not None:
            self.say(self._said.plan, self._said.done)
        return self._said

    def say(self, plan: Plan, done: bool) -> None:
        """In force when this returns; raises Overtaken where a newer run has claimed the sink."""
        key = self._append(Entry(self._run, plan, done))
        if self._said.owner != self._run:
            raise Overtaken
        for replaced in self._live - {self._claim, key}:
            self._producer.produce(self._topic, key=replaced, value=None, partition=PLANS)
            self._live.discard(replaced)

    def _append(self, entry: Entry) -> str:
        """Write an entry and read on to it; its key."""
        key, landed = f"{self._run}.{next(self._numbers)}", []

        def note(error: KafkaError | None, message: Message) -> None:
            landed.append(error or message.offset())

        self._producer.produce(
            self._topic, key=key, value=entry.to_text(), partition=PLANS, on_delivery=note
        )
        self._producer.flush(ANSWER_SECONDS)
        if not landed or isinstance(landed[0], KafkaError):
            raise KafkaUnreachable(
                f"what the sink plans could not be written to {self._topic}: "
                f"{landed[0] if landed else f'no answer within {ANSWER_SECONDS:.0f} s'}"
            )
        self._read_on(landed[0])
        return key

    def _read_on(self, to: int | None) -> None:
        trouble: KafkaError | None = None
        while True:
            message = self._reader.poll(ANSWER_SECONDS)
            if message is None:
                raise KafkaUnreachable(
                    f"{self._topic} did not give what was written to it within "
                    f"{ANSWER_SECONDS:.0f} s: {trouble or 'no answer'}"
                )
            if (error := message.error()) is not None:
                # Of a broker that was away, perhaps long ago: if it still is, nothing will come.
                trouble = error
                continue
            self._take(message)
            if message.offset() == to:
                return

    def _take(self, message: Message) -> None:
        key, value = (message.key() or b"").decode(), message.value()
        if value is None:
            self._live.discard(key)
            return
        try:
            entry = Entry.from_text(value.decode())
        except (ValueError, KeyError, TypeError) as other:
            raise CheckpointUnusable(
                f"offset {message.offset()} of {self._topic} is no entry of a sink in mode "
                "offsets: the sink was run with transactions under this name. Nothing was sent. "
                "Run it in that mode, or give it another name"
            ) from other
        self._live.add(key)
        self._said = self._said.then(entry)
