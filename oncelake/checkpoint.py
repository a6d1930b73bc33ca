"""Spark's checkpoint: which offsets a batch has, and whether a run may rely on it at all.

Ranges are read from Spark's offset log, never from the rows: transactions and compaction leave
holes, so the smallest and greatest offset of a batch's rows say nothing about its borders.

The table is the ledger; a checkpoint only tells Spark where to go on. One that is behind the table
has it offer batches again, which are refused: no harm. One that is damaged or ahead of the table
would stop Spark or leave out rows. It is set aside, renamed and never deleted, and Spark begins
anew where the table ends. That of another topic may be in use: a person decides.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import urlparse

from oncelake.errors import CheckpointUnusable
from oncelake.model import Progress, Ranges, Span, TopicPartition

Offsets = Mapping[TopicPartition, int]
OBJECT_STORES = {"s3", "s3a", "s3n", "gs", "abfs", "abfss", "wasb", "wasbs", "oss", "cosn", "obs"}
ASIDE, ASIDE_TIME = ".aside-", "%Y%m%dT%H%M%S%fZ"
LOG_VERSION, SOURCE_VERSION = "v1", "\0v1"


class Files(Protocol):
    """A folder (see lake.Folder)."""

    root: str

    def names(self, folder: str) -> list[str]: ...
    def read(self, entry: str) -> str: ...
    def move_to(self, root: str) -> None: ...


class FileDamaged(Exception):
    """A file of a checkpoint that is not there, or not as it was written."""


@dataclass(frozen=True, slots=True)
class Found:
    """Where Spark would go on by its logs, or what is wrong with them. Nowhere: nothing yet."""

    resumes: Offsets = field(default_factory=dict)
    damage: str | None = None

    def of_another(self, topic: str) -> str | None:
        """The topic that it is of, if that is not ours."""
        return next((tp.topic for tp in sorted(self.resumes) if tp.topic != topic), None)

    def fault(self, progress: Progress, held: Ranges, whole: str = "the table") -> str | None:
        """Why a run must not rely on it, as the table stands; progress was read after it.

        `held` is what Kafka holds: of what is gone there Spark could offer nothing again. `whole`
        names whose progress it is, for people.
        """
        if self.damage:
            return f"it is damaged: {self.damage}"
        ends = progress.origin.epochs.in_kafka(progress.positions)
        for tp, offset in sorted(self.resumes.items()):
            # One that the table has not met was added: it is due from its beginning.
            end = ends[tp].end if tp in ends else held[tp].start if tp in held else offset
            if offset > end:
                return (
                    f"it is ahead of {whole}: in partition {tp.partition} of {tp.topic} it "
                    f"would go on at offset {offset}, and {whole} ends at {end}"
                )
            if tp in held and offset < held[tp].start:
                return (
                    f"it is behind the topic: in partition {tp.partition} of {tp.topic} it would "
                    f"go on at offset {offset}, and Kafka holds none before {held[tp].start}"
                )
        return None


def set_aside_at(name: str) -> datetime | None:
    """When a checkpoint of this name was set aside; None where the name does not tell."""
    try:
        when = datetime.strptime(name.rpartition(ASIDE)[2], ASIDE_TIME)
    except ValueError:
        return None
    return when.replace(tzinfo=UTC)


def prepare(checkpoint: str) -> None:
    """A local checkpoint folder must be there and writable; elsewhere Spark will say."""
    parts = urlparse(checkpoint)
    if parts.scheme not in {"", "file"}:
        return
    folder = Path(parts.path if parts.scheme else checkpoint)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        command = f"Type: sudo mkdir -p {folder} && sudo chown $USER {folder}, or set "
        raise CheckpointUnusable(
            f"the checkpoint folder {folder} cannot be made: {error.strerror}. "
            f"{command if isinstance(error, PermissionError) else 'Set '}checkpoint "
            "(CHECKPOINT_LOCATION) to another"
        ) from error
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise CheckpointUnusable(
            f"the checkpoint folder {folder} is not writable by this user. Type: sudo chown -R "
            f"$USER {folder}, or set CHECKPOINT_LOCATION to another"
        )


def remark(checkpoint: str) -> str | None:
    """What is to be known of where a checkpoint lies."""
    if urlparse(checkpoint).scheme not in OBJECT_STORES:
        return None
    return (
        f"the checkpoint {checkpoint} is in an object store, which cannot rename a file in one "
        "step: two runs at once, or one that is killed, may leave it wrong. The table does not "
        "rely on it, so nothing is lost or doubled then: a wrong one is set aside, and a run that "
        "was overtaken is fenced"
    )


def require_ours(checkpoint: str, found: Found, topic: str) -> None:
    """Refuse that of another topic: somebody may be using it."""
    if other := found.of_another(topic):
        raise CheckpointUnusable(
            f"the checkpoint {checkpoint} is of topic {other}, and this pipeline reads {topic}. "
            "Another pipeline may be using it, so nothing was changed. Set CHECKPOINT_LOCATION to "
            "a folder of its own, or type: oncelake recover PIPELINE.yaml, which sets it aside"
        )


class Checkpoint:
    """The logs that Spark keeps of one query's batches."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._read: dict[int, Offsets] = {}

    @property
    def empty(self) -> bool:
        return not self._files.names("")

    def ranges(self, batch: int) -> Ranges:
        """The offsets of a batch: from the end of the one before it to its own end."""
        try:
            ends = self._planned(batch)
            begins = self._read.get(batch - 1) or self._begins(batch)
        except FileDamaged as damage:
            raise CheckpointUnusable(
                f"Spark's log of batch {batch} in {self._files.root} does not tell its offsets: "
                f"{damage}. A stream into oncelake reads from one Kafka source. If the file is "
                "damaged, move the checkpoint aside and run again: the table knows where to go on"
            ) from damage
        # An entry is written once: the next batch need not read this one again.
        self._read = {batch: ends}
        # A partition that the former batch did not know was added since: it begins at 0.
        return {tp: Span(begins.get(tp, 0), end) for tp, end in ends.items()}

    def _begins(self, batch: int) -> Offsets:
        return self._planned(batch - 1) if batch else self._source()

    def look(self) -> Found:
        """Read what Spark is going to read, before the table is asked how far it has come: while
        another run writes, a sound checkpoint is never ahead of what the table says later."""
        try:
            return Found(self._resumes())
        except FileDamaged as damage:
            return Found(damage=str(damage))

    def set_aside(self) -> str:
        """Rename it, and say to what."""
        root = self._files.root
        aside = f"{root}{ASIDE}{datetime.now(UTC):{ASIDE_TIME}}"
        try:
            self._files.move_to(aside)
        except OSError as error:
            raise CheckpointUnusable(
                f"the checkpoint {root} cannot be used, and could not be set aside: {error}. "
                f"Type: sudo mv {root} {aside}, and run again: the table knows where to go on"
            ) from error
        return aside

    def _resumes(self) -> Offsets:
        """Where Spark's next batch begins; every entry is read that Spark will want to read."""
        if "metadata" in self._files.names(""):
            self._require_id()
        # In this order, since a batch that a run is at is planned before it is committed.
        committed, planned = self._last("commits"), self._last("offsets")
        if planned is None:
            self._require_new()
            return self._source() if "0" in self._files.names("sources/0") else {}
        if committed is not None:
            self._lines(f"commits/{committed}")
            if committed > planned:
                raise FileDamaged(f"commits/{committed} has no offsets/{committed}")
        ends = self._planned(planned)
        begins = self._planned(planned - 1) if planned else None
        if committed == planned:
            return ends
        begins = self._source() if begins is None else begins
        if any(ends.get(tp, offset) < offset for tp, offset in begins.items()):
            raise FileDamaged(f"offsets/{planned} ends before it begins")
        return begins

    def _require_new(self) -> None:
        """Spark takes a query without a batch for a new one, and wants nothing left of another."""
        for folder in ("offsets", "commits", "state"):
            if names := self._files.names(folder):
                raise FileDamaged(f"{folder}/{min(names)} is there, and no batch in offsets")

    def _last(self, log: str) -> int | None:
        """The newest entry of a log: Spark looks at names made of digits alone."""
        return max((int(name) for name in self._files.names(log) if name.isdigit()), default=None)

    def _planned(self, batch: int) -> Offsets:
        entry = f"offsets/{batch}"
        return _offsets(entry, self._lines(entry)[1:])

    def _source(self) -> Offsets:
        entry = "sources/0/0"
        version, *offsets = self._files.read(entry).splitlines() or [""]
        if version != SOURCE_VERSION:
            raise FileDamaged(f"{entry} does not begin with its version")
        return _offsets(entry, offsets)

    def _lines(self, entry: str) -> list[str]:
        """A log's entry: its version, a line of JSON about the batch, and what is left of it."""
        version, *lines = self._files.read(entry).splitlines() or [""]
        if version != LOG_VERSION:
            raise FileDamaged(f"{entry} does not begin with its version")
        try:
            json.loads(lines[0])
        except (IndexError, ValueError) as error:
            raise FileDamaged(f"{entry} does not tell about its batch") from error
        return lines

    def _require_id(self) -> None:
        try:
            found = json.loads(self._files.read("metadata"))["id"]
        except (ValueError, TypeError, KeyError) as error:
            raise FileDamaged("metadata does not name the query's id") from error
        if not isinstance(found, str):
            raise FileDamaged("metadata does not name the query's id")


def _offsets(entry: str, sources: list[str]) -> Offsets:
    """One line of JSON a source, of which there is one."""
    try:
        (line,) = sources
        return offsets_of(line)
    except (ValueError, TypeError, AttributeError) as error:
        raise FileDamaged(f"{entry} does not name the offsets of one Kafka source") from error


def offsets_of(text: str) -> Offsets:
    """What Spark logs of a Kafka source; of any other the text fails in one way or another."""
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in json.loads(text).items()
        for partition, offset in partitions.items()
    }
