"""Has quarantine followed main: all that main decided, once, and nothing else? Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from oncelake.model import Pending, Progress, Stamp
from oncelake.ops.audit.chain import UNREADABLE, Sealed
from oncelake.ops.audit.evidence import Evidence, History
from oncelake.ops.audit.report import Finding, explained, violated


def followed_to(text: str | None) -> tuple[int, str]:
    """The sequence and attempt quarantine has followed to; 0 where it never has."""
    if text is None:
        return 0, ""
    try:
        data = json.loads(text)
        return int(data["sequence"]), str(data["attempt"])
    except UNREADABLE:
        return 0, ""


def waiting(progress: Progress, evidence: Evidence) -> dict[int, Pending]:
    """What main decided for quarantine and is not published there yet, by sequence."""
    reached, _ = followed_to(evidence.followed_text)
    return {
        pending.sequence: pending
        for pending in progress.pending
        if pending.table == evidence.quarantine.table and pending.sequence > reached
    }


def check_following(evidence: Evidence, progress: Progress, stamps: Mapping[int, Stamp],
                    follows: Sequence[Sealed]) -> Iterator[Finding]:  # fmt: skip
    """`stamps` are main's by sequence, `follows` those on quarantine."""
    yield from _check_followed(evidence, progress, stamps)
    yield from _check_pending(waiting(progress, evidence), stamps, evidence.quarantine.table)
    yield from _check_decided(evidence, progress, stamps, follows)
    yield from _check_follows(progress, stamps, follows, evidence.quarantine.table)


def _check_followed(evidence: Evidence, progress: Progress, stamps: Mapping[int, Stamp]
                    ) -> Iterator[Finding]:  # fmt: skip
    sequence, attempt = followed_to(evidence.followed_text)
    expected = stamps[sequence].attempt if sequence in stamps else attempt
    if evidence.followed_text is not None and (sequence > progress.sequence or attempt != expected):
        yield violated(
            "followed-ahead",
            evidence.quarantine.table,
            f"it says it has followed main to sequence {sequence}, attempt {attempt!r}, which "
            "main does not know: what main decides next may be taken for published",
        )
    if evidence.followed_text is not None and not sequence:
        yield violated(
            "followed-unreadable", evidence.quarantine.table, "how far it has followed main "
            f"cannot be read: {evidence.followed_text[:80]!r}"
        )  # fmt: skip


def _check_pending(pending: Mapping[int, Pending], stamps: Mapping[int, Stamp], table: str
                   ) -> Iterator[Finding]:  # fmt: skip
    for sequence, each in pending.items():
        stamp = stamps.get(sequence)
        if stamp and (stamp.attempt, stamp.counts.quarantined) != (each.attempt, each.rows):
            yield violated(
                "pending-mismatch",
                table,
                f"progress keeps {each.rows} rows of sequence {sequence} for it, the stamp says "
                f"{stamp.counts.quarantined}, or another attempt",
            )
        else:
            yield explained(
                "pending",
                table,
                f"{each.rows} rows that sequence {sequence} decided are staged and not published "
                "here yet: the next run does so",
            )


def _check_decided(evidence: Evidence, progress: Progress, stamps: Mapping[int, Stamp],
                   follows: Sequence[Sealed]) -> Iterator[Finding]:  # fmt: skip
    """Every stamp that quarantined rows has its counterpart here."""
    seen = {each.stamp.sequence for each in follows}
    ahead, (reached, _) = waiting(progress, evidence), followed_to(evidence.followed_text)
    for sequence, stamp in stamps.items():
        if not stamp.counts.quarantined or sequence in ahead or sequence in seen:
            continue
        if sequence > reached:
            yield violated(
                "quarantine-behind",
                evidence.quarantine.table,
                f"sequence {sequence} quarantined {stamp.counts.quarantined} rows, which are "
                "neither published here nor kept as pending in main's progress",
            )
        elif not _may_be_expired(evidence.quarantine, follows, sequence):
            yield violated(
                "stamp-missing",
                evidence.quarantine.table,
                f"the stamp for sequence {sequence} is gone, though its snapshot was not expired",
            )


def _may_be_expired(history: History, follows: Sequence[Sealed], sequence: int) -> bool:
    return not history.complete and (not follows or follows[0].stamp.sequence > sequence)


def _check_follows(progress: Progress, stamps: Mapping[int, Stamp], follows: Sequence[Sealed],
                   table: str) -> Iterator[Finding]:  # fmt: skip
    reached = 0
    for each in follows:
        for message in _wrong_follow(each, stamps.get(each.stamp.sequence), progress, reached):
            yield violated("follow", f"{table}, {each}", message)
        reached = max(reached, each.stamp.sequence)


def _wrong_follow(sealed: Sealed, decided: Stamp | None, progress: Progress, reached: int
                  ) -> Iterator[str]:  # fmt: skip
    stamp = sealed.stamp
    if stamp.kind != "follow":
        yield f"a stamp of kind {stamp.kind!r} on a side table"
    if stamp.sequence <= reached:
        yield f"published after sequence {reached}: these rows may be here twice"
    if stamp.sequence > progress.sequence:
        yield f"published, but main stands at sequence {progress.sequence}: it never decided this"
    rows = sealed.snapshot.number("added-records")
    if rows != stamp.counts.quarantined:
        yield f"the stamp says {stamp.counts.quarantined} rows, the snapshot added {rows}"
    if decided is None:
        return
    if (stamp.attempt, stamp.counts.quarantined) != (decided.attempt, decided.counts.quarantined):
        yield (
            f"{stamp.counts.quarantined} rows of attempt {stamp.attempt}, where main decided "
            f"{decided.counts.quarantined} of attempt {decided.attempt}"
        )
    if stamp.ranges and stamp.ranges != decided.ranges:
        yield "its ranges are not those of main's commit"
