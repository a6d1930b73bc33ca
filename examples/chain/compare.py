"""PASS or FAIL. Pure: what was produced and what was found, each message by all that it holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Held:
    """How what a place holds differs from what it must hold. `unseen` are messages of transactions
    that were cut short: a reader of committed records is not given them."""

    rows: int
    missing: int = 0
    doubled: int = 0
    foreign: int = 0
    unseen: int = 0

    @property
    def exact(self) -> bool:
        return not (self.missing or self.doubled or self.foreign)


def compared(wanted: Counter[T], found: Counter[T], everything: int | None = None) -> Held:
    """Every wanted one must be there as often as it is wanted, and nothing else."""
    foreign = sum(times for each, times in found.items() if each not in wanted)
    return Held(
        rows=found.total(),
        missing=(wanted - found).total(),
        doubled=(found - wanted).total() - foreign,
        foreign=foreign,
        unseen=0 if everything is None else everything - found.total(),
    )


@dataclass(frozen=True, slots=True)
class Places:
    """What was read: how many good articles the raw topic has, and what became of them."""

    produced: int
    table: Held
    good: Held
    lake: Held

    def by_name(self, topics: tuple[str, str]) -> tuple[tuple[str, Held], ...]:
        """Each place; `topics` are the names of the two."""
        return (("the table", self.table), (topics[0], self.good), (topics[1], self.lake))


@dataclass(frozen=True, slots=True)
class Kills:
    """How many there were, and how many of them came in the midst of a batch."""

    all: int
    amid: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """All there is to say. `expected`: the good articles that were to be produced."""

    expected: int
    places: Places
    kills: Kills
    seconds: float

    @property
    def passed(self) -> bool:
        """All of it holds, and of something: nothing in no place proves nothing."""
        places = (self.places.table, self.places.good, self.places.lake)
        return 0 < self.expected == self.places.produced and all(each.exact for each in places)

    def rows(self, topics: tuple[str, str]) -> tuple[tuple[str, int], ...]:
        """The closing table."""
        places = self.places.by_name(topics)
        held = [each for _, each in places]
        return (
            ("good articles produced", self.places.produced),
            *((f"in {name}", each.rows) for name, each in places),
            ("missing", sum(each.missing for each in held)),
            ("duplicates", sum(each.doubled for each in held)),
            ("foreign", sum(each.foreign for each in held)),
            ("cut short by kills, and unseen", sum(each.unseen for each in held)),
            ("kills", self.kills.all),
            ("of them in the midst of a batch", self.kills.amid),
        )
