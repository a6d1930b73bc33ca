"""What a person decides about progress: each is a claim too, so that no older run goes on with what
it knew, and one guarded commit like any other. A stamp says what was decided, and of a loss
progress keeps it when the stamp is expired.

accept_gap       Kafka has removed offsets that were due: go on without them
rebase           the topic was made anew: go on with it, as a topic of its own
rewrite          main was rolled back: go back too, and write again from Kafka what is lost
accept_rollback  main was rolled back: go on without what is lost
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from oncelake import ledger
from oncelake.errors import Gap, TerminalError
from oncelake.lake import Ancestor, LakeTable
from oncelake.ledger import View
from oncelake.model import (
    QUARANTINED,
    SIDE_FATES,
    Epochs,
    Origin,
    Pending,
    Progress,
    Ranges,
    Span,
    Stamp,
    TopicPartition,
    next_epoch,
    show_ranges,
    union,
)
from oncelake.refusals import refuse_changed_source, removed, roll_forward

Change = Callable[[View, str], tuple[Stamp, Progress]]
"""From what the table says, and an attempt, to the stamp and progress that are to be committed."""


def accept_gap(origin: Origin, held: Ranges) -> Change:
    """`held` is what Kafka holds now."""

    def change(view: View, attempt: str) -> tuple[Stamp, Progress]:
        base = ledger.claimed(view)
        live = origin.known_as(base.origin.epochs)
        refuse_changed_source(base.origin, live)
        lost = removed(base, held)
        if not lost:
            raise TerminalError(
                f"pipeline {base.pipeline}: Kafka still holds every offset that is due: there is "
                "no gap to accept"
            )
        stamp = ledger.claim_stamp("gap", base, attempt, base.origin.joined_by(live), lost)
        return stamp, base.after(stamp, pending=base.pending)

    return change


def rebase(origin: Origin, starts: Mapping[TopicPartition, int]) -> Change:
    """`starts` is where the topics begin now."""

    def change(view: View, attempt: str) -> tuple[Stamp, Progress]:
        base = ledger.claimed(view)
        epochs = _epochs_now(base.origin, origin)
        known = base.origin.joined_by(origin.known_as(epochs))
        if known == base.origin:
            raise TerminalError(
                f"pipeline {base.pipeline}: the cluster and its topics are those that the table "
                "was filled from: there is nothing to rebase"
            )
        stamp = ledger.claim_stamp("rebase", base, attempt, known)
        begun = {
            tp: Span(start, start)
            for tp, start in epochs.in_ledger(starts).items()
            if tp.topic not in base.origin.topic_ids
        }
        return stamp, base.after(stamp, pending=base.pending).beginning(begun)

    return change


def rewrite(main: LakeTable, sides: Mapping[str, LakeTable]) -> Change:
    """The side tables give up their rows of the lost ranges: those too are written again."""

    def change(view: View, attempt: str) -> tuple[Stamp, Progress]:
        base = ledger.claimed(view)
        kept, lost = _rolled_back(main, base)
        mark = next((stamp.watermark for stamp in kept if stamp.watermark is not None), None)
        if mark is None and base.watermark is not None and kept and kept[-1].previous:
            raise TerminalError(
                f"{main.name}: the watermark that was in force before the lost commits cannot be "
                "told: the snapshots that name it were expired. Rows could be judged otherwise "
                "than then, so this was not done. Roll main forward again, or accept the rollback"
            )
        before = replace(base.without(lost), watermark=mark)
        stamp = _after_rollback("rewind", base, attempt, kept)
        return stamp, before.after(stamp, [*before.pending, *_given_up(base, lost, stamp, sides)])

    return change


def while_held(rewriting: Change, main: LakeTable, origin: Origin, held: Ranges) -> Change:
    """Refused where Kafka, which now holds these offsets, has removed some that would be written
    again: what the rollback took away, and could be had back, would be lost for good."""

    def change(view: View, attempt: str) -> tuple[Stamp, Progress]:
        base = ledger.claimed(view)
        refuse_changed_source(base.origin, origin.known_as(base.origin.epochs))
        stamp, after = rewriting(view, attempt)
        if gone := _gone(base, after, base.origin.epochs.in_ledger(held)):
            raise Gap(
                f"{main.name}: of what would be written again Kafka has removed "
                f"{show_ranges(gone)}. Nothing was changed. To roll main forward again, which "
                f"loses no row of ours, type: {roll_forward(main, base)}. To go on without all "
                "that was rolled back: oncelake recover PIPELINE.yaml --accept-rollback"
            )
        return stamp, after

    return change


def _gone(base: Progress, after: Progress, held: Ranges) -> Ranges:
    """What is due again and not to be had; but a gap that was accepted before is known to be."""
    gaps = [each.ranges for each in base.accepted if each.kind == "gap"]
    gone: dict[TopicPartition, Span] = {}
    for tp, (_, end) in base.positions.items():
        begin = after.next_offset(tp)
        first = held[tp].start if tp in held else end
        lost = Span(begin, max(begin, min(first, end)))
        known = sum(_overlap(lost, gap[tp]) for gap in gaps if tp in gap)
        if known < lost.end - lost.start:
            gone[tp] = lost
    return gone


def _overlap(one: Span, other: Span) -> int:
    return max(0, min(one.end, other.end) - max(one.start, other.start))


def accept_rollback(main: LakeTable, sides: Mapping[str, LakeTable]) -> Change:
    """The side tables give up their rows of the lost ranges: they follow main."""

    def change(view: View, attempt: str) -> tuple[Stamp, Progress]:
        base = ledger.claimed(view)
        kept, lost = _rolled_back(main, base)
        ranges = union(stamp.ranges for stamp in lost)
        # Where only claims were lost, nothing is.
        stamp = _after_rollback("rollback" if ranges else "rewind", base, attempt, kept, ranges)
        # The watermark stays, and the stamp that named it is lost: so this one does.
        stamp = replace(stamp, watermark=base.watermark)
        before = base.without(lost)
        return stamp, before.after(stamp, [*before.pending, *_given_up(base, lost, stamp, sides)])

    return change


def _rolled_back(main: LakeTable, progress: Progress) -> tuple[list[Stamp], list[Stamp]]:
    """The pipeline's stamps that main has, and those that it lost, each from the newest back."""
    kept = _stamps(main.ancestors(), progress.pipeline)
    if any(stamp.attempt == progress.attempt for stamp in kept):
        raise TerminalError(f"{main.name} was not rolled back: there is nothing to recover from")
    every = {stamp.digest: stamp for stamp in _stamps(main.stamps(), progress.pipeline)}
    lost: list[Stamp] = []
    digest, end = progress.digest, kept[0].digest if kept else ""
    while digest != end:
        if digest not in every:
            raise TerminalError(
                f"{main.name} was rolled back, and what it lost cannot be told any more: the "
                f"snapshot before sequence {lost[-1].sequence if lost else progress.sequence} of "
                f"pipeline {progress.pipeline} was expired. Write the topic into a table of its own"
            )
        lost.append(every[digest])
        digest = every[digest].previous
    return kept, lost


