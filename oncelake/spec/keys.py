"""The keys a spec may hold: the one place that unknown keys and overrides are judged by."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

SECTIONS: dict[str, tuple[str, ...]] = {
    "source": ("bootstrap", "topic", "start", "options"),
    "decode": ("format", "schema"),
    "table": ("name", "quarantine", "late", "tombstones", "partition_by", "properties"),
    "watermark": ("column", "delay", "skew", "late"),
    "limits": ("max_offsets", "min_partitions"),
    "maintenance": ("every", "expire", "orphans"),
    "catalog": ("type", "uri", "warehouse", "properties"),
    "spark": ("master", "settings"),
}
PLAIN = (
    "pipeline", "transform", "mode", "deletes", "horizon", "trigger", "checkpoint", "log_level",
)  # fmt: skip
LISTS = ("key", "order")
SINKS = "sinks"
TOP = (*PLAIN, *LISTS, *SECTIONS, SINKS)

_NOT_SCALAR = {"options", "partition_by", "properties", "settings"}

# What the same thing is called elsewhere.
_OTHER_NAMES = {
    "maxoffsetspertrigger": "max_offsets",
    "minpartitions": "min_partitions",
    "parallelism": "min_partitions",
    "bootstrapservers": "bootstrap",
    "brokers": "bootstrap",
    "servers": "bootstrap",
    "subscribe": "topic",
    "startingoffsets": "start",
    "checkpointlocation": "checkpoint",
    "processingtime": "trigger",
    "loglevel": "log_level",
    "schemafile": "schema",
    "partitionedby": "partition_by",
    "primarykey": "key",
    "keys": "key",
    "orderby": "order",
    "sql": "transform",
    "delaythreshold": "delay",
    "allowedlateness": "delay",
    "eventtime": "column",
    "conf": "settings",
    "config": "settings",
}


def scalar_keys() -> tuple[str, ...]:
    """Dotted names of all keys that hold one value: `source.topic`, `trigger`."""
    dotted = (f"{section}.{key}" for section, keys in SECTIONS.items() for key in keys)
    return PLAIN + tuple(name for name in dotted if name.split(".")[1] not in _NOT_SCALAR)


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `name` was most likely meant to be."""
    by_folded = {_fold(candidate): candidate for candidate in candidates}
    folded = _fold(name)
    known_as = _OTHER_NAMES.get(folded)
    if known_as in by_folded.values():
        return known_as
    close = difflib.get_close_matches(folded, by_folded, n=1, cutoff=0.6)
    return by_folded[close[0]] if close else None


def suggestion(name: str, section: str, allowed: tuple[str, ...]) -> str:
    """What to write in place of the unknown key `name`."""
    if near := nearest(name, allowed):
        return f"did you mean '{near}'?"
    for home, keys in SECTIONS.items():
        if home != section and (found := nearest(name, keys)) and _fold(found) == _fold(name):
            return f"did you mean '{found}' in {home}?"
    if section and name in TOP:
        return f"'{name}' belongs at the top level: do not indent it"
    return f"known here: {', '.join(allowed)}"


def _fold(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())
