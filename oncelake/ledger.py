"""Progress and stamps: what the table says, who may write next, and where a batch belongs.

Pure but for `look`, which reads the table. The laws of the protocol are the functions here:
`claim` raises the generation, `place` compares a batch with progress, `guard` is the condition
under which a commit may land.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from oncelake.errors import Fenced, Gap, TerminalError
from oncelake.lake import Ancestor, Guard, LakeTable
from oncelake.model import (
    PROGRESS_PREFIX,
    Counts,
    Origin,
    Progress,
    Ranges,
    Span,
    Stamp,
    TopicPartition,
    non_empty,
)
from oncelake.refusals import (
    progress_key,
    refuse_changed_source,
    refuse_lost_progress,
    refuse_rollback,
)


class AlreadyLanded(Exception):
    """Raised inside a commit whose own attempt is on main already.

    It must be an exception: Iceberg takes a refusal for a clean failure and deletes the manifest
    list of the very snapshot that landed.
    """


@dataclass(frozen=True, slots=True)
class View:
    """What the table said at one moment; a commit is valid only while it still says so."""

    progress: Progress | None
    text: str | None
    head: int | None


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a batch lies: `todo` is what is still to be written of it, onto the snapshot `base`.

    `watermark` is what the batches before it have left.
    """

    ranges: Ranges
    todo: Ranges
    base: int | None = None
    watermark: int | None = None

    @property
    def outcome(self) -> str:
        if not self.todo:
            return "skipped"
        return "written" if self.todo == self.ranges else "trimmed"


def look(table: LakeTable, pipeline: str) -> View:
    """Read progress afresh, and refuse a table whose history contradicts it."""
    view = look_or_begin_anew(table, pipeline)
    if view.progress is None:
        refuse_lost_progress(table, pipeline)
    return view


def look_or_begin_anew(table: LakeTable, pipeline: str) -> View:
    """As `look`, but lost progress is taken for none. For pipelines that write what is there
    already a second time without a change; generations, sequence and the chain of stamps then
    begin anew."""
    view = look_unquestioned(table, pipeline)
    if view.progress is not None:
        refuse_rollback(table, view.progress)
    return view


def look_unquestioned(table: LakeTable, pipeline: str) -> View:
    """Read progress afresh, also that of a table which was rolled back: to mend it."""
    table.refresh()
    text = table.properties().get(progress_key(pipeline))
    return View(None if text is None else Progress.from_text(text), text, table.head())


def claimed(view: View) -> Progress:
    if view.progress is None:
        raise TerminalError("the pipeline has no progress in the table: no run has claimed it yet")
    return view.progress


def pipelines(table: LakeTable) -> tuple[Progress, ...]:
    """How far each pipeline has filled a table, as it was last refreshed: for its readers."""
    texts = (t for key, t in sorted(table.properties().items()) if key.startswith(PROGRESS_PREFIX))
    found = tuple(Progress.from_text(text) for text in texts)
    for progress in found:
        refuse_rollback(table, progress)
    return found


def claim(view: View, pipeline: str, origin: Origin, starts: Mapping[TopicPartition, int],
          attempt: str) -> tuple[Stamp, Progress]:  # fmt: skip
    """The next generation. `starts` count only for a pipeline that has no progress yet."""
    base = view.progress or Progress(
        pipeline=pipeline,
        origin=origin,
        positions={tp: Span(start, start) for tp, start in starts.items()},
    )
    live = origin.known_as(base.origin.epochs)
    refuse_changed_source(base.origin, live)
    stamp = claim_stamp("claim", base, attempt, base.origin.joined_by(live))
    return stamp, base.after(stamp, pending=base.pending)


def claim_stamp(kind: str, base: Progress, attempt: str, origin: Origin,
                ranges: Ranges | None = None) -> Stamp:  # fmt: skip
    """A stamp of one of CLAIMS: it raises the generation, and has no rows."""
    return Stamp(
        kind=kind,
        pipeline=base.pipeline,
        generation=base.generation + 1,
        sequence=base.sequence + 1,
        attempt=attempt,
        origin=origin,
        ranges=ranges or {},
        previous=base.digest,
    )


def place(progress: Progress, generation: int, ranges: Ranges,
          base: int | None = None) -> Placement:  # fmt: skip
    """Before progress: skip. At it: write. Across it: trim. Beyond it: stop, a gap."""
    if progress.generation != generation:
        raise fenced(progress, generation)
    batch = non_empty(ranges)
    missing = {
        tp: Span(progress.next_offset(tp), span.start)
        for tp, span in batch.items()
        if span.start > progress.next_offset(tp)
    }
    if missing:
        raise Gap(_describe_gap(progress.pipeline, missing))
    todo = {tp: Span(max(s.start, progress.next_offset(tp)), s.end) for tp, s in batch.items()}
    return Placement(batch, non_empty(todo), base, progress.watermark)


def batch_stamp(progress: Progress, todo: Ranges, counts: Counts, attempt: str, *,
                watermark: int | None = None, read_to: int | None = None) -> Stamp:  # fmt: skip
    return Stamp(
        kind="batch",
        pipeline=progress.pipeline,
        generation=progress.generation,
        sequence=progress.sequence + 1,
        attempt=attempt,
        origin=progress.origin,
        ranges=todo,
        counts=counts,
        previous=progress.digest,
        watermark=watermark,
        read_to=read_to,
    )


def guard(view: View, key: str, attempt: str, unmoved: bool = False) -> Guard:
    """May this attempt land on the refreshed base? Only if nothing of ours has moved.

    `unmoved`: only if nobody has committed anything, ours or not.
    """

    def holds(base: Mapping[str, str], ancestors: Iterator[Ancestor]) -> bool:
        head_found = view.head is None
        for number, ancestor in enumerate(ancestors):
            if ancestor.stamp is not None and attempt in ancestor.stamp:
                raise AlreadyLanded(attempt)
            if ancestor.snapshot_id == view.head:
                head_found = number == 0 or not unmoved
                break
        return head_found and base.get(key) == view.text

    return holds


def has_landed(table: LakeTable, view: View, attempt: str) -> bool:
    """Look an attempt up among main's snapshots newer than `view`."""
    for ancestor in table.ancestors():
        if ancestor.snapshot_id == view.head:
            return False
        if ancestor.stamp is not None and attempt in ancestor.stamp:
            return True
    return False


def fenced(progress: Progress, generation: int) -> Fenced:
    return Fenced(
        f"pipeline {progress.pipeline}: generation {generation} of this run was overtaken by "
        f"generation {progress.generation}: another run owns the pipeline now. Nothing was "
        "written by this one since; let the other run go on, or stop it before starting again"
    )


def _describe_gap(pipeline: str, missing: Ranges) -> str:
    listed = "; ".join(
        f"{tp}: offsets {span} are missing (the table stands at {span.start}, "
        f"the batch begins at {span.end})"
        for tp, span in sorted(missing.items())
    )
    return (
        f"pipeline {pipeline}: {listed}. Nothing was written. If Kafka still holds these offsets, "
        "the checkpoint is ahead of the table: move it aside and run again, the table knows "
        "where to go on. If retention has removed them, they are lost to this table"
    )
