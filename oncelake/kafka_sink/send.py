"""The slots of a batch, in a task of Spark: of each its rows and their receipt in a transaction.

1. Fence: `init_transactions` ends what a former producer of this slot has left open, for good.
2. Read the slot's last receipt. Is it of this plan, or of a later one, nothing is sent.
3. Send the rows in their order, then the receipt.
4. Commit; meanwhile the next slot of this task is begun.

A task that is fenced by another of the same slot, as when Spark runs a copy of a slow one, does not
fence back: it waits for the other's receipt.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from itertools import chain
from threading import Event
from typing import Any

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from confluent_kafka import KafkaError, KafkaException

from oncelake.errors import Fenced, TooLarge, Unaccounted
from oncelake.kafka_sink import progress, tail
from oncelake.kafka_sink.messages import Address, Messages
from oncelake.kafka_sink.parts import by_part
from oncelake.kafka_sink.plan import Plan, Receipt
from oncelake.kafka_sink.progress import Transactional
from oncelake.kafka_sink.told import Report, Rows, Tally

DIGEST = "_digest"
LOOK_AGAIN_SECONDS = 0.2
AHEAD_BYTES = 64 << 20
"""Of a slot's rows, how much is taken at most before its producer is ready."""
FENCED = (
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
)


class SlotStep(Enum):
    """What a slot goes through, as numbered above."""

    FENCE = "fence"
    READ = "read"
    SEND = "send"
    COMMIT = "commit"
    YIELD = "yield"
    """Fenced by another task of the same slot, which sends the rows."""


OnSlotStep = Callable[[str, SlotStep], None]


def no_step(when: str, step: SlotStep) -> None:
    del when, step


@dataclass(frozen=True, slots=True)
class Order:
    """What every task of a batch is told. `slots` names the slot of each part, by its number."""

    sink: str
    to: Address
    progress_topic: str
    sequence: int
    slots: tuple[int, ...]
    config: Mapping[str, str]
    timeout_ms: int
    on_step: OnSlotStep = no_step

    def transactional_id(self, slot: int) -> str:
        return progress.transactional_id(self.sink, slot)


def send(order: Order, rows: Rows) -> Rows:
    """The work of a task; yields a row for each of its slots that says what became of it."""
    with ThreadPoolExecutor(1) as beside:
        ending: Future[pa.RecordBatch] | None = None
        for part, its_rows in by_part(rows):
            report = Report(order.slots[part])
            commit = report.of(partial(_begin, order, report.slot, its_rows, report.tally))
            if ending is not None:
                yield ending.result()
            ending = beside.submit(_end, report, commit)
            if report.failed:
                break
        if ending is not None:
            yield ending.result()


def send_nothing(order: Order, slot: int) -> Rows:
    """The work of a slot whose part of the batch has no rows."""
    report = Report(slot)
    yield _end(report, report.of(partial(_begin, order, slot, (), report.tally)))


Commit = Callable[[], None]


def _end(report: Report, commit: Commit | None) -> pa.RecordBatch:
    if commit is not None:
        report.of(commit)
    return report.row()


def _begin(order: Order, slot: int, rows: Rows, tally: Tally) -> Commit | None:
    """Send a slot's rows; what is left to do, unless they were sent before."""
    # To fence and to look up is to wait for Kafka: Spark may get the first rows ready meanwhile.
    with ThreadPoolExecutor(1) as beside:
        opening = beside.submit(_open, order, slot)
        rows = _begun(rows, until=opening)
        opened = opening.result()
    if opened is None:
        return None
    if opened.sent is not None and opened.sent.sequence >= order.sequence:
        _require_same(opened.sent, order, slot, rows, tally)
        return None
    transfer = _Transfer(opened.by, order, slot, tally)
    return transfer.commit if transfer.enqueue(rows) else None


@dataclass(frozen=True, slots=True)
class _Opened:
    """A producer that has fenced all others of its slot, and what they had sent last."""

    by: Transactional
    sent: Receipt | None


def _open(order: Order, slot: int) -> _Opened | None:
    """None for a zombie's task: to fence would only disturb the run that has taken over."""
    if _overtaken(order):
        return None
    order.on_step("before", SlotStep.FENCE)
    transactional = Transactional(order.config, order.transactional_id(slot), order.timeout_ms)
    order.on_step("after", SlotStep.FENCE)
    known = _receipt(order, slot)
    order.on_step("after", SlotStep.READ)
    return _Opened(transactional, known)


