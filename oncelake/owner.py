"""Whose a checkpoint is, written beside Spark's logs: those of two pipelines look alike."""

from __future__ import annotations

import json
from typing import Protocol

from oncelake.checkpoint import FileDamaged
from oncelake.errors import CheckpointUnusable

ENTRY = "oncelake.json"


class Files(Protocol):
    """A folder (see lake.Folder)."""

    root: str

    def names(self, folder: str) -> list[str]: ...
    def read(self, entry: str) -> str: ...
    def write(self, entry: str, text: str) -> None: ...


def owner_of(files: Files) -> str | None:
    """The pipeline that a checkpoint is of; None where that is not told, or not legibly."""
    if ENTRY not in files.names(""):
        return None
    try:
        found = json.loads(files.read(ENTRY))["pipeline"]
    except (FileDamaged, ValueError, TypeError, KeyError):
        # It was killed while it wrote this: the logs themselves are weighed in any case.
        return None
    return found if isinstance(found, str) else None


def another_owner(files: Files, pipeline: str) -> str | None:
    owner = owner_of(files)
    return None if owner == pipeline else owner


def require_own(files: Files, pipeline: str) -> None:
    """Refuse that of another pipeline: it may be running."""
    if other := another_owner(files, pipeline):
        raise CheckpointUnusable(
            f"the checkpoint {files.root} is of pipeline {other}, and this is pipeline {pipeline}. "
            f"{other} may be running, so nothing was changed. Set CHECKPOINT_LOCATION to a folder "
            "of its own; or, where it is no longer used, type: oncelake recover PIPELINE.yaml, "
            "which sets it aside"
        )


def own(files: Files, pipeline: str) -> None:
    """Say so, before Spark writes anything there."""
    if owner_of(files) != pipeline:
        files.write(ENTRY, json.dumps({"pipeline": pipeline}))
