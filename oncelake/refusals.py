"""Where a pipeline stops and does not guess: a table or a topic that contradicts its progress."""

from __future__ import annotations

from oncelake.errors import (
    Gap,
    OncelakeError,
    RolledBack,
    SourceChanged,
    TableUnfit,
    TransientError,
    to_type,
)
from oncelake.lake import LakeTable
from oncelake.model import (
    PROGRESS_PREFIX,
    Origin,
    Progress,
    Ranges,
    Span,
    Stamp,
    kafka_name,
    show_ranges,
)

REBASE = (
    "go on with what is there now, from its beginning and beside the rows that are in the table, "
    "type: oncelake recover PIPELINE.yaml --rebase. Or give it a pipeline and table of its own"
)


# Iceberg's words where a commit's time is more than a minute before that of the one before it.
EARLIER = "Expected sorted snapshot log entries"


def progress_key(pipeline: str) -> str:
    return PROGRESS_PREFIX + pipeline


def refuse_rollback(table: LakeTable, progress: Progress) -> None:
    if any(a.stamp is not None and progress.attempt in a.stamp for a in table.ancestors()):
        return
    if any(a.stamp is not None and progress.attempt in a.stamp for a in table.stamps()):
        positions = show_ranges(progress.positions)
        raise RolledBack(
            f"{table.name}: progress says {positions}, but main was rolled back behind the "
            f"commit that wrote so far (attempt {progress.attempt}). To roll it forward again, "
            f"which loses no row of ours, type: {roll_forward(table, progress)}. To write again "
            "what is lost, from Kafka: oncelake recover PIPELINE.yaml --rewrite. To go on without "
            "it, which the audit will show for ever: oncelake recover PIPELINE.yaml "
            "--accept-rollback. With --dry-run either of these shows the offsets first"
        )


def roll_forward(table: LakeTable, progress: Progress) -> str:
    """What to type to have main at the last commit of progress again."""
    last = next(a for a in table.stamps() if a.stamp is not None and progress.attempt in a.stamp)
    catalog, _, name = table.name.partition(".")
    return to_type(f"CALL {catalog}.system.set_current_snapshot('{name}', {last.snapshot_id})")


def refuse_lost_progress(table: LakeTable, pipeline: str) -> None:
    for ancestor in table.stamps():
        if ancestor.stamp is not None and Stamp.from_text(ancestor.stamp).pipeline == pipeline:
            raise TableUnfit(
                f"{table.name}: snapshot {ancestor.snapshot_id} was written by pipeline "
                f"{pipeline}, but the property {progress_key(pipeline)} is gone. Writing on could "
                "double rows: restore the property, or give the pipeline a table of its own"
            )


def refuse_changed_source(known: Origin, live: Origin) -> None:
    if known.cluster_id != live.cluster_id:
        raise SourceChanged(
            f"the table was filled from Kafka cluster {known.cluster_id}, and this is cluster "
            f"{live.cluster_id}: its offsets mean other rows. Point source.bootstrap at the "
            f"former cluster, or {REBASE}"
        )
    for topic, topic_id in live.topic_ids.items():
        if known.topic_ids.get(topic, topic_id) != topic_id:
            raise SourceChanged(
                f"topic {kafka_name(topic)} was deleted and created again (id "
                f"{known.topic_ids[topic]} became "
                f"{topic_id}): its offsets mean other rows. To {REBASE}"
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


def refuse_gone(progress: Progress, held: Ranges) -> None:
    """Refuse to go on where Kafka, which now holds these offsets, has removed some that are due."""
    if gone := removed(progress, held):
        listed = "; ".join(
            f"{tp}: offsets {span} (the table stands at {span.start}, the topic begins at "
            f"{span.end})"
            for tp, span in sorted(gone.items())
        )
        raise Gap(
            f"pipeline {progress.pipeline}: Kafka has removed offsets that are due: {listed}. "
            "Nothing was written. Retention or a deletion of records has passed this table: give "
            "the topic a longer retention.ms, and restore these records if you can. To go on "
            "without them, which the audit will show for ever, type: "
            "oncelake recover PIPELINE.yaml --accept-gap"
        )


def removed(progress: Progress, held: Ranges) -> Ranges:
    """What is due and was removed by Kafka, which now holds these offsets by its own names."""
    first = progress.origin.epochs.in_ledger(held)
    return {
        tp: Span(progress.next_offset(tp), span.start)
        for tp, span in first.items()
        if span.start > progress.next_offset(tp)
    }


def given_up(doing: str, answer: Exception | None) -> OncelakeError:
    """What is not tried any more, and why."""
    if EARLIER in str(answer):
        return TableUnfit(
            f"{doing} was refused: by the clock of this machine it is more than a minute earlier "
            "than by the one that made the table's last commit, and Iceberg takes none that is "
            "earlier. Nothing was written. See what time it is here, type: date -u. Where this "
            "clock is right, commits are taken again once it has passed the other's time"
        )
    return TransientError(f"{doing} failed again and again; last answer: {answer}")
