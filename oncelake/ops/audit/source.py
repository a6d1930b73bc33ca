"""Is the topic still the one the table was filled from, and does it hold what is due? Pure."""

from __future__ import annotations

from collections.abc import Iterator

from oncelake.model import Progress, Span, kafka_name
from oncelake.ops.audit.evidence import TopicFacts
from oncelake.ops.audit.report import Finding, violated


def check_source(progress: Progress, topic: TopicFacts) -> Iterator[Finding]:
    if topic.cluster_id != progress.origin.cluster_id:
        yield violated(
            "other-cluster",
            f"cluster {topic.cluster_id}",
            f"the table was filled from cluster {progress.origin.cluster_id}: these offsets are "
            "those of other rows",
        )
        return
    others = former_epochs(progress)
    for name, known in sorted(progress.origin.topic_ids.items()):
        if name in others:
            continue
        live = topic.topic_ids.get(name)
        if live is None:
            others.add(name)
            yield violated("topic-missing", name, "the topic is not in the cluster any more")
        elif live != known:
            others.add(name)
            yield violated(
                "other-topic",
                name,
                f"the topic was deleted and created again (id {known} became {live}): its offsets "
                "are those of other rows",
            )
    for tp in sorted(progress.positions.keys() | topic.offsets.keys()):
        if tp.topic not in others:
            yield from _check_offsets(str(tp), progress.next_offset(tp), topic.offsets.get(tp))


def former_epochs(progress: Progress) -> set[str]:
    """Topics that are no more: Kafka has others under their names."""
    newest = progress.origin.epochs.ledger_name
    return {name for name in progress.origin.topic_ids if newest(kafka_name(name)) != name}


def _check_offsets(where: str, due: int, held: Span | None) -> Iterator[Finding]:
    if held is None:
        yield violated("partition-missing", where, "the topic has no such partition any more")
    elif due > held.end:
        yield violated(
            "beyond-topic",
            where,
            f"the table has offsets up to {due}, the topic ends at {held.end}: it was truncated",
        )
    elif due < held.start:
        yield violated(
            "lost-to-retention",
            where,
            f"offsets {Span(due, held.start)} were removed from the topic before they were read",
        )
