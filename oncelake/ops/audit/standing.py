"""Does progress say what the stamps say? Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oncelake.model import Counts, Progress
from oncelake.ops.audit.chain import (
    UNREADABLE,
    Sealed,
    as_time,
    negative,
    remainder,
    same_origin,
    stamp_of,
)
from oncelake.ops.audit.evidence import Evidence, History
from oncelake.ops.audit.report import Finding, explained, violated


def progress_of(evidence: Evidence) -> Progress | None:
    """Progress, or None where the table has none that can be read."""
    if evidence.progress_text is None:
        return None
    try:
        return Progress.from_text(evidence.progress_text)
    except UNREADABLE:
        return None


def check_presence(evidence: Evidence, sealed: Sequence[Sealed]) -> Iterator[Finding]:
    """There is a progress, in the words it was written in."""
    progress, where = progress_of(evidence), f"progress of {evidence.pipeline}"
    if evidence.progress_text is None and not sealed:
        yield explained(
            "never-run", where, f"pipeline {evidence.pipeline} has not written to this table yet"
        )
    elif evidence.progress_text is None:
        yield violated(
            "progress-missing",
            where,
            f"the table holds {len(sealed)} stamps of the pipeline, but its progress is gone",
        )
    elif progress is None:
        yield violated("progress-unreadable", where, "the table property cannot be read any more")
    elif progress.to_text() != evidence.progress_text or progress.pipeline != evidence.pipeline:
        yield violated(
            "progress-altered", where, "the table property was not written by the pipeline"
        )


def rolled_back(progress: Progress, sealed: Sequence[Sealed], history: History) -> bool:
    """Progress's commit is still in the metadata, but main no longer descends from it."""
    if any(each.stamp.attempt == progress.attempt for each in sealed):
        return False
    stamps = (stamp_of(snapshot) for snapshot in history.others)
    return any(stamp is not None and stamp.attempt == progress.attempt for stamp in stamps)


def check_standing(progress: Progress, sealed: Sequence[Sealed], history: History
                   ) -> Iterator[Finding]:  # fmt: skip
    """Progress is where the newest stamp left it, and its totals are the sum of the stamps."""
    where = f"progress of {progress.pipeline}"
    if rolled_back(progress, sealed, history):
        yield violated(
            "rolled-back",
            where,
            f"main was rolled back behind sequence {progress.sequence} (attempt "
            f"{progress.attempt}): what was written since is in no row any more",
        )
        return
    if not sealed and not history.complete:
        return
    for message in _differences(progress, sealed, history) if sealed else _unstamped(progress):
        yield violated("progress-mismatch", where, message)
    for message in _wrong_totals(progress, sealed, history):
        yield violated("totals", where, message)


def _unstamped(progress: Progress) -> Iterator[str]:
    yield (
        f"it names sequence {progress.sequence}, but no snapshot of the table carries a stamp of "
        "the pipeline, and none was expired"
    )


def _differences(progress: Progress, sealed: Sequence[Sealed], history: History) -> Iterator[str]:
    newest = sealed[-1]
    stamp = newest.stamp
    if progress.sequence != stamp.sequence:
        lost = "its stamp is gone" if progress.sequence > stamp.sequence else "it was set back"
        yield f"it stands at sequence {progress.sequence}, the newest stamp is {newest}: {lost}"
        return
    if (progress.attempt, progress.digest) != (stamp.attempt, stamp.digest):
        yield f"its attempt or digest is not that of {newest}: one of the two was altered"
    if progress.generation != stamp.generation:
        yield f"it says generation {progress.generation}, {newest} says {stamp.generation}"
    if not same_origin(progress.origin, stamp.origin):
        yield f"it names another cluster or topic than {newest}"
    marks = [each.stamp.watermark for each in sealed if each.stamp.watermark is not None]
    known, stands = marks[-1] if marks else None, progress.watermark
    # Where stamps were expired, the newest with a watermark may be among them.
    if stands != known and (marks or history.complete):
        yield f"its watermark is {as_time(stands)}, the newest stamped one is {as_time(known)}"


def _wrong_totals(progress: Progress, sealed: Sequence[Sealed], history: History) -> Iterator[str]:
    totals = progress.totals
    if not totals.balanced:
        read = totals.read + totals.replayed
        yield f"{read} read in all, but {totals.accounted} accounted for"
    if negative(totals):
        yield f"totals that cannot be: {totals.to_json()}"
    rest = remainder(totals, [each.stamp.counts for each in sealed])
    batches = progress.batches - sum(each.stamp.kind == "batch" for each in sealed)
    expired = 0 if history.complete or not sealed else sealed[0].stamp.sequence - 1
    if not expired and (rest != Counts() or batches):
        yield f"its totals are not the sum of the {len(sealed)} stamps: {_named(rest, batches)}"
    elif negative(rest) or not 0 <= batches <= expired:
        yield f"the stamps kept hold more than its totals: {_named(rest, batches)}"


def _named(rest: Counts, batches: int) -> str:
    different = {**rest.to_json(), "batches": batches}
    return ", ".join(f"{value:+d} {name}" for name, value in different.items() if value)
