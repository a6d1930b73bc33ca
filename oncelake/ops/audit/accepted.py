"""What a person let the pipeline go on without, or with: shown for ever. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oncelake.model import LOSSES, Progress, kafka_name, show_ranges
from oncelake.ops.audit.chain import Sealed
from oncelake.ops.audit.report import Finding, explained, violated

HOW = {
    "gap": "were removed from Kafka before they were read, and a person has accepted that",
    "rollback": "were lost by a rollback of the table, and a person has accepted that",
}


def check_accepted(progress: Progress, sealed: Sequence[Sealed]) -> Iterator[Finding]:
    """Every acceptance that progress remembers is told, and has its stamp unless that expired."""
    where = f"progress of {progress.pipeline}"
    stamped = {s.stamp.sequence: s for s in sealed if s.stamp.kind in LOSSES}
    for each in progress.accepted:
        stamp = stamped.pop(each.sequence, None)
        ranges = show_ranges(each.ranges)
        if stamp and (stamp.stamp.kind, stamp.stamp.ranges) == (each.kind, each.ranges):
            yield explained(f"{each.kind}-accepted", stamp, f"{ranges} {HOW[each.kind]}")
        elif stamp or (sealed and each.sequence >= sealed[0].stamp.sequence):
            yield violated(
                "accepted-mismatch",
                where,
                f"it says that sequence {each.sequence} accepted the loss of {ranges}; the stamp "
                "says otherwise, or is gone",
            )
        else:
            yield explained(
                f"{each.kind}-accepted",
                where,
                f"{ranges} {HOW.get(each.kind, each.kind)}; the stamp of it was expired",
            )
    for stamp in stamped.values():
        yield violated("accepted-mismatch", stamp, "a loss that progress does not remember")


def check_epochs(progress: Progress) -> Iterator[Finding]:
    """Topics that were made anew, or are in another cluster, with a person's consent."""
    for topic, number in sorted(progress.origin.topic_ids.items()):
        if topic != (name := kafka_name(topic)):
            yield explained(
                "rebased",
                topic,
                f"{name} was made anew (id {number}); its rows go by this name since, beside "
                "those of the former one, which Kafka can no longer be asked for",
            )
