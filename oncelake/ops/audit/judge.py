"""The judgement: evidence in, report out. Pure: the same evidence has the same verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from oncelake.model import Counts, Progress, Span, TopicPartition
from oncelake.ops.audit.accepted import check_accepted, check_epochs
from oncelake.ops.audit.accounts import EXPIRED, Account, Shelf, open_accounts, outside, tally
from oncelake.ops.audit.chain import (
    Sealed,
    check_chain,
    check_counts,
    check_seals,
    check_watermarks,
    stamps_of,
)
from oncelake.ops.audit.coordinates import check_keys, check_strays, check_twice
from oncelake.ops.audit.coverage import Coverage, check_coverage, cover
from oncelake.ops.audit.evidence import NOBODY, NOTHING, Evidence, Side, Slice, Tally
from oncelake.ops.audit.following import check_following, check_sides_known, waiting
from oncelake.ops.audit.replays import expected_in_main
from oncelake.ops.audit.report import Finding, PartitionReport, Report, explained
from oncelake.ops.audit.rows import Expectation, TableRows, check_rows
from oncelake.ops.audit.source import check_source
from oncelake.ops.audit.standing import check_presence, check_standing, progress_of


@dataclass(frozen=True, slots=True)
class Case:
    """The evidence, read: what every check looks at. `strays` are what no account holds."""

    evidence: Evidence
    progress: Progress | None
    sealed: tuple[Sealed, ...]
    coverage: tuple[Coverage, ...]
    shelf: Shelf
    accounts: tuple[Account, ...]
    strays: tuple[Slice, ...]

    @property
    def main(self) -> TableRows:
        evidence = self.evidence
        expected = tuple(expected_in_main(self.accounts, self.sealed))
        strays = [(s, s.main) for s in self.strays if s.main.rows]
        return TableRows(evidence.main, evidence.pipeline, expected, strays, evidence.rows.foreign)

    def side(self, side: Side) -> TableRows:
        evidence, fate = self.evidence, side.fate
        indices = {each.stamp.sequence: each.index for each in self.follows(side)}
        due = self._due(side)
        expected = [
            Expectation(a.name, indices.get(a.sequence, -1), due[a.sequence], a.side(fate))
            for a in self.accounts
        ]
        strays = [(s, s.side(fate)) for s in self.strays if s.side(fate).rows]
        return TableRows(side.history, evidence.pipeline, expected, strays,
                         evidence.rows.foreign_sides.get(fate, NOBODY))  # fmt: skip

    def _due(self, side: Side) -> dict[int, int]:
        """By sequence, the rows that a side table must have by now: not those that wait for it."""
        ahead = waiting(self.progress, side) if self.progress else {}
        due = {a.sequence: a.counts.kept(side.fate) for a in self.accounts}
        for sequence, pending in ahead.items():
            if sequence in due:
                due[sequence] = 0
            elif EXPIRED in due:
                due[EXPIRED] -= pending.rows
        return due

    def follows(self, side: Side) -> tuple[Sealed, ...]:
        """The stamps on a side table, oldest first."""
        return stamps_of(side.history, self.evidence.pipeline)

    @property
    def pending(self) -> int:
        """Rows that are decided and in no side table yet."""
        if self.progress is None:
            return 0
        ahead = (waiting(self.progress, side) for side in self.evidence.sides)
        return sum(each.rows for of_side in ahead for each in of_side.values())


def read_case(evidence: Evidence) -> Case:
    progress = progress_of(evidence)
    sealed = stamps_of(evidence.main, evidence.pipeline)
    coverage = cover(progress, sealed, evidence.main.complete)
    shelf = Shelf.of(evidence.rows.slices)
    totals = progress.totals if progress else Counts()
    accounts = open_accounts(totals, sealed, coverage, shelf)
    strays = outside(accounts, shelf)
    return Case(evidence, progress, sealed, coverage, shelf, accounts, strays)


def judge(evidence: Evidence) -> Report:
    """Weigh all there is. Every departure from the stamps is a finding; none means clean."""
    case = read_case(evidence)
    progress, ancestors = case.progress, evidence.main.ancestors
    covered = {each.tp: each.position for each in case.coverage}
    main, sides = tally(case.shelf.inside(covered))
    return Report(
        table=evidence.main.table,
        pipeline=evidence.pipeline,
        snapshot_id=ancestors[-1].snapshot_id if ancestors else None,
        partitions=tuple(_partitions(case)),
        totals=progress.totals if progress else Counts(),
        findings=tuple(_findings(case)),
        batches=progress.batches if progress else 0,
        stamps=len(case.sealed),
        rows=main.rows,
        sides=_rows_by_fate(evidence, sides),
        pending=case.pending,
        foreign=evidence.rows.foreign.rows,
        topic_compared=evidence.topic is not None,
    )


def short_ranges(evidence: Evidence) -> list[tuple[TopicPartition, Span]]:
    """The ranges in which rows of main are missing: where to look for holes."""
    case = read_case(evidence)
    short = {each.name for each in case.main.expectations if each.missing}
    return [(tp, span) for a in case.accounts if a.name in short for tp, span in a.spans.items()]


def _rows_by_fate(evidence: Evidence, found: Mapping[str, Tally]) -> dict[str, int]:
    """The rows of each side table that was looked at, 0 where there are none."""
    return {side.fate: found.get(side.fate, NOTHING).rows for side in evidence.sides}


def _findings(case: Case) -> Iterator[Finding]:
    evidence, sealed = case.evidence, case.sealed
    yield from check_seals(evidence.main, evidence.pipeline)
    yield from check_chain(sealed, evidence.main)
    yield from check_counts(sealed)
    yield from check_watermarks(sealed)
    yield from check_presence(evidence, sealed)
    if case.progress:
        yield from check_standing(case.progress, sealed, evidence.main)
        yield from check_accepted(case.progress, sealed)
        yield from check_epochs(case.progress)
    yield from check_coverage(case.coverage, case.progress)
    yield from check_rows(case.main, evidence.rows.holes)
    yield from check_strays(case.coverage, case.strays)
    yield from check_twice(evidence, case.progress.totals.replayed if case.progress else 0)
    yield from check_keys(evidence)
    yield from check_sides_known(evidence, case.accounts)
    for side in evidence.sides:
        yield from _side_findings(case, side)
    if case.progress and evidence.topic:
        yield from check_source(case.progress, evidence.topic)
    yield from _check_neighbours(evidence)


def _side_findings(case: Case, side: Side) -> Iterator[Finding]:
    yield from check_seals(side.history, case.evidence.pipeline)
    if case.progress:
        stamps = {each.stamp.sequence: each.stamp for each in case.sealed}
        yield from check_following(side, case.progress, stamps, case.follows(side))
    yield from check_rows(case.side(side))


def _check_neighbours(evidence: Evidence) -> Iterator[Finding]:
    if evidence.neighbours and not evidence.topic_column:
        yield explained(
            "shared-table",
            evidence.main.table,
            f"{', '.join(evidence.neighbours)} writes here too, and the rows do not name their "
            "topic: whose they are cannot be told. Give each pipeline a table of its own, or a "
            "column kafka_topic",
        )


def _partitions(case: Case) -> Iterator[PartitionReport]:
    topic = case.evidence.topic
    known = {each.tp: each for each in case.coverage}
    for tp in sorted(known.keys() | (topic.offsets.keys() if topic else set())):
        each = known.get(tp, Coverage(tp, Span(0, 0), Span(0, 0), 0))
        main, sides = tally(case.shelf.inside({tp: each.position}))
        yield PartitionReport(
            tp=tp,
            covered=each.position,
            topic=topic.offsets.get(tp) if topic else None,
            gaps=each.gaps,
            overlaps=each.overlaps,
            rows=main.rows,
            sides=_rows_by_fate(case.evidence, sides),
        )
