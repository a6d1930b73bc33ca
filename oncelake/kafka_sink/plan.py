"""What a sink has promised and done, as its progress topic tells it. Pure.

A *plan* is written before a batch is sent: which offsets of the source it holds, and how its rows
are dealt to slots. A *receipt* is written by a slot in the transaction of its rows. So a batch is
done when each of its slots has a receipt of it, and until then every run sends the same plan.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from oncelake.checkpoint import offsets_of
from oncelake.errors import CheckpointUnusable, Gap
from oncelake.model import Ranges, Span, TopicPartition, compact, kafka_name, show_ranges

FORMAT = 1


class Dealt(Enum):
    """How rows come to their slots."""

    BY_SOURCE = "source"
    """Each partition of the topic that is read is a slot: rows stay where Spark has read them."""
    BY_KEY = "key"
    """Rows of one key are in one slot, by the key's hash."""
    BY_TARGET = "target"
    """Each partition of the topic that is sent to is a slot: for what goes without transactions."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch by its source's own offsets, as Spark logs them: of each source a text."""

    query: str
    number: int
    begins: tuple[str, ...]
    ends: tuple[str, ...]

    @property
    def ranges(self) -> Ranges | None:
        """Its offsets, where the one source is Kafka."""
        try:
            begins, ends = (offsets_of(text) for text in (*self.begins, *self.ends))
        except (ValueError, TypeError, AttributeError):
            return None
        # A partition that the former batch did not know was added since: it begins at 0.
        return {tp: Span(begins.get(tp, 0), end) for tp, end in ends.items()}

    def in_words(self) -> str:
        ranges = self.ranges
        return f"{' and '.join(self.ends)}" if ranges is None else show_ranges(ranges)


@dataclass(frozen=True, slots=True)
class Plan:
    """`held` are the offsets at which the slots' partitions ended before anything of it was sent,
    where that is what tells how much of it has landed."""

    sequence: int
    batch: Batch
    dealt: Dealt
    slots: tuple[int, ...]
    held: tuple[int, ...] = ()

    def to_text(self) -> str:
        return compact(self.to_json())

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "sequence": self.sequence,
            "query": self.batch.query,
            "batch": self.batch.number,
            "begins": list(self.batch.begins),
            "ends": list(self.batch.ends),
            "dealt": self.dealt.value,
            "slots": list(self.slots),
            **({"held": list(self.held)} if self.held else {}),
        }

    @classmethod
    def from_text(cls, text: str) -> Plan:
        return cls.from_json(json.loads(text))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Plan:
        batch = Batch(data["query"], data["batch"], tuple(data["begins"]), tuple(data["ends"]))
        dealt, slots = Dealt(data["dealt"]), tuple(data["slots"])
        return cls(data["sequence"], batch, dealt, slots, tuple(data.get("held", ())))


@dataclass(frozen=True, slots=True)
class Receipt:
    """What a slot has sent of a plan. `digest` is the sum of its rows' hashes, in any order."""

    sequence: int
    rows: int
    digest: int

    def to_text(self) -> str:
        return compact({"format": FORMAT, "sequence": self.sequence, "rows": self.rows,
                        "digest": self.digest})  # fmt: skip

    @classmethod
    def from_text(cls, text: str) -> Receipt:
        data = json.loads(text)
        return cls(data["sequence"], data["rows"], data["digest"])


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a sink has come: its last plan, and what its slots have sent."""

    last: Plan | None = None
    receipts: Mapping[int, Receipt] | None = None

    @property
    def sequence(self) -> int:
        """The number of the last plan."""
        return 0 if self.last is None else self.last.sequence

    @property
    def complete(self) -> bool:
        return self.last is None or not self.missing

    @property
    def missing(self) -> tuple[int, ...]:
        """The slots that have not sent their part of the last plan."""
        if self.last is None:
            return ()
        sent = {slot for slot, r in (self.receipts or {}).items()
                if r.sequence >= self.last.sequence}  # fmt: skip
        return tuple(slot for slot in self.last.slots if slot not in sent)


class Verdict(Enum):
    SKIP = "all of it was sent before"
    AGAIN = "it was begun: send what is missing of it"
    NEXT = "it follows what was sent"
    PAST = "of it, what was not sent yet is to be sent"


def place(standing: Standing, offered: Batch) -> Verdict:
    """Compare what Spark offers with what was sent. Refuses what cannot be told apart."""
    last = standing.last
    if last is None:
        return Verdict.NEXT
    same = (offered.begins, offered.ends) == (last.batch.begins, last.batch.ends)
    if same:
        return Verdict.SKIP if standing.complete else Verdict.AGAIN
    sent, due = last.batch.ranges, offered.ranges
    if sent is not None and due is not None:
        return _place_offsets(sent, due, standing.complete)
    follows = (offered.query, offered.number) == (last.batch.query, last.batch.number + 1)
    if follows and standing.complete:
        return Verdict.NEXT
    raise CheckpointUnusable(
        f"the last batch sent was {last.batch.in_words()} (number {last.batch.number} of query "
        f"{last.batch.query}), and Spark offers {offered.in_words()} (number {offered.number} of "
        f"query {offered.query}): whether its rows were sent cannot be told from the offsets of "
        "this source. Nothing was sent. Restore the checkpoint, or give the stream a sink name of "
        "its own (pipeline_name), which sends all of it"
    )


def _place_offsets(sent: Ranges, due: Ranges, complete: bool) -> Verdict:
    _require_same_topics(sent, due)
    if complete:
        behind = all(span.end <= _end(sent, tp) for tp, span in due.items())
        if behind:
            return Verdict.SKIP
        missing = {tp: Span(_end(sent, tp), span.start) for tp, span in due.items()
                   if span.start > _end(sent, tp)}  # fmt: skip
        if missing:
            raise Gap(
                f"the last batch sent ends before this one begins; offsets between them: "
                f"{show_ranges(missing)}. Nothing was sent. Let the stream begin earlier "
                "(startingOffsets), with a checkpoint of its own"
            )
        at = all(span.start == _end(sent, tp) for tp, span in due.items())
        return Verdict.NEXT if at else Verdict.PAST
    if all(span.empty or (tp in sent and span.end <= sent[tp].start) for tp, span in due.items()):
        return Verdict.SKIP
    covers = all(
        tp in due and due[tp].start <= span.start and due[tp].end >= span.end
        for tp, span in sent.items()
    )
    if covers:
        return Verdict.PAST
    raise CheckpointUnusable(
        f"a batch was sent in part ({show_ranges(sent)}), and Spark now offers "
        f"{show_ranges(due)}, which does not hold all of it. Nothing was sent. Restore the "
        "checkpoint, or let the stream begin at or before that batch and raise maxOffsetsPerTrigger"
    )


def _require_same_topics(sent: Ranges, due: Ranges) -> None:
    """Two streams under one name would each take the other's batches for its own."""
    before, now = ({kafka_name(tp.topic) for tp in ranges} for ranges in (sent, due))
    if before and now and not before & now:
        raise CheckpointUnusable(
            f"the last batch that was sent under this name was of {', '.join(sorted(before))}, and "
            f"Spark offers one of {', '.join(sorted(now))}. Nothing was sent. Give this stream a "
            "sink name of its own (pipeline_name)"
        )


def _end(sent: Ranges, tp: TopicPartition) -> int:
    return sent[tp].end if tp in sent else 0
