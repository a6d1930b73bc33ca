"""A stream of sample articles, good and bad, the same again for the same seed.

An article is about 530 bytes of plain Avro (`article.avsc`). Shares of the stream are by choice
*duplicates* (an earlier article again, as a later version), *late* (published hours behind the
stream) and *corrupt* (see `corruption`). The shares are exact, so a count afterwards is proof.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

from fastavro import parse_schema, schemaless_writer
from fastavro.schema import load_schema

from oncelake.samples.corruption import corruptions
from oncelake.samples.newsroom import SOURCES, Newsroom

SCHEMA_FILE = Path(__file__).with_name("article.avsc")
BASE_MICROS = 1_767_571_200_000_000  # 2026-01-05 00:00 UTC, a Monday
HOUR_MICROS = 3_600_000_000
_MASK = (1 << 64) - 1


class Kind(Enum):
    """What an event is, to whoever counts afterwards."""

    NEW = "new"
    DUPLICATE = "duplicate"
    LATE = "late"
    CORRUPT = "corrupt"


class Event(NamedTuple):
    """One Kafka message: the article's id as key, its Avro bytes as value."""

    kind: Kind
    key: bytes
    value: bytes | None


@dataclass(frozen=True, slots=True)
class Expected:
    """What must arrive: `good` rows, holding `articles` different ids, and `corrupt` ones."""

    good: int
    corrupt: int
    duplicates: int
    late: int

    @property
    def articles(self) -> int:
        return self.good - self.duplicates


@dataclass(frozen=True, slots=True)
class Load:
    """How many articles, which shares of them are special, and how time passes in them."""

    count: int
    duplicates: float = 0.0
    corrupt: float = 0.0
    late: float = 0.0
    seed: int = 1
    step_micros: int = 1_080_000  # 200,000 articles span two and a half days
    base_micros: int = BASE_MICROS

    def __post_init__(self) -> None:
        shares = (self.duplicates, self.corrupt, self.late)
        if self.count < 0:
            raise ValueError(f"the count is {self.count}: give 0 or more")
        if min(shares) < 0 or sum(shares) > 1:
            raise ValueError(f"the shares {shares} must each be 0 or more and at most 1 together")
        if self.duplicates and sum(shares) == 1:
            raise ValueError(f"the shares {shares} leave no article to make duplicates of")

    def after(self, sent: int) -> Load:
        """How a stream of which so many were sent goes on: other articles, later times."""
        base = self.base_micros + sent * self.step_micros
        return replace(self, seed=self.seed + sent, base_micros=base)

    def expected(self) -> Expected:
        """Exact, not likely: what `events` will yield."""
        # The small addend keeps 100 * 0.29 from becoming 28.
        duplicates, corrupt, late = (
            int(self.count * share + 1e-6) for share in (self.duplicates, self.corrupt, self.late)
        )
        return Expected(self.count - corrupt, corrupt, duplicates, late)


def events(load: Load) -> Iterator[Event]:
    """The stream itself, in order."""
    kinds = _kinds(load)
    write = Writer(load, kinds)
    spoilt = corruptions(load.seed)
    for index in range(load.count):
        kind = kinds.get(index, Kind.NEW)
        if kind is Kind.NEW:
            yield Event(kind, *write.new(index))
        elif kind is Kind.DUPLICATE:
            yield Event(kind, *write.later_version(index))
        elif kind is Kind.LATE:
            yield Event(kind, *write.late(index))
        else:
            key, value = write.new(index)
            yield Event(kind, key, next(spoilt)(value))


class Writer:
    """Articles by their place in the stream: any of them can be written again from its index."""

    def __init__(self, load: Load, kinds: dict[int, Kind]) -> None:
        self._load = load
        self._kinds = kinds
        self._headlines, self._passages = Newsroom.of(load.seed)
        self._schema = parse_schema(load_schema(str(SCHEMA_FILE)))
        self._salt = _mix(load.seed)

    def new(self, index: int) -> tuple[bytes, bytes]:
        return self._encoded(index, 0, self._time(index))

    def later_version(self, index: int) -> tuple[bytes, bytes]:
        """A new article of the last 10,000 places, rewritten and published now."""
        earlier = max(0, index - 1 - self._bits(~index) % 10_000)
        while earlier in self._kinds:
            earlier -= 1
        return self._encoded(earlier, index, self._time(index))

    def late(self, index: int) -> tuple[bytes, bytes]:
        """A new article published 3 to 12 hours behind the stream."""
        behind = 3 * HOUR_MICROS + self._bits(~index) % (9 * HOUR_MICROS)
        return self._encoded(index, 0, self._time(index) - behind)

    def _time(self, index: int) -> int:
        return self._load.base_micros + index * self._load.step_micros

    def _bits(self, index: int) -> int:
        """64 random bits for an index; a bijection, so ids never meet."""
        return _mix(index + self._salt)

    def _encoded(self, index: int, version: int, published_at: int) -> tuple[bytes, bytes]:
        bits = self._bits(index)
        text = _mix(bits + version) if version else bits
        article_id = f"{bits:016x}"
        source = SOURCES[bits & 7]
        first, second = self._passages[text & 0x3FFF], self._passages[text >> 14 & 0x3FFF]
        record = {
            "id": article_id,
            "title": f"{self._headlines[text >> 28 & 0xFFF]} {version or index}",
            "body": f"{first} {article_id}. {second}.",
            "source": source,
            "url": f"https://news.example/{source}/{article_id}",
            "published_at": published_at,
        }
        buffer = BytesIO()
        schemaless_writer(buffer, self._schema, record)
        return article_id.encode(), buffer.getvalue()


def _kinds(load: Load) -> dict[int, Kind]:
    """Which places of the stream are not plain new articles."""
    expected = load.expected()
    special = (
        [Kind.DUPLICATE] * expected.duplicates
        + [Kind.CORRUPT] * expected.corrupt
        + [Kind.LATE] * expected.late
    )
    # The first place stays new where there are duplicates, so that each has an original.
    places = range(1 if expected.duplicates else 0, load.count)
    chosen = random.Random(load.seed).sample(places, len(special))
    return dict(zip(chosen, special, strict=True))


def _mix(number: int) -> int:
    """Splitmix64's finaliser: one to one on 64 bits, and neighbours come out unlike."""
    number = (number + 0x9E3779B97F4A7C15) & _MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & _MASK
    return number ^ (number >> 31)
