"""Any correct history is clean, and no single corruption of one is.

What is drawn: partitions, claims, batches, bad, late, dropped, deleted and filtered records,
watermarks, compactions, expiry. What is then done to the evidence is one act: a stamp dropped, a
number altered, a row lost or copied, a range shifted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from oncelake.model import Span, Stamp
from oncelake.ops.audit.evidence import Evidence
from oncelake.ops.audit.judge import judge
from oncelake.ops.audit.report import Verdict
from tests.unit.audit_forgery import restamp, resummarise
from tests.unit.audit_history import NOT_WRITTEN, Scene, partition
from tests.unit.audit_table import Coordinate, Table

NUMBER = re.compile(r"(?<=[:\[,])\d+(?=[,\]}])")


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    starts = draw(st.dictionaries(st.integers(0, 2), st.integers(0, 50), min_size=1))
    made = Scene(starts)
    for _ in range(draw(st.integers(1, 6))):
        act = draw(st.sampled_from(("batch", "batch", "batch", "claim", "rewrite")))
        if act == "batch":
            _draw_batch(draw, made, sorted(starts))
        elif act == "claim":
            made.claim()
        else:
            made.main.rewrite()
    return made


def _draw_batch(draw: st.DrawFn, made: Scene, partitions: Sequence[int]) -> None:
    chosen = draw(st.lists(st.sampled_from(partitions), unique=True, min_size=1))
    lengths = {p: draw(st.integers(1, 12)) for p in chosen}
    due: list[Coordinate] = [
        (partition(p), made.progress.next_offset(partition(p)) + step)
        for p, length in lengths.items()
        for step in range(length)
    ]
    some = st.sets(st.sampled_from(due), max_size=4)
    words = {word: draw(some) for word in NOT_WRITTEN}
    stands = made.progress.watermark or 0
    watermark = draw(st.none() | st.integers(stands, stands + 5))
    made.batch(lengths, follow=draw(st.booleans()), watermark=watermark, **words)


def settled(made: Scene) -> Scene:
    made.follow()
    return made


def batches(evidence: Evidence) -> list[int]:
    stamps = [s.stamp_text for s in evidence.main.ancestors]
    return [i for i, text in enumerate(stamps) if text and '"kind":"batch"' in text]


@given(scenes().map(settled), st.data())
def test_a_correct_history_is_clean_however_much_of_it_was_expired(
    made: Scene, data: st.DataObject
) -> None:
    made.main.expire(data.draw(st.integers(0, len(made.main.snapshots) - 1)))
    for side in made.sides.values():
        if side.snapshots:
            side.expire(data.draw(st.integers(0, len(side.snapshots) - 1)))
    assert judge(made.evidence()).findings == ()


@given(scenes())
def test_a_correct_history_stopped_anywhere_is_never_violated(made: Scene) -> None:
    report = judge(made.evidence())
    assert {f.kind for f in report.findings} <= {"pending"}


@given(scenes().map(settled), st.data())
def test_a_dropped_stamp_is_never_clean(made: Scene, data: st.DataObject) -> None:
    evidence = made.evidence()
    stamped = [i for i, s in enumerate(evidence.main.ancestors) if s.stamp_text]
    dropped = resummarise(evidence, data.draw(st.sampled_from(stamped)), None)
    assert judge(dropped).verdict is Verdict.VIOLATED


@settings(max_examples=200)
@given(scenes().map(settled), st.data())
def test_a_number_altered_in_any_stamp_is_never_clean(made: Scene, data: st.DataObject) -> None:
    evidence = made.evidence()
    stamped = [i for i, s in enumerate(evidence.main.ancestors) if s.stamp_text]
    index = data.draw(st.sampled_from(stamped))
    text = evidence.main.ancestors[index].stamp_text or ""
    altered = resummarise(evidence, index, _alter(text, data))
    assert judge(altered).verdict is Verdict.VIOLATED


@settings(max_examples=200)
@given(scenes().map(settled), st.data())
def test_a_number_altered_in_a_stamp_with_its_digest_is_never_clean(
    made: Scene, data: st.DataObject
) -> None:
    evidence = made.evidence()
    stamped = [i for i, s in enumerate(evidence.main.ancestors) if s.stamp_text]
    index = data.draw(st.sampled_from(stamped))
    text = evidence.main.ancestors[index].stamp_text or ""
    forged = Stamp.from_text(_alter(text, data)).to_text()
    assume(forged != text)
    assert judge(resummarise(evidence, index, forged)).verdict is Verdict.VIOLATED


@settings(max_examples=200)
@given(scenes().map(settled), st.data())
def test_a_number_altered_in_progress_is_never_clean(made: Scene, data: st.DataObject) -> None:
    evidence = made.evidence()
    # What is pending and followed already is history: nothing is read from it any more.
    made.progress = replace(made.progress, pending=())
    altered = _alter(made.progress.to_text(), data)
    report = judge(replace(evidence, progress_text=altered))
    assert report.verdict is Verdict.VIOLATED


@given(scenes().map(settled), st.data(), st.booleans())
def test_a_lost_row_is_never_clean(made: Scene, data: st.DataObject, expired: bool) -> None:
    table = _draw_table(data, made)
    table.lose(data.draw(st.sampled_from(sorted(table.rows))))
    if expired:
        made.main.expire(len(made.main.snapshots) - 1)
    assert judge(made.evidence()).verdict is Verdict.VIOLATED


@given(scenes().map(settled), st.data(), st.booleans())
def test_a_row_there_twice_is_never_clean(made: Scene, data: st.DataObject, expired: bool) -> None:
    table = _draw_table(data, made)
    table.append_copy([data.draw(st.sampled_from(sorted(table.rows)))])
    if expired:
        made.main.expire(len(made.main.snapshots) - 1)
    assert judge(made.evidence()).verdict is Verdict.VIOLATED


@given(scenes().map(settled), st.data(), st.integers(-3, 3), st.integers(-3, 3))
def test_a_shifted_range_is_never_clean(
    made: Scene, data: st.DataObject, start: int, end: int
) -> None:
    evidence = made.evidence()
    assume(batches(evidence) and (start or end))
    index = data.draw(st.sampled_from(batches(evidence)))

    def shift(stamp: Stamp) -> Stamp:
        tp = data.draw(st.sampled_from(sorted(stamp.ranges)))
        span = stamp.ranges[tp]
        return replace(stamp, ranges={**stamp.ranges, tp: Span(span.start + start, span.end + end)})

    assert judge(restamp(evidence, index, shift)).verdict is Verdict.VIOLATED


def _draw_table(data: st.DataObject, made: Scene) -> Table:
    filled = [table for table in (made.main, *made.sides.values()) if table.rows]
    assume(filled)
    return data.draw(st.sampled_from(filled))


def _alter(text: str, data: st.DataObject) -> str:
    """Add one to one of the numbers in a text."""
    number = data.draw(st.sampled_from(list(NUMBER.finditer(text))))
    return f"{text[: number.start()]}{int(number.group()) + 1}{text[number.end() :]}"
