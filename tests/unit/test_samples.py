"""The sample articles: the same for a seed, counted exactly, and corrupt beyond any reader."""

from __future__ import annotations

import io
import random
from collections import Counter

import pytest
from fastavro import parse_schema, schemaless_reader
from fastavro.schema import load_schema

from oncelake.samples import corruption
from oncelake.samples.articles import HOUR_MICROS, SCHEMA_FILE, Event, Expected, Kind, Load, events

SCHEMA = parse_schema(load_schema(str(SCHEMA_FILE)))
LOAD = Load(5_000, duplicates=0.05, corrupt=0.01, late=0.02)


def decode(value: bytes | None) -> dict[str, object]:
    record = schemaless_reader(io.BytesIO(value or b""), SCHEMA, None)
    assert isinstance(record, dict)
    return record


def published(event: Event) -> float:
    moment = decode(event.value)["published_at"]
    return moment.timestamp()  # type: ignore[attr-defined,no-any-return]


@pytest.fixture(scope="module")
def stream() -> list[Event]:
    return list(events(LOAD))


def of_kind(stream: list[Event], kind: Kind) -> list[tuple[int, Event]]:
    return [(index, event) for index, event in enumerate(stream) if event.kind is kind]


def test_the_same_seed_gives_the_same_stream(stream: list[Event]) -> None:
    assert list(events(LOAD)) == stream


def test_another_seed_gives_other_articles(stream: list[Event]) -> None:
    other = events(Load(5_000, seed=2))
    assert not {event.key for event in other} & {event.key for event in stream}


def test_the_shares_are_exact(stream: list[Event]) -> None:
    kinds = Counter(event.kind for event in stream)
    assert LOAD.expected() == Expected(good=4_950, corrupt=50, duplicates=250, late=100)
    assert (kinds[Kind.CORRUPT], kinds[Kind.DUPLICATE], kinds[Kind.LATE]) == (50, 250, 100)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 100])
def test_any_count_yields_what_it_expects(count: int) -> None:
    load = Load(count, duplicates=0.29, corrupt=0.4, late=0.3)
    kinds = Counter(event.kind for event in events(load))
    expected = load.expected()
    assert kinds.total() == count == expected.good + expected.corrupt
    assert kinds[Kind.CORRUPT] == expected.corrupt
    assert kinds[Kind.DUPLICATE] == expected.duplicates


def test_an_article_is_about_530_bytes(stream: list[Event]) -> None:
    sizes = [len(event.value or b"") for _, event in of_kind(stream, Kind.NEW)]
    assert 515 <= sum(sizes) / len(sizes) <= 545


def test_every_good_article_decodes_to_its_key(stream: list[Event]) -> None:
    good = [event for event in stream if event.kind is not Kind.CORRUPT]
    assert all(decode(event.value)["id"] == event.key.decode() for event in good)
    assert len({event.key for event in good}) == LOAD.expected().articles


def test_no_two_bodies_are_the_same(stream: list[Event]) -> None:
    bodies = [decode(e.value)["body"] for e in stream if e.kind is not Kind.CORRUPT]
    assert len(set(bodies)) == len(bodies)


def test_a_duplicate_is_a_later_version_of_an_article_sent_before(stream: list[Event]) -> None:
    for index, event in of_kind(stream, Kind.DUPLICATE):
        (original,) = [
            e for e in stream[:index] if e.key == event.key and e.kind is Kind.NEW
        ]  # fmt: skip
        assert published(event) > published(original)
        assert event.value != original.value


@pytest.mark.parametrize("seed", range(20))
def test_a_duplicate_has_an_original_even_near_the_beginning(seed: int) -> None:
    seen: set[bytes] = set()
    for event in events(Load(6, duplicates=0.5, seed=seed)):
        assert (event.key in seen) == (event.kind is Kind.DUPLICATE)
        seen.add(event.key)


def test_time_walks_forward_and_late_articles_are_hours_behind(stream: list[Event]) -> None:
    for index, event in of_kind(stream, Kind.NEW):
        assert round(published(event) * 1e6) == LOAD.base_micros + index * LOAD.step_micros
    for index, event in of_kind(stream, Kind.LATE):
        now = LOAD.base_micros + index * LOAD.step_micros
        assert 3 <= (now - published(event) * 1e6) / HOUR_MICROS <= 12


def test_two_hundred_thousand_articles_span_two_to_three_days() -> None:
    assert 2 <= 200_000 * Load(1).step_micros / (24 * HOUR_MICROS) <= 3


def test_nothing_corrupt_decodes(stream: list[Event]) -> None:
    for _, event in of_kind(stream, Kind.CORRUPT):
        with pytest.raises((EOFError, IndexError, UnicodeDecodeError)):
            decode(event.value)


def test_every_way_to_spoil_is_used_in_turn(stream: list[Event]) -> None:
    values = [event.value for _, event in of_kind(stream, Kind.CORRUPT)][:6]
    assert values[4] == b""
    assert values[5] is None
    assert len({value[:2] for value in values[:4] if value}) == 4


@pytest.mark.parametrize("cut", range(1, 60))
def test_a_cut_anywhere_leaves_no_article(stream: list[Event], cut: int) -> None:
    value = stream[0].value or b""
    with pytest.raises((EOFError, IndexError)):
        decode(value[:-cut])


def test_noise_always_begins_with_a_negative_length() -> None:
    rng = random.Random(7)
    for _ in range(500):
        first = corruption.noise(b"x" * 40, rng)[0]
        assert first < 128  # one byte, no continuation
        assert first % 2 == 1  # zigzag: odd is negative


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        ({"count": -1}, "give 0 or more"),
        ({"count": 1, "corrupt": -0.1}, "must each be 0 or more"),
        ({"count": 1, "corrupt": 0.6, "late": 0.6}, "at most 1 together"),
        ({"count": 1, "duplicates": 1.0}, "no article to make duplicates of"),
    ],
)
def test_an_impossible_load_is_refused(load: dict[str, float], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Load(**load)  # type: ignore[arg-type]