def _begun(rows: Rows, until: Future[Any]) -> Rows:
    """The same rows, some of them taken already: until then, or until they are many."""
    coming, taken, size = iter(rows), [], 0
    for batch in coming:
        taken.append(batch)
        size += batch.nbytes
        if until.done() or size > AHEAD_BYTES:
            break
    return chain(taken, coming)


def _overtaken(order: Order) -> bool:
    """Whether a later batch is planned: then this one was sent, whole."""
    text = tail.last(order.config, order.progress_topic, progress.PLANS)
    return text is not None and Plan.from_text(text).sequence > order.sequence


def _receipt(order: Order, slot: int) -> Receipt | None:
    text = tail.last(order.config, order.progress_topic, progress.partition_of(slot))
    return None if text is None else Receipt.from_text(text)


class _Transfer:
    """A slot's rows and their receipt, in one transaction. Its messages are given up with it."""

    def __init__(self, by: Transactional, order: Order, slot: int, tally: Tally) -> None:
        self._by, self._order, self._slot, self._tally = by, order, slot, tally
        self._messages = Messages(by.producer, order.to)

    def enqueue(self, rows: Rows) -> bool:
        """False where a copy of this task has overtaken it, and sent."""
        with ExitStack() as otherwise:
            otherwise.callback(self._messages.close)
            if self._stands(partial(self._enqueue, rows)):
                otherwise.pop_all()
                return True
        return False

    def commit(self) -> None:
        with closing(self._messages):
            self._order.on_step("before", SlotStep.COMMIT)
            began = time.perf_counter()
            if not self._stands(self._by.commit):
                return
            self._tally.fresh = self._tally.rows
            self._tally.sending += time.perf_counter() - began
        self._order.on_step("after", SlotStep.COMMIT)

    def _enqueue(self, rows: Rows) -> None:
        tally, order = self._tally, self._order
        self._by.begin()
        for batch in rows:
            _count(tally, batch)
            began = time.perf_counter()
            tally.aside += self._messages.send(batch.drop_columns([DIGEST]))
            tally.sending += time.perf_counter() - began
        receipt = Receipt(order.sequence, tally.rows, tally.digest)
        partition = progress.partition_of(self._slot)
        self._by.note(order.progress_topic, partition, receipt.to_text())

    def _stands(self, step: Callable[[], None]) -> bool:
        """Do a step of the transaction; False where it was overtaken."""
        try:
            step()
        except TooLarge:
            # Where that fails, the next producer of this slot does it: the row is what to tell.
            with suppress(KafkaException):
                self._by.producer.abort_transaction(progress.ANSWER_SECONDS)
            raise
        except KafkaException as error:
            cause = self._by.cause(error)
            if cause.code() not in FENCED:
                self._by.abort(error)
                raise
            self._order.on_step("before", SlotStep.YIELD)
            _await_other(self._order, self._slot, cause)
            return False
        return True


def _await_other(order: Order, slot: int, cause: KafkaError) -> None:
    """The other task of this slot has fenced us: it sends these rows, or Spark lets a third."""
    deadline = time.monotonic() + order.timeout_ms / 1000
    while time.monotonic() < deadline:
        known = _receipt(order, slot)
        if known is not None and known.sequence >= order.sequence:
            return
        Event().wait(LOOK_AGAIN_SECONDS)
    raise Fenced(
        f"slot {slot} of sink {order.sink} was fenced by another producer ({cause.str()}), which "
        f"did not send batch {order.sequence} within {order.timeout_ms / 1000:.0f} s. Another run "
        "of this sink may have taken over"
    )


def _require_same(known: Receipt, order: Order, slot: int, rows: Rows, tally: Tally) -> None:
    """What is left out must be what was sent: a query that gives other rows would lose some."""
    for batch in rows:
        _count(tally, batch)
    now = Receipt(order.sequence, tally.rows, tally.digest)
    if known.sequence == order.sequence and now != known:
        raise Unaccounted(
            f"slot {slot} of sink {order.sink} has sent {known.rows} rows of batch "
            f"{order.sequence} into {order.to.topic}, and the query now gives {tally.rows} rows, "
            "or others, for the same offsets: it is not deterministic. Nothing more was sent. Take "
            "what is random, or depends on the time of day, out of the query"
        )


def _count(tally: Tally, rows: pa.RecordBatch) -> None:
    tally.rows += rows.num_rows
    # Hashes are added up as 64-bit numbers are: past the greatest comes the least.
    hashes = rows.column(DIGEST).to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore"):
        tally.digest = int(np.int64(tally.digest) + hashes.sum(dtype=np.int64))
