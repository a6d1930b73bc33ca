"""What runs have left around a checkpoint: those that were set aside, and files half written.

Its own logs Spark prunes by itself, to the batches that `spark.sql.streaming.minBatchesToRetain`
names. What a killed driver was writing, it leaves.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import SparkSession

from oncelake import lake
from oncelake.checkpoint import ASIDE, set_aside_at
from oncelake.spec import PipelineSpec

LOGS = ("", "offsets", "commits", "sources/0")
HALF_WRITTEN = ".tmp"


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed, or with a dry run would be."""

    checkpoint: str
    removed: Sequence[str]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def in_words(self, dry_run: bool) -> str:
        how = "would be removed" if dry_run else "removed"
        told = f"checkpoint {self.checkpoint}: {len(self.removed)} old leftovers {how}"
        return "\n  ".join((told, *self.removed))


def prune(spark: SparkSession, spec: PipelineSpec, dry_run: bool) -> Pruned:
    """Only what is as old as an orphan must be: a run may be writing, and a person looking."""
    before = datetime.now(UTC) - timedelta(seconds=spec.maintenance.orphans_seconds)
    checkpoint = spec.checkpoint.rstrip("/")
    parent, name = posixpath.split(checkpoint)
    beside, inside = lake.Folder(spark, parent or "."), lake.Folder(spark, checkpoint)
    aside = [each for each in beside.names("") if _set_aside(each, name, before)]
    halves = list(_half_written(inside, before))
    if not dry_run:
        for each in aside:
            beside.remove(each)
        for each in halves:
            inside.remove(each)
    return Pruned(checkpoint, [posixpath.join(parent, each) for each in aside]
                  + [f"{checkpoint}/{each}" for each in halves])  # fmt: skip


def _set_aside(found: str, name: str, before: datetime) -> bool:
    """By the time in its name: to rename a folder leaves its own time as it was."""
    if not found.startswith(name + ASIDE):
        return False
    when = set_aside_at(found)
    return when is not None and when < before


def _half_written(folder: lake.Folder, before: datetime) -> Iterator[str]:
    for log in LOGS:
        for name, changed in folder.changed(log).items():
            if name.startswith(".") and HALF_WRITTEN in name and changed < before:
                yield posixpath.join(log, name)
