"""One slot of a batch, in a task of Spark: rows and their receipt in one transaction.

1. Fence: `init_transactions` ends what a former producer of this slot has left open, for good.
2. Read the slot's last receipt. Is it of this plan, or of a later one, nothing is sent.
3. Send the rows in their order, then the receipt.
4. Commit.

A task that is fenced by another of the same slot, as when Spark runs a copy of a slow one, does not
fence back: it waits for the other's receipt.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from threading import Event

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]
from confluent_kafka import KafkaError, KafkaException

from oncelake.errors import Fenced, TerminalError, TooLarge, Unaccounted
from oncelake.kafka_sink import progress
from oncelake.kafka_sink.messages import Address, Messages
from oncelake.kafka_sink.plan import Plan, Receipt
from oncelake.kafka_sink.progress import Transactional

DIGEST = "_digest"
LOOK_AGAIN_SECONDS = 0.2
FENCED = (
    KafkaError._FENCED,
    KafkaError.PRODUCER_FENCED,
    KafkaError.INVALID_PRODUCER_EPOCH,
)
RESULT = pa.schema([("slot", pa.int32()), ("rows", pa.int64()), ("aside", pa.int64()),
                    ("sent", pa.bool_()), ("seconds", pa.float64()), ("sending", pa.float64()),
                    ("fault", pa.string()), ("problem", pa.string())])  # fmt: skip


class SlotStep(Enum):
    """What a slot goes through, as numbered above."""

    FENCE = "fence"
    READ = "read"
    SEND = "send"
    COMMIT = "commit"


OnSlotStep = Callable[[str, SlotStep], None]


def no_step(when: str, step: SlotStep) -> None:
    del when, step


@dataclass(frozen=True, slots=True)
class Order:
    """What every task of a batch is told. `slots` names the slot of each task, by its number."""

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


@dataclass(slots=True)
class Tally:
    """What a slot's rows come to."""

    rows: int = 0
    aside: int = 0
    digest: int = 0
    sending: float = 0.0

    def add(self, rows: pa.RecordBatch) -> None:
        self.rows += rows.num_rows
        # Hashes are added up as 64-bit numbers are: past the greatest comes the least.
        hashes = rows.column(DIGEST).to_numpy(zero_copy_only=False)
        with np.errstate(over="ignore"):
            self.digest = int(np.int64(self.digest) + hashes.sum(dtype=np.int64))

    def receipt(self, sequence: int) -> Receipt:
        return Receipt(sequence, self.rows, self.digest)


def send(order: Order, task: int, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The work of a task; yields one row that says what became of it."""
    began, slot = time.perf_counter(), order.slots[task]
    tally = Tally()
    fresh, fault = False, None
    try:
        fresh = _sent(order, slot, rows, tally)
    except TerminalError as error:
        # Told to the driver: to try the task again would not mend it.
        fault = error
    seconds = time.perf_counter() - began
    told = (None, None) if fault is None else (type(fault).__name__, str(fault))
    row = (slot, tally.rows, tally.aside, fresh, seconds, tally.sending, *told)
    yield pa.RecordBatch.from_pylist([dict(zip(RESULT.names, row, strict=True))], schema=RESULT)


def _sent(order: Order, slot: int, rows: Iterable[pa.RecordBatch], tally: Tally) -> bool:
    """Whether it was this task that has sent the rows."""
    if _overtaken(order):
        # A zombie's task: to fence would only disturb the run that has taken over.
        return False
    order.on_step("before", SlotStep.FENCE)
    transactional = Transactional(order.config, order.transactional_id(slot), order.timeout_ms)
    order.on_step("after", SlotStep.FENCE)
    known = _receipt(order, slot)
    order.on_step("after", SlotStep.READ)
    if known is not None and known.sequence >= order.sequence:
        _require_same(known, order, slot, rows, tally)
        return False
    return _deliver(transactional, order, slot, rows, tally)


def _overtaken(order: Order) -> bool:
    """Whether a later batch is planned: then this one was sent, whole."""
    text = progress.last(_reading(order.config), order.progress_topic, progress.PLANS)
    return text is not None and Plan.from_text(text).sequence > order.sequence


def _receipt(order: Order, slot: int) -> Receipt | None:
    text = progress.last(_reading(order.config), order.progress_topic, progress.partition_of(slot))
    return None if text is None else Receipt.from_text(text)


def _reading(config: Mapping[str, str]) -> dict[str, str]:
    """A producer's own settings are none of a consumer's."""
    kept = ("bootstrap.", "security.", "sasl.", "ssl.", "client.", "socket.", "broker.")
    return {key: value for key, value in config.items() if key.startswith(kept)}


def _deliver(transactional: Transactional, order: Order, slot: int,
             rows: Iterable[pa.RecordBatch], tally: Tally) -> bool:  # fmt: skip
    """Send and commit; False where a copy of this task has done so."""
    try:
        transactional.begin()
        messages = Messages(transactional.producer, order.to)
        for batch in rows:
            tally.add(batch)
            began = time.perf_counter()
            tally.aside += messages.send(batch.drop_columns([DIGEST]))
            tally.sending += time.perf_counter() - began
        receipt = tally.receipt(order.sequence).to_text()
        transactional.note(order.progress_topic, progress.partition_of(slot), receipt)
        order.on_step("before", SlotStep.COMMIT)
        began = time.perf_counter()
        transactional.commit()
        tally.sending += time.perf_counter() - began
        order.on_step("after", SlotStep.COMMIT)
    except TooLarge:
        transactional.producer.abort_transaction(progress.ANSWER_SECONDS)
        raise
    except KafkaException as error:
        cause = transactional.cause(error)
        if cause.code() not in FENCED:
            transactional.abort(error)
            raise
        _await_other(order, slot, cause)
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


def _require_same(known: Receipt, order: Order, slot: int, rows: Iterable[pa.RecordBatch],
                  tally: Tally) -> None:  # fmt: skip
    """What is left out must be what was sent: a query that gives other rows would lose some."""
    for batch in rows:
        tally.add(batch)
    if known.sequence == order.sequence and tally.receipt(order.sequence) != known:
        raise Unaccounted(
            f"slot {slot} of sink {order.sink} has sent {known.rows} rows of batch "
            f"{order.sequence} into {order.to.topic}, and the query now gives {tally.rows} rows, "
            "or others, for the same offsets: it is not deterministic. Nothing more was sent. Take "
            "what is random, or depends on the time of day, out of the query"
        )
