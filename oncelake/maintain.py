"""Keep the tables small and quick: join files, forget snapshots, remove what nobody refers to.

A file that no metadata refers to may still be about to be published. Ours are not if they are older
than the newest commit of the pipeline, as a run settles one batch before it stages the next, and an
older run is fenced; but for those that progress names as pending. So it is with each pipeline that
writes to the table. Both times are of the storage's clock. Of others' files nothing is known but
their age.
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
from oncelake.model import FOLLOWED_PREFIX, Progress

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
    """For a main table and its side tables. It never raises for a step that fails: that is told."""

    def __init__(self, spark: SparkSession, main: LakeTable, sides: Sequence[LakeTable],
                 ages: Ages) -> None:  # fmt: skip
        self._spark = spark
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
        self._main.refresh()
        filled = ledger.pipelines(self._main)
        newest = [self._main.newest_stamped(progress.pipeline) for progress in filled]
        if not newest or not all(newest) or self._followed_by_others(table, filled):
            return ()
        settled = [upkeep.changed_ms(self._spark, each.manifest_list) for each in newest if each]
        now = upkeep.storage_ms(self._spark, table)
        before = min([now - round(self._ages.orphans * 1000), *settled])
        pending = {path for progress in filled for path in _pending_paths(progress)}
        return [p for p in upkeep.orphans(self._spark, table, before) if _bare(p) not in pending]

    def _followed_by_others(self, table: LakeTable, filled: Sequence[Progress]) -> bool:
        """Whether it is a side table of another main table too, whose pending files are not known
        here."""
        known = {FOLLOWED_PREFIX + progress.pipeline for progress in filled}
        table.refresh()
        return any(key.startswith(FOLLOWED_PREFIX) for key in table.properties().keys() - known)

    def _remove_orphans(self, table: LakeTable) -> Sequence[str]:
        found = self.orphans(table)
        upkeep.remove(table, found)
        return found

    def _expire(self, table: LakeTable) -> int:
        """Never a pipeline's newest commit: by it a rollback is noticed."""
        before = datetime.now(UTC) - timedelta(seconds=self._ages.expire)
        table.refresh()
        stamped = (table.newest_stamped(each.pipeline) for each in ledger.pipelines(self._main))
        kept = [each.committed_at for each in stamped if each]
        return upkeep.expire(self._spark, table.name, min([before, *kept]), KEEP_SNAPSHOTS)


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