def _after_rollback(kind: str, base: Progress, attempt: str, kept: Sequence[Stamp],
                    ranges: Ranges | None = None) -> Stamp:  # fmt: skip
    """It goes on from the newest stamp that main has; its sequence, which side tables go by, from
    the newest there was."""
    stamp = ledger.claim_stamp(kind, base, attempt, base.origin, ranges)
    return replace(stamp, previous=kept[0].digest if kept else "")


def _stamps(ancestors: Iterable[Ancestor], pipeline: str) -> list[Stamp]:
    found = [Stamp.from_text(each.stamp) for each in ancestors if each.stamp is not None]
    return [stamp for stamp in found if stamp.pipeline == pipeline]


def _given_up(base: Progress, lost: Sequence[Stamp], stamp: Stamp,
              sides: Mapping[str, LakeTable]) -> Iterator[Pending]:  # fmt: skip
    """What side tables are to be without; they may not have done what they were told before."""
    for fate in SIDE_FATES:
        told = [each for each in base.pending if each.fate == fate]
        without = (each.without for each in told)
        ranges = union([*without, *(each.ranges for each in lost if each.counts.kept(fate))])
        void = {number for each in told for number in each.unmarked}
        if fate == QUARANTINED:
            void |= {each.sequence for each in lost if each.kind == "replay"}
        if (ranges or void) and fate not in sides:
            raise TerminalError(
                f"the lost commits kept rows as {fate}, and the spec names no table for them: "
                "recover with the spec that the pipeline ran with"
            )
        if ranges or void:
            decided = (sides[fate].name, stamp.sequence, stamp.attempt)
            yield Pending(*decided, (), 0, fate, ranges, unmarked=tuple(sorted(void)))


def _epochs_now(known: Origin, live: Origin) -> Epochs:
    """A topic whose id is not the one that is known begins its next epoch."""
    names = {}
    for topic, number in live.topic_ids.items():
        name = known.epochs.ledger_name(topic)
        made_anew = known.topic_ids.get(name, number) != number
        names[topic] = next_epoch(name) if made_anew else name
    return Epochs(names)
