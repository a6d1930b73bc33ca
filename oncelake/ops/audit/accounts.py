"""What the stamps say should be in the tables, next to what is there. Pure.

An *account* is one stamp with the rows found in its ranges. All stamps that were expired share
one account: progress's totals less the stamps that are left.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from oncelake.model import Counts, Span, TopicPartition
from oncelake.ops.audit.chain import Sealed, remainder
from oncelake.ops.audit.coverage import Coverage
from oncelake.ops.audit.evidence import NOTHING, Slice, Tally

EXPIRED = 0
"""No stamp has this sequence: they begin with 1."""

Spans = Mapping[TopicPartition, Span]


@dataclass(frozen=True, slots=True)
class Account:
    """`sequence` is EXPIRED and `index` -1 for the expired stamps together."""

    name: str
    sequence: int
    index: int
    spans: Spans
    counts: Counts
    main: Tally
    sides: Mapping[str, Tally]

    def side(self, fate: str) -> Tally:
        return self.sides.get(fate, NOTHING)


@dataclass(frozen=True, slots=True)
class Shelf:
    """Slices by partition in the order of their offsets: those of a span are found by bisection,
    as a year's history has many stamps."""

    slices: Mapping[TopicPartition, Sequence[Slice]]
    starts: Mapping[TopicPartition, Sequence[int]]

    @classmethod
    def of(cls, slices: Iterable[Slice]) -> Shelf:
        by_partition: dict[TopicPartition, list[Slice]] = {}
        for each in sorted(slices, key=lambda s: (s.tp, s.span)):
            by_partition.setdefault(each.tp, []).append(each)
        starts = {tp: [s.span.start for s in held] for tp, held in by_partition.items()}
        return cls(by_partition, starts)

    def inside(self, spans: Spans) -> Iterator[Slice]:
        """The slices that lie within these spans."""
        for tp, span in spans.items():
            held = self.slices.get(tp, ())
            for each in held[bisect_left(self.starts.get(tp, ()), span.start) :]:
                if each.span.end > span.end:
                    break
                yield each


def open_accounts(totals: Counts, sealed: Sequence[Sealed], coverage: Sequence[Coverage],
                  shelf: Shelf) -> tuple[Account, ...]:  # fmt: skip
    """One account a batch, oldest first, led by that of the expired stamps if there are any."""
    accounts = [
        Account(str(s), s.stamp.sequence, s.index, s.stamp.ranges, s.stamp.counts,
                *tally(shelf.inside(s.stamp.ranges)))
        for s in sealed
        if s.stamp.kind == "batch"
    ]  # fmt: skip
    expired = {each.tp: each.expired for each in coverage if not each.expired.empty}
    if expired:
        rest = remainder(totals, [each.stamp.counts for each in sealed])
        found = tally(shelf.inside(expired))
        accounts.insert(0, Account("the expired stamps", EXPIRED, -1, expired, rest, *found))
    return tuple(accounts)


def tally(slices: Iterable[Slice]) -> tuple[Tally, Mapping[str, Tally]]:
    """The rows of several slices, in main and, by fate, in the side tables."""
    main, sides = NOTHING, dict[str, Tally]()
    for each in slices:
        main = main.plus(each.main)
        for fate, found in each.sides.items():
            sides[fate] = sides.get(fate, NOTHING).plus(found)
    return main, sides


def outside(accounts: Sequence[Account], shelf: Shelf) -> tuple[Slice, ...]:
    """The slices that no account holds."""
    held = {(s.tp, s.span) for account in accounts for s in shelf.inside(account.spans)}
    return tuple(
        each for kept in shelf.slices.values() for each in kept if (each.tp, each.span) not in held
    )
