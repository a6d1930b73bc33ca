"""What a run tells while it runs: one event, one line, for a person or for a program."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from oncelake.commit import Outcome
from oncelake.maintain import Upkeep
from oncelake.model import Counts, Progress, Ranges, spans_to_json


@dataclass(frozen=True, slots=True)
class Event:
    """`text` is for people, `facts` for programs; both say the same."""

    name: str
    text: str
    facts: dict[str, Any] = field(default_factory=dict)

    def to_json(self) -> str:
        return json.dumps({"event": self.name, **self.facts})


Tell = Callable[[Event], None]


def claimed(table: str, progress: Progress) -> Event:
    facts = {
        "pipeline": progress.pipeline,
        "table": table,
        "generation": progress.generation,
        "sequence": progress.sequence,
        "positions": spans_to_json(progress.positions),
    }
    text = (
        f"pipeline {progress.pipeline} owns {table} as generation {progress.generation}; "
        f"{progress.totals.read:,} rows accounted for so far"
    )
    return Event("claimed", text, facts)


def set_aside(checkpoint: str, aside: str, why: str) -> Event:
    text = (
        f"the checkpoint {checkpoint} cannot be used: {why}. It is set aside as {aside}; Spark "
        "begins anew where the table ends"
    )
    return Event("set_aside", text, {"checkpoint": checkpoint, "aside": aside, "why": why})


def remarked(text: str) -> Event:
    return Event("remark", text, {"text": text})


def planned(batch: int, ranges: Ranges) -> Event:
    offsets = sum(span.end - span.start for span in ranges.values())
    text = f"batch {batch}: {offsets:,} offsets in {len(ranges)} partitions"
    return Event("planned", text, {"batch": batch, "ranges": spans_to_json(ranges)})


def staged(batch: int, files: int, counts: Counts) -> Event:
    text = f"batch {batch}: {counts.written:,} rows staged in {files} files"
    facts = {"batch": batch, "files": files, "rows": counts.written}
    return Event("staged", text, facts)


@dataclass(frozen=True, slots=True)
class BatchDone:
    batch: int
    outcome: Outcome
    seconds: float

    def event(self) -> Event:
        facts = {
            "batch": self.batch,
            "outcome": self.outcome.kind,
            "ranges": spans_to_json(self.outcome.ranges),
            "counts": self.outcome.counts.to_json(),
            "totals": self.outcome.progress.totals.to_json(),
            "sequence": self.outcome.progress.sequence,
            "attempt": self.outcome.progress.attempt,
            "seconds": round(self.seconds, 3),
        }
        return Event("batch", self._text(), facts)

    def _text(self) -> str:
        if self.outcome.kind == "skipped":
            return f"batch {self.batch}: replay refused, the table has all of it already"
        counts, totals = self.outcome.counts, self.outcome.progress.totals
        trimmed = " (without the part the table has)" if self.outcome.kind == "trimmed" else ""
        return (
            f"batch {self.batch}: {counts.in_words()}{trimmed};"
            f" {self.seconds:.1f} s, {counts.read / max(self.seconds, 0.001):,.0f} rows/s;"
            f" total {totals.read:,}"
        )


def took_over(sink: str, topic: str, sequence: int) -> Event:
    text = f"sink {sink} owns {topic}; its last plan is number {sequence:,}"
    return Event("took_over", text, {"sink": sink, "topic": topic, "sequence": sequence})


def sent(batch: int, facts: dict[str, Any], seconds: float) -> Event:
    rate = facts["fresh"] / max(seconds, 0.001)
    before = facts["rows"] - facts["fresh"]
    again = f", {before:,} were sent before" if before else ""
    again += f", {facts['aside']:,} of them too large and put aside" if facts["aside"] else ""
    told = f"{facts['fresh']:,} rows sent{again}" if facts["rows"] else facts["outcome"]
    text = f"batch {batch}: {told}; {seconds:.1f} s, {rate:,.0f} rows/s"
    return Event("sent", text, {"batch": batch, **facts, "seconds": round(seconds, 3)})


def retrying(doing: str, why: str, failures: int, pause: float) -> Event:
    text = f"{doing} failed, the {_nth(failures)} time; trying again in {pause:g} s: {why}"
    return Event("retrying", text, {"doing": doing, "why": why, "failures": failures})


def _nth(number: int) -> str:
    return {1: "first", 2: "second", 3: "third"}.get(number, f"{number}th")


def maintained(done: Upkeep) -> Event:
    return Event("maintained", done.in_words(), done.to_json())


def stopped(reason: str) -> Event:
    return Event("stopped", f"stopped: {reason}", {"reason": reason})


def failed(kind: str, message: str, exit_code: int) -> Event:
    facts = {"kind": kind, "message": message, "exit_code": exit_code}
    return Event("error", f"error: {message}", facts)
