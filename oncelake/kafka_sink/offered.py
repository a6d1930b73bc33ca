"""Which batch Spark offers: what its logs say of the source's offsets, whatever the source is."""

from __future__ import annotations

import hashlib
import json

from oncelake.checkpoint import SOURCE_VERSION, Files
from oncelake.errors import CheckpointUnusable
from oncelake.kafka_sink.plan import Batch

NOWHERE = "-"
"""Spark's word for a source that has given nothing yet."""


def offered(files: Files, number: int) -> Batch:
    """Batch `number` of the query whose checkpoint this is, from its start to its end."""
    try:
        query = json.loads(files.read("metadata"))["id"]
        ends = _entry(files, number)
        begins = _entry(files, number - 1) if number else [NOWHERE] * len(ends)
        sources = [
            _span(files, source, begin, end)
            for source, (begin, end) in enumerate(zip(begins, ends, strict=True))
        ]
    except (ValueError, TypeError, KeyError, IndexError) as damage:
        raise CheckpointUnusable(
            f"Spark's log of batch {number} in {files.root} does not tell its offsets: {damage}. "
            "Nothing was sent. Restore the checkpoint"
        ) from damage
    return Batch(query, number, tuple(b for b, _ in sources), tuple(e for _, e in sources))


def _entry(files: Files, number: int) -> list[str]:
    """A line a source, after the version and a line about the batch."""
    return files.read(f"offsets/{number}").splitlines()[2:]


def _span(files: Files, source: int, begin: str, end: str) -> tuple[str, str]:
    if begin == NOWHERE:
        begin = _first(files, source)
    if (last := _log_offset(end)) is None:
        return begin, end
    # Such a number counts entries of a log that is lost with the checkpoint: the files are named.
    first = _log_offset(begin)
    names = [
        name
        for entry in range(-1 if first is None else first, last)
        for name in _files_of(files, source, entry + 1)
    ]
    digest = hashlib.sha256("\n".join(sorted(names)).encode()).hexdigest()
    return begin, json.dumps({"files": len(names), "sha256": digest, "log": last})


def _first(files: Files, source: int) -> str:
    """Where Kafka's source began: it writes that down before its first batch."""
    if "0" not in files.names(f"sources/{source}"):
        return NOWHERE
    version, *lines = files.read(f"sources/{source}/0").splitlines() or [""]
    return lines[0] if version == SOURCE_VERSION else NOWHERE


def _log_offset(text: str) -> int | None:
    if text == NOWHERE:
        return None
    found = json.loads(text)
    return found.get("logOffset") if isinstance(found, dict) and len(found) == 1 else None


def _files_of(files: Files, source: int, entry: int) -> list[str]:
    folder = f"sources/{source}"
    if str(entry) in files.names(folder):
        lines = files.read(f"{folder}/{entry}").splitlines()[1:]
        return [json.loads(line)["path"] for line in lines]
    lines = files.read(f"{folder}/{entry}.compact").splitlines()[1:]
    return [found["path"] for found in map(json.loads, lines) if found["batchId"] == entry]
