"""Side tables follow main: publish there what main has decided, once.

A side table remembers how far it has followed in a property set in the same commit. Sequences
only grow, so neither a second try nor a driver that woke up late can publish twice. One that has
followed further than main has come belongs to another main table, of which there may be nothing
left: what is decided now would be taken for published there, and lost. That is refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from threading import Event

from pyspark.sql import SparkSession

from oncelake.errors import TableUnfit, TransientError, to_type
from oncelake.lake import Ancestor, Guard, LakeTable, Publication, Staged, Unanswered, table_exists
from oncelake.ledger import AlreadyLanded
from oncelake.model import (
    FOLLOWED_PREFIX,
    QUARANTINED,
    Counts,
    Mark,
    Pending,
    Progress,
    Stamp,
    compact,
)

# In all about a minute, for a catalog that is away.
BACK_OFF_SECONDS = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)


class Followers:
    """The side tables of one main table, by the fate of their rows."""

    def __init__(self, main: str, sides: Mapping[str, LakeTable]) -> None:
        self._main = main
        self._sides = sides
        self._followed = 0

    def followed(self, pipeline: str) -> dict[str, int]:
        """How far each has followed, by its name."""
        for side in self._sides.values():
            side.refresh()
        key = FOLLOWED_PREFIX + pipeline
        return {side.name: _followed(side.properties(), key) for side in self._sides.values()}

    def pending(self, staged: Mapping[str, Staged], marks: tuple[Mark, ...],
                stamp: Stamp) -> Iterator[Pending]:  # fmt: skip
        """What they are to do once main has this stamp."""
        if marks:
            staged = {QUARANTINED: Staged(), **staged}
        for fate, of_fate in staged.items():
            due = marks if fate == QUARANTINED else ()
            if of_fate.files or due:
                side = self._sides[fate]
                decided = (side.name, stamp.sequence, stamp.attempt)
                files = side.files_to_text(of_fate.files)
                yield Pending(*decided, files, of_fate.rows, fate, marks=due)

    def follow(self, progress: Progress) -> None:
        for pending in progress.pending:
            if pending.sequence > self._followed:
                publish(self._side(pending), progress, pending)
        self._followed = progress.sequence

    def _side(self, pending: Pending) -> LakeTable:
        side = self._sides.get(pending.fate)
        if side is None or side.name != pending.table:
            now = f"goes to {side.name}" if side else "is not kept"
            raise TableUnfit(
                f"{self._main}: a former run decided {pending.rows} rows for "
                f"{pending.table}, which are not published there yet, and what is {pending.fate} "
                f"now {now}. Run once with {pending.table} in the spec, then change it"
            )
        return side


def publish(side: LakeTable, progress: Progress, pending: Pending) -> None:
    """Have a side table do what is pending, unless it has followed that far already."""
    key = FOLLOWED_PREFIX + progress.pipeline
    error: Exception | None = None
    for pause in (0.0, *BACK_OFF_SECONDS):
        Event().wait(pause)
        try:
            side.refresh()
            come = _followed(side.properties(), key)
            if come >= pending.sequence:
                return None
            publication = _publication(side, progress, pending, key)
            if not come:
                _require_there(side, publication, progress.pipeline, pending)
            return side.publish(publication)
        except (Unanswered, TransientError) as failure:
            # The next look at the table decides.
            error = failure
    raise TransientError(
        f"{side.name}: could not publish {pending.rows} rows that main has decided (sequence "
        f"{pending.sequence}). They are kept in main's progress and will be published by the "
        f"next run. Last answer: {error}"
    ) from error


def follows(side: LakeTable, pipeline: str) -> bool:
    """Whether it has ever published what this pipeline has decided."""
    side.refresh()
    return FOLLOWED_PREFIX + pipeline in side.properties()


def followed_to(spark: SparkSession, name: str, pipeline: str) -> int:
    """How far a side table has followed a pipeline; one that is gone has not."""
    if not table_exists(spark, name):
        return 0
    return _followed(LakeTable(spark, name).properties(), FOLLOWED_PREFIX + pipeline)


def following(spark: SparkSession, names: Iterable[str], pipeline: str) -> list[str]:
    there = [name for name in names if table_exists(spark, name)]
    return [name for name in there if follows(LakeTable(spark, name), pipeline)]


def refuse_ahead(followed: Mapping[str, int], pipeline: str, sequence: int) -> None:
    """Refuse side tables of another main table than this, which is at `sequence`. How far they have
    followed was read before main was: another run may take both further in between."""
    for name, come in followed.items():
        if come > sequence:
            raise TableUnfit(
                f"{name} has followed pipeline {pipeline} to sequence {come}, and the main table "
                f"stands at {sequence}: it is of a main table that was dropped, or is an older "
                "copy now. Nothing was written. Restore both as they were at one time; or set this "
                f"one aside, with its rows, type: {_set_aside(name)}, and run again"
            )


def _set_aside(name: str) -> str:
    return to_type(f"ALTER TABLE {name} RENAME TO {name.split('.', 1)[-1]}_former")


def _publication(side: LakeTable, progress: Progress, pending: Pending, key: str) -> Publication:
    if pending.revises:
        staged = side.stage_revised(pending)
    else:
        staged = Staged(side.files_from_text(pending.files))
    return Publication(
        stamp=_stamp(progress, pending).to_text(),
        properties={key: compact({"sequence": pending.sequence, "attempt": pending.attempt})},
        guard=_guard(key, pending, staged.base),
        files=staged.files,
        replaced=staged.replaced,
    )


def _require_there(side: LakeTable, made: Publication, pipeline: str, pending: Pending) -> None:
    """A table that was dropped and purged has taken with it what waits to be published in it."""
    if absent := side.absent(made.files):
        key = FOLLOWED_PREFIX + pipeline
        followed = f"'{key}'='{made.properties[key]}'"
        raise TableUnfit(
            f"{side.name}: {pending.rows} rows that main has decided for it are gone with their "
            f"files, as after a DROP TABLE … PURGE: {absent[0]}. Nothing was written. To go on "
            "without those rows, which the audit will then miss, type: "
            + to_type(f"ALTER TABLE {side.name} SET TBLPROPERTIES ({followed})")
        )


def _stamp(progress: Progress, pending: Pending) -> Stamp:
    return Stamp(
        kind="revise" if pending.revises else "follow",
        pipeline=progress.pipeline,
        generation=progress.generation,
        sequence=pending.sequence,
        attempt=pending.attempt,
        origin=progress.origin,
        counts=replace(Counts(read=pending.rows), **{pending.fate: pending.rows}),
    )


def _guard(key: str, pending: Pending, head: int | None) -> Guard:
    """`head`: the snapshot that what is staged fits alone, if that is so."""

    def holds(base: Mapping[str, str], ancestors: Iterator[Ancestor]) -> bool:
        if _followed(base, key) >= pending.sequence:
            raise AlreadyLanded(pending.attempt)
        return head is None or next(ancestors).snapshot_id == head

    return holds


def _followed(properties: Mapping[str, str], key: str) -> int:
    text = properties.get(key)
    return 0 if text is None else int(json.loads(text)["sequence"])
