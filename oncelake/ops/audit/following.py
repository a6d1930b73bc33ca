"""Have the side tables followed main: all that main decided, once, and nothing else? Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from oncelake.model import SIDE_FATES, Pending, Progress, Stamp
from oncelake.ops.audit.accounts import Account
from oncelake.ops.audit.chain import UNREADABLE, Sealed
from oncelake.ops.audit.evidence import Evidence, History, Side
from oncelake.ops.audit.report import Finding, explained, violated


def followed_to(text: str | None) -> tuple[int, str]:
    """The sequence and attempt a side table has followed to; 0 where it never has."""
    if text is None:
        return 0, ""
    try:
        data = json.loads(text)
        return int(data["sequence"]), str(data["attempt"])
    except UNREADABLE:
        return 0, ""


def waiting(progress: Progress, side: Side) -> dict[int, Pending]:
    """What main decided for a side table and is not published there yet, by sequence."""
    reached, _ = followed_to(side.followed_text)
    return {
        pending.sequence: pending
        for pending in progress.pending
        if (pending.table, pending.fate) == (side.table, side.fate) and pending.sequence > reached
    }


def check_sides_known(evidence: Evidence, accounts: Sequence[Account]) -> Iterator[Finding]:
    """Every fate of which rows are kept has its table among those that were looked at."""
    known = {side.fate for side in evidence.sides}
    for fate in SIDE_FATES:
        keeping = [each for each in accounts if each.counts.kept(fate) > 0]
        if keeping and fate not in known:
            yield violated(
                "side-unknown",
                evidence.main.table,
                f"{sum(each.counts.kept(fate) for each in keeping)} rows were kept as {fate}, the "
                f"last of them by {keeping[-1].name}, but the audit was not told of the table that "
                "keeps them: audit with the spec the pipeline ran with, or name that table in "
                "Names.sides",
            )


def check_following(side: Side, progress: Progress, stamps: Mapping[int, Stamp],
                    follows: Sequence[Sealed]) -> Iterator[Finding]:  # fmt: skip
    """`stamps` are main's by sequence, `follows` those on the side table."""
    yield from _check_followed(side, progress, stamps)
    yield from _check_pending(side, progress, stamps)
    yield from _check_decided(side, progress, stamps, follows)
    yield from _check_follows(side, progress, stamps, follows)


def _check_followed(side: Side, progress: Progress, stamps: Mapping[int, Stamp]
                    ) -> Iterator[Finding]:  # fmt: skip
    sequence, attempt = followed_to(side.followed_text)
    expected = stamps[sequence].attempt if sequence in stamps else attempt
    if side.followed_text is not None and (sequence > progress.sequence or attempt != expected):
        yield violated(
            "followed-ahead",
            side.table,
            f"it says it has followed main to sequence {sequence}, attempt {attempt!r}, which "
            "main does not know: what main decides next may be taken for published",
        )
    if side.followed_text is not None and not sequence:
        yield violated(
            "followed-unreadable",
            side.table,
            f"how far it has followed main cannot be read: {side.followed_text[:80]!r}",
        )


def _check_pending(side: Side, progress: Progress, stamps: Mapping[int, Stamp]
                   ) -> Iterator[Finding]:  # fmt: skip
    for sequence, each in waiting(progress, side).items():
        stamp = stamps.get(sequence)
        if stamp and (stamp.attempt, stamp.counts.kept(side.fate)) != (each.attempt, each.rows):
            yield violated(
                "pending-mismatch",
                side.table,
                f"progress keeps {each.rows} rows of sequence {sequence} for it, the stamp says "
                f"{stamp.counts.kept(side.fate)}, or another attempt",
            )
        else:
            what = f"{each.rows} rows that sequence {sequence} decided are staged and not published"
            if each.revises:
                what = f"rows that sequence {sequence} decided to mark or to drop are not so"
            yield explained("pending", side.table, f"{what} here yet: the next run does so")


def _check_decided(side: Side, progress: Progress, stamps: Mapping[int, Stamp],
                   follows: Sequence[Sealed]) -> Iterator[Finding]:  # fmt: skip
    """Every stamp that kept rows of this fate has its counterpart here."""
    seen = {each.stamp.sequence for each in follows}
    ahead, (reached, _) = waiting(progress, side), followed_to(side.followed_text)
    for sequence, stamp in stamps.items():
        kept = stamp.counts.kept(side.fate)
        if not kept or sequence in ahead or sequence in seen:
            continue
        if sequence > reached:
            yield violated(
                "side-behind",
                side.table,
                f"sequence {sequence} kept {kept} rows as {side.fate}, which are neither published "
                "here nor kept as pending in main's progress",
            )
        elif not _may_be_expired(side.history, follows, sequence):
            yield violated(
                "stamp-missing",
                side.table,
                f"the stamp for sequence {sequence} is gone, though its snapshot was not expired",
            )


def _may_be_expired(history: History, follows: Sequence[Sealed], sequence: int) -> bool:
    return not history.complete and (not follows or follows[0].stamp.sequence > sequence)


def _check_follows(side: Side, progress: Progress, stamps: Mapping[int, Stamp],
                   follows: Sequence[Sealed]) -> Iterator[Finding]:  # fmt: skip
    reached = 0
    for each in follows:
        decided = stamps.get(each.stamp.sequence)
        for message in (
            *_out_of_turn(each.stamp, progress, reached),
            *_wrong_rows(each, decided, side.fate),
        ):
            yield violated("follow", f"{side.table}, {each}", message)
        reached = max(reached, each.stamp.sequence)


def _out_of_turn(stamp: Stamp, progress: Progress, reached: int) -> Iterator[str]:
    if stamp.kind not in ("follow", "revise"):
        yield f"a stamp of kind {stamp.kind!r} on a side table"
    if stamp.sequence <= reached:
        yield f"published after sequence {reached}: these rows may be here twice"
    if stamp.sequence > progress.sequence:
        yield f"published, but main stands at sequence {progress.sequence}: it never decided this"


def _wrong_rows(sealed: Sealed, decided: Stamp | None, fate: str) -> Iterator[str]:
    stamp, added = sealed.stamp, sealed.snapshot.number("added-records")
    if stamp.kind == "revise":
        return
    rows = getattr(stamp.counts, fate)
    if rows != added:
        yield f"the stamp says {rows} rows {fate}, the snapshot added {added}"
    if decided is None:
        return
    if (stamp.attempt, rows) != (decided.attempt, decided.counts.kept(fate)):
        yield (
            f"{rows} rows of attempt {stamp.attempt}, where main decided "
            f"{decided.counts.kept(fate)} of attempt {decided.attempt}"
        )
    if stamp.ranges and stamp.ranges != decided.ranges:
        yield "its ranges are not those of main's commit"
