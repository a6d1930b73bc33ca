"""Progress and stamps: what the table says, who may write next, and where a batch belongs.

Pure but for `look`, which reads the table. The laws of the protocol are the functions here:
`claim` raises the generation, `place` compares a batch with progress, `guard` is the condition
under which a commit may land.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from oncelake.errors import Fenced, Gap, RolledBack, SourceChanged, TableUnfit
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
    show_ranges,
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


def progress_key(pipeline: str) -> str:
    return PROGRESS_PREFIX + pipeline


def look(table: LakeTable, pipeline: str, rebuild: bool = False) -> View:
    """Read progress afresh, and refuse a table whose history contradicts it.

    `rebuild`: lost progress is taken for none. For pipelines that write what is there already a
    second time without a change; generations, sequence and the chain of stamps then begin anew.
    """
    table.refresh()
    text = table.properties().get(progress_key(pipeline))
    progress = None if text is None else Progress.from_text(text)
    if progress is not None:
        _refuse_rollback(table, progress)
    elif not rebuild:
        _refuse_lost_progress(table, pipeline)
    return View(progress, text, table.head())


def pipelines(table: LakeTable) -> tuple[Progress, ...]:
    """How far each pipeline has filled a table, as it was last refreshed: for its readers."""
    texts = (t for key, t in sorted(table.properties().items()) if key.startswith(PROGRESS_PREFIX))
    found = tuple(Progress.from_text(text) for text in texts)
    for progress in found:
        _refuse_rollback(table, progress)
    return found


def claim(view: View, pipeline: str, origin: Origin, starts: Mapping[TopicPartition, int],
          attempt: str) -> tuple[Stamp, Progress]:  # fmt: skip
    """The next generation. `starts` count only for a pipeline that has no progress yet."""
    base = view.progress or Progress(
        pipeline=pipeline,
        origin=origin,
        positions={tp: Span(start, start) for tp, start in starts.items()},
    )
    refuse_changed_source(base.origin, origin)
    stamp = Stamp(
        kind="claim",
        pipeline=pipeline,
        generation=base.generation + 1,
        sequence=base.sequence + 1,
        attempt=attempt,
        origin=Origin(origin.cluster_id, {**base.origin.topic_ids, **origin.topic_ids}),
        previous=base.digest,
    )
    return stamp, base.after(stamp, pending=base.pending)


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


def refuse_gone(progress: Progress, held: Ranges) -> None:
    """Refuse to go on where Kafka, which now holds these offsets, has removed some that are due."""
    gone = {
        tp: Span(progress.next_offset(tp), span.start)
        for tp, span in held.items()
        if span.start > progress.next_offset(tp)
    }
    if gone:
        listed = "; ".join(
            f"{tp}: offsets {span} (the table stands at {span.start}, the topic begins at "
            f"{span.end})"
            for tp, span in sorted(gone.items())
        )
        raise Gap(
            f"pipeline {progress.pipeline}: Kafka has removed offsets that are due: {listed}. "
            "Nothing was written. Retention or a deletion of records has passed this table: give "
            "the topic a longer retention.ms and restore the offsets, or write what is left of it "
            "to a table of its own (table.name in the spec)"
        )


def refuse_same_topic_twice(table: LakeTable, pipeline: str, origin: Origin) -> None:
    """A renamed pipeline would read its topic into the same table a second time."""
    for key, text in table.properties().items():
        if not key.startswith(PROGRESS_PREFIX) or key == progress_key(pipeline):
            continue
        other = Progress.from_text(text)
        shared = set(other.origin.topic_ids.values()) & set(origin.topic_ids.values())
        if other.origin.cluster_id == origin.cluster_id and shared:
            raise TableUnfit(
                f"{table.name} is already filled from this topic by pipeline {other.pipeline}; as "
                f"{pipeline} it would be written a second time. Name the pipeline "
                f"{other.pipeline} again, or give this one a table of its own"
            )


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


def _refuse_lost_progress(table: LakeTable, pipeline: str) -> None:
    for ancestor in table.stamps():
        if ancestor.stamp is not None and Stamp.from_text(ancestor.stamp).pipeline == pipeline:
            raise TableUnfit(
                f"{table.name}: snapshot {ancestor.snapshot_id} was written by pipeline "
                f"{pipeline}, but the property {progress_key(pipeline)} is gone. Writing on could "
                "double rows: restore the property, or give the pipeline a table of its own"
            )


def _refuse_rollback(table: LakeTable, progress: Progress) -> None:
    if any(a.stamp is not None and progress.attempt in a.stamp for a in table.ancestors()):
        return
    if any(a.stamp is not None and progress.attempt in a.stamp for a in table.stamps()):
        positions = show_ranges(progress.positions)
        raise RolledBack(
            f"{table.name}: progress says {positions}, but main was rolled back behind the "
            f"commit that wrote so far (attempt {progress.attempt}). Roll forward to it again: "
            f"SELECT * FROM {table.name}.snapshots shows the snapshots"
        )


def refuse_changed_source(known: Origin, live: Origin) -> None:
    if known.cluster_id != live.cluster_id:
        raise SourceChanged(
            f"the table was filled from Kafka cluster {known.cluster_id}, and this is cluster "
            f"{live.cluster_id}: its offsets mean other rows. Point source.bootstrap at the "
            "former cluster, or give this one a pipeline and table of its own"
        )
    for topic, topic_id in live.topic_ids.items():
        if known.topic_ids.get(topic, topic_id) != topic_id:
            raise SourceChanged(
                f"topic {topic} was deleted and created again (id {known.topic_ids[topic]} became "
                f"{topic_id}): its offsets mean other rows. Give it a pipeline and table of its own"
            )
