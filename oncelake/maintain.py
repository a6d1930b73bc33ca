"""Keep the tables small and quick: join files, forget snapshots, remove what nobody refers to.

A file that no metadata refers to may still be about to be published. Ours are not if they are older
than the newest commit of the pipeline, as a run settles one batch before it stages the next, and an
older run is fenced; but for those that progress names as pending. Both times are of the storage's
clock. Of others' files nothing is known but their age.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from oncelake import ledger
from oncelake.lake import LakeTable, in_short, upkeep
from oncelake.model import Progress

KEEP_SNAPSHOTS = 10


@dataclass(frozen=True, slots=True)
class Ages:
    """From which age on, in seconds, snapshots are forgotten and orphans removed."""

    expire: float
    orphans: float


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What was done to a table, or with a dry run would be; `failed`: what could not be done."""

    table: str
    compacted: int = 0
    manifests: int = 0
    expired: int = 0
    orphans: Sequence[str] = ()
    failed: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "orphans": list(self.orphans), "failed": dict(self.failed)}

    def in_words(self) -> str:
        done = (
            f"{self.compacted} files joined, {self.manifests} manifests rewritten, {self.expired} "
            f"files of old snapshots and {len(self.orphans)} orphans removed"
        )
        failed = "".join(f"; {what} failed: {why}" for what, why in self.failed.items())
        return f"{self.table}: {done}{failed}"


class Maintenance:
    """For one pipeline's tables. It never raises for a step that fails: that is only told."""

    def __init__(self, spark: SparkSession, pipeline: str, main: LakeTable,
                 sides: Sequence[LakeTable], ages: Ages) -> None:  # fmt: skip
        self._spark = spark
        self._pipeline = pipeline
        self._main = main
        self._sides = sides
        self._ages = ages

    def run(self) -> Iterator[Upkeep]:
        for table in (self._main, *self._sides):
            steps: dict[str, Callable[[], Any]] = {
                "compacted": partial(upkeep.compact, self._spark, table.name),
                "manifests": partial(upkeep.rewrite_manifests, self._spark, table.name),
                "expired": partial(self._expire, table),
                "orphans": partial(self._remove_orphans, table),
            }
            yield _tried(table.name, steps)

    def dry_run(self) -> Iterator[Upkeep]:
        """Only the orphans: what Iceberg would do it says once it has done it."""
        for table in (self._main, *self._sides):
            yield _tried(table.name, {"orphans": partial(self.orphans, table)})

    def orphans(self, table: LakeTable) -> Sequence[str]:
        """Files that no commit, made or to be made, refers to."""
        progress = self._progress()
        newest = self._main.newest_stamped(self._pipeline)
        if progress is None or newest is None:
            return ()
        settled = upkeep.changed_ms(self._spark, newest.manifest_list)
        now = upkeep.storage_ms(self._spark, table)
        before = min(now - round(self._ages.orphans * 1000), settled)
        pending = _pending_paths(progress)
        return [p for p in upkeep.orphans(self._spark, table, before) if _bare(p) not in pending]

    def _remove_orphans(self, table: LakeTable) -> Sequence[str]:
        found = self.orphans(table)
        upkeep.remove(table, found)
        return found

    def _expire(self, table: LakeTable) -> int:
        """Never our newest commit on main: by it a rollback is noticed."""
        before = datetime.now(UTC) - timedelta(seconds=self._ages.expire)
        table.refresh()
        newest = table.newest_stamped(self._pipeline)
        if newest is not None:
            before = min(before, newest.committed_at)
        return upkeep.expire(self._spark, table.name, before, KEEP_SNAPSHOTS)

    def _progress(self) -> Progress | None:
        return ledger.look(self._main, self._pipeline).progress


def _tried(table: str, steps: Mapping[str, Callable[[], Any]]) -> Upkeep:
    done: dict[str, Any] = {}
    failed: dict[str, str] = {}
    for name, step in steps.items():
        try:
            done[name] = step()
        except Exception as error:  # whatever it is: it is told, and fails no batch
            failed[name] = in_short(error)
    return Upkeep(table, **done, failed=failed)


def _pending_paths(progress: Progress) -> set[str]:
    return {_bare(json.loads(text)["file-path"]) for p in progress.pending for text in p.files}


def _bare(path: str) -> str:
    """Without a scheme, which a listing may add to a path."""
    return path.split(":", 1)[-1].replace("//", "/")
