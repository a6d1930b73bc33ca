"""Are the stamps a table still has whole, unaltered, and one after the other? Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from oncelake.model import CLAIMS, LOSSES, REWINDS, SIDE_FATES, Counts, Origin, Stamp, show_ranges
from oncelake.ops.audit.evidence import History, Snapshot
from oncelake.ops.audit.report import Finding, violated

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNREADABLE = (ValueError, KeyError, TypeError, AttributeError)
"""What reading a damaged stamp or progress can raise."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """A stamp with the snapshot it was found on; `index` is its place among the ancestors."""

    index: int
    snapshot: Snapshot
    stamp: Stamp

    def __str__(self) -> str:
        return f"{self.snapshot} (sequence {self.stamp.sequence})"


def stamp_of(snapshot: Snapshot) -> Stamp | None:
    """The stamp of a snapshot, or None where it has none that can be read."""
    if snapshot.stamp_text is None:
        return None
    try:
        return Stamp.from_text(snapshot.stamp_text)
    except UNREADABLE:
        return None


def stamps_of(history: History, pipeline: str) -> tuple[Sealed, ...]:
    """The stamps of one pipeline among main's ancestors, oldest first."""
    found = ((i, s, stamp_of(s)) for i, s in enumerate(history.ancestors))
    return tuple(
        Sealed(i, s, stamp) for i, s, stamp in found if stamp and stamp.pipeline == pipeline
    )


def check_seals(history: History, pipeline: str) -> Iterator[Finding]:
    """Each stamp reads as it was written: its digest is that of its words."""
    for snapshot in history.ancestors:
        if snapshot.stamp_text is not None and stamp_of(snapshot) is None:
            yield violated(
                "stamp-unreadable",
                snapshot,
                f"the stamp on {history.table} is no stamp any more: "
                f"{snapshot.stamp_text[:80]!r}; what this snapshot holds cannot be told",
            )
    for sealed in stamps_of(history, pipeline):
        if sealed.snapshot.stamp_text != sealed.stamp.to_text():
            yield violated(
                "stamp-altered",
                sealed,
                "the stamp does not match its digest: it was changed after the commit",
            )


def check_chain(sealed: Sequence[Sealed], history: History) -> Iterator[Finding]:
    """Every stamp names the one before it; only the oldest may be missing, and by expiry."""
    if sealed and history.complete:
        yield from _check_first(sealed[0])
    for older, newer in pairwise(sealed):
        yield from _check_link(older, newer)
    seen: dict[str, Sealed] = {}
    for each in sealed:
        if each.stamp.attempt in seen:
            yield violated(
                "attempt-repeated",
                each,
                f"attempt {each.stamp.attempt} was published twice, first by "
                f"{seen[each.stamp.attempt]}",
            )
        seen[each.stamp.attempt] = each


def _check_first(first: Sealed) -> Iterator[Finding]:
    missing = first.stamp.sequence - 1
    if first.stamp.previous or (missing and first.stamp.kind not in REWINDS):
        yield violated(
            "stamp-missing",
            first,
            f"the {missing} stamps before sequence {first.stamp.sequence} are gone, though no "
            "snapshot of the table was expired",
        )


def _check_link(older: Sealed, newer: Sealed) -> Iterator[Finding]:
    before, after = older.stamp, newer.stamp
    step = after.sequence - before.sequence
    # The sequences that were rolled back before it are on main no longer.
    if step > 1 and after.kind not in REWINDS:
        yield violated(
            "stamp-missing",
            newer,
            f"sequences {before.sequence + 1} to {after.sequence - 1} are missing between "
            f"{older.snapshot} and this one",
        )
    elif step < 1:
        yield violated(
            "sequence-repeated", newer, f"it follows sequence {before.sequence} of {older.snapshot}"
        )
    elif after.previous != before.digest:
        yield violated(
            "chain-broken",
            newer,
            f"it follows a stamp other than the one on {older.snapshot}: one of the two was "
            "replaced after the commit",
        )
    raised = after.generation - before.generation
    if raised < 0 or (raised > 0) != (after.kind in CLAIMS):
        yield violated(
            "generation",
            newer,
            f"a {after.kind} of generation {after.generation} after generation "
            f"{before.generation}: only a claim raises it, and a fenced run may not write",
        )
    same = same_topics if after.kind in ("rebase", *REWINDS) else same_origin
    if not same(before.origin, after.origin):
        yield violated("origin-changed", newer, "it was read from another cluster or topic")


