"""Change what the evidence of an audit says, as someone who knows the format would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from oncelake.model import STAMP_KEY, Progress, Stamp
from oncelake.ops.audit.evidence import Evidence, History


def restamp(evidence: Evidence, index: int, change: Callable[[Stamp], Stamp]) -> Evidence:
    """Change a stamp of main, digest and all."""
    snapshot = evidence.main.ancestors[index]
    assert snapshot.stamp_text is not None
    return resummarise(evidence, index, change(Stamp.from_text(snapshot.stamp_text)).to_text())


def resummarise(evidence: Evidence, index: int, text: str | None) -> Evidence:
    ancestors = list(evidence.main.ancestors)
    summary = {k: v for k, v in ancestors[index].summary.items() if k != STAMP_KEY}
    if text is not None:
        summary[STAMP_KEY] = text
    ancestors[index] = replace(ancestors[index], summary=summary)
    return replace(evidence, main=replace(evidence.main, ancestors=tuple(ancestors)))


def with_progress(evidence: Evidence, change: Callable[[Progress], Progress]) -> Evidence:
    assert evidence.progress_text is not None
    changed = change(Progress.from_text(evidence.progress_text))
    return replace(evidence, progress_text=changed.to_text())


def with_side(evidence: Evidence, fate: str, followed: str | None, history: History | None = None
              ) -> Evidence:  # fmt: skip
    """A side table that says it has followed to another place, or with another history."""
    sides = (
        replace(side, followed_text=followed, history=history or side.history)
        if side.fate == fate
        else side
        for side in evidence.sides
    )
    return replace(evidence, sides=tuple(sides))
