"""What a run's events add up to. Pure: a tally and an event make the next tally."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

Event = dict[str, Any]


def parse(line: str) -> Event | None:
    """An event of `oncelake run --json`; None for any other line."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and isinstance(event.get("event"), str) else None


@dataclass(frozen=True, slots=True)
class Tally:
    """Totals are the table's own, over all runs; `written_here` counts since the last claim."""

    generation: int = 0
    read: int = 0
    written_here: int = 0
    refused_replays: int = 0
    trimmed: int = 0
    kills: int = 0

    def after(self, event: Event) -> Tally:
        if event["event"] == "claimed":
            return replace(self, generation=int(event["generation"]), written_here=0)
        if event["event"] != "batch":
            return self
        counted = replace(self, read=int(event["totals"]["read"]))
        if event["outcome"] == "skipped":
            return replace(counted, refused_replays=self.refused_replays + 1)
        trimmed = self.trimmed + (event["outcome"] == "trimmed")
        return replace(counted, written_here=self.written_here + 1, trimmed=trimmed)

    def killed(self) -> Tally:
        return replace(self, kills=self.kills + 1)


def line_of(event: Event) -> str | None:
    """The event for a person; None for one that says nothing new to them."""
    teller = _LINES.get(event["event"])
    return teller(event) if teller else None


def _claimed(event: Event) -> str:
    return f"generation {event['generation']} claimed the table"


def _batch(event: Event) -> str:
    if event["outcome"] == "skipped":
        return f"replay refused: batch {event['batch']} is in the table already"
    counts, total = event["counts"], event["totals"]["read"]
    kept = " (only the part the table lacked)" if event["outcome"] == "trimmed" else ""
    return (
        f"batch {event['batch']} committed{kept}: read {counts['read']:,} = "
        f"written {counts['written']:,} + quarantined {counts['quarantined']:,}; total {total:,}"
    )


def _stopped(event: Event) -> str:
    return f"stopped: {event['reason']}"


def _error(event: Event) -> str:
    return f"error: {event['kind']}: {event['message']}"


_LINES = {"claimed": _claimed, "batch": _batch, "stopped": _stopped, "error": _error}