def check_watermarks(sealed: Sequence[Sealed]) -> Iterator[Finding]:
    """No stamp sets the watermark back: rows that were late before would not be any more."""
    marked = [(each, each.stamp.watermark) for each in sealed]
    known = [(each, mark) for each, mark in marked if mark is not None]
    for (older, before), (newer, after) in pairwise(known):
        if after < before:
            yield violated(
                "watermark-back",
                newer,
                f"its watermark is {as_time(after)}, that of {older} was {as_time(before)}: "
                "whether a row was late was not judged alike",
            )


def as_time(watermark: int | None) -> str:
    """Microseconds as a time, as far as Python's clock reaches."""
    if watermark is None:
        return "none"
    try:
        return f"{EPOCH + timedelta(microseconds=watermark):%Y-%m-%d %H:%M:%S.%f} UTC"
    except OverflowError:
        return f"{watermark} microseconds"


def same_origin(one: Origin, other: Origin) -> bool:
    """The same cluster, and the same topics where both name one."""
    return one.cluster_id == other.cluster_id and same_topics(one, other)


def same_topics(one: Origin, other: Origin) -> bool:
    shared = one.topic_ids.keys() & other.topic_ids.keys()
    return all(one.topic_ids[topic] == other.topic_ids[topic] for topic in shared)


def check_counts(sealed: Sequence[Sealed]) -> Iterator[Finding]:
    """In each stamp: read = the sum of the others, and the snapshot added what it says."""
    for each in sealed:
        for message in _miscounts(each):
            yield violated("counts", each, message)


def _miscounts(sealed: Sealed) -> Iterator[str]:
    stamp, counts = sealed.stamp, sealed.stamp.counts
    yield from _unlike_its_kind(stamp)
    if any(span.empty for span in stamp.ranges.values()):
        yield "a range that ends before it begins"
    if not counts.balanced:
        yield f"{counts.read + counts.replayed} read, but {counts.accounted} accounted for"
    if negative(counts):
        yield f"counts that cannot be: {counts.to_json()}"
    offsets = sum(span.end - span.start for span in stamp.ranges.values())
    if counts.read > offsets:
        yield f"{counts.read} rows read from ranges of {offsets} offsets"
    added = sealed.snapshot.number("added-records")
    if added != counts.written:
        yield f"{counts.written} rows written by the stamp, but the snapshot added {added}"


def _unlike_its_kind(stamp: Stamp) -> Iterator[str]:
    kind, counts = stamp.kind, stamp.counts
    if kind not in (*CLAIMS, "batch", "replay"):
        yield f"a stamp of the unknown kind {kind!r}: audit with the version that wrote it"
    if kind in CLAIMS and counts != Counts():
        yield f"a {kind} that says it read something"
    if kind in CLAIMS and bool(stamp.ranges) != (kind in LOSSES):
        yield f"a {kind} of the ranges {show_ranges(stamp.ranges) or 'none'}"
    if kind == "replay" and (counts.read or counts.quarantined or stamp.ranges):
        yield "a replay that read offsets: it takes rows of the quarantine alone"
    if kind == "batch" and counts.replayed:
        yield "a batch that says it replayed something"


def negative(counts: Counts) -> bool:
    """A count below zero, or more rows dropped than there were to drop."""
    kept = (counts.kept(fate) for fate in SIDE_FATES)
    return any(n < 0 for n in (*(getattr(counts, f.name) for f in fields(counts)), *kept))


def remainder(totals: Counts, stamped: Sequence[Counts]) -> Counts:
    """What of the totals the stamps at hand do not hold."""
    return Counts(
        *(
            getattr(totals, f.name) - sum(getattr(c, f.name) for c in stamped)
            for f in fields(Counts)
        )
    )
