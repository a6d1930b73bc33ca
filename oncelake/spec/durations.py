"""Lengths of time: '30 seconds', '2 hours', '3 days'."""

from __future__ import annotations

import re
from collections.abc import Callable

from oncelake.spec.problems import Refused

_DURATION = re.compile(r"(?P<number>[0-9]{1,9}(?:\.[0-9]{1,9})?)\s*(?P<unit>[A-Za-z]+)")
_UNITS = {
    ("ms", "millisecond", "milliseconds"): 0.001,
    ("s", "sec", "second", "seconds"): 1.0,
    ("m", "min", "minute", "minutes"): 60.0,
    ("h", "hour", "hours"): 3600.0,
    ("d", "day", "days"): 24 * 3600.0,
}
SECONDS = {name: seconds for names, seconds in _UNITS.items() for name in names}
DAY = 24 * 3600.0
LONGEST_TRIGGER = DAY
LONGEST = 100 * 365 * DAY


def trigger_seconds(text: str) -> float:
    """'0 seconds' is one batch right after the other."""
    seconds = _seconds(text, "'30 seconds', '1 minute' or '500 ms'")
    if not (seconds == 0 or 0.001 <= seconds <= LONGEST_TRIGGER):
        raise Refused("must be from 1 ms to 24 hours, or '0 seconds' for no pause")
    return seconds


def between(least: float, such_as: str) -> Callable[[str], float]:
    """A parser of lengths from `least` seconds to a hundred years."""

    def parse(text: str) -> float:
        seconds = _seconds(text, such_as)
        if seconds < least:
            raise Refused(f"must be at least {_in_words(least)}")
        if seconds > LONGEST:
            raise Refused("must be at most a hundred years")
        return seconds

    return parse


def duration_text(seconds: float) -> str:
    """The shortest spelling that reads back as the same length."""
    if seconds and seconds < 1:
        return f"{seconds * 1000:.12g} ms"
    return f"{seconds:.15g} seconds"


def _in_words(seconds: float) -> str:
    """In the unit that a person would take for it: '1 hour'."""
    unit = next(u for u in ("day", "hour", "minute", "second", "ms") if SECONDS[u] <= seconds)
    number = seconds / SECONDS[unit]
    return f"{number:.12g} {unit}{'' if number == 1 or unit == 'ms' else 's'}"


def _seconds(text: str, such_as: str) -> float:
    match = _DURATION.fullmatch(text.strip())
    factor = SECONDS.get(match["unit"].lower()) if match else None
    if match is None or factor is None:
        raise Refused(f"must be a number and a unit, such as {such_as}")
    return float(match["number"]) * factor
