"""The example's verdict: it passes what is exact, and nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from examples.chain.check import Article
from examples.chain.compare import Held, Kills, Outcome, Places, compared

WANTED = Counter({"a": 1, "b": 1, "c": 2})
EXACT = Held(rows=4)
OUTCOME = Outcome(4, Places(4, EXACT, EXACT, EXACT), kills=Kills(3, 2), seconds=1.0)
RECORD = {"id": "1", "title": "t", "body": "b", "source": "s", "url": "u"}


def test_what_is_all_there_once_is_exact() -> None:
    held = compared(WANTED, Counter(WANTED))
    assert held == EXACT
    assert held.exact


@pytest.mark.parametrize(
    ("found", "held"),
    [
        (Counter({"a": 1, "b": 1, "c": 1}), Held(rows=3, missing=1)),
        (Counter({"a": 2, "b": 1, "c": 2}), Held(rows=5, doubled=1)),
        (Counter({"a": 1, "b": 1, "c": 2, "x": 1}), Held(rows=5, foreign=1)),
        # As many as there should be: it is not counting that tells.
        (Counter({"a": 2, "c": 2}), Held(rows=4, missing=1, doubled=1)),
        (Counter({"a": 1, "x": 1, "c": 2}), Held(rows=4, missing=1, foreign=1)),
    ],
    ids=["missing", "doubled", "foreign", "one for another", "a foreign one for another"],
)
def test_what_is_not_is_told(found: Counter[str], held: Held) -> None:
    assert compared(WANTED, found) == held
    assert not held.exact


def test_what_only_a_reader_of_all_sees_is_no_fault() -> None:
    held = compared(WANTED, Counter(WANTED), everything=7)
    assert held == Held(rows=4, unseen=3)
    assert held.exact


def test_a_verdict_needs_every_place() -> None:
    assert OUTCOME.passed
    for wrong in (Held(3, missing=1), Held(5, doubled=1), Held(5, foreign=1)):
        for places in (
            Places(4, wrong, EXACT, EXACT),
            Places(4, EXACT, wrong, EXACT),
            Places(4, EXACT, EXACT, wrong),
        ):
            assert not replace(OUTCOME, places=places).passed


def test_a_verdict_needs_all_articles_and_some() -> None:
    assert not replace(OUTCOME, expected=5).passed
    empty = Places(0, Held(0), Held(0), Held(0))
    assert not replace(OUTCOME, expected=0, places=empty).passed


def test_the_closing_table_adds_up_the_places() -> None:
    places = Places(4, Held(3, missing=1), Held(5, doubled=1, unseen=2), Held(5, foreign=1))
    rows = dict(replace(OUTCOME, places=places).rows(("good", "lake")))
    assert rows == {
        "good articles produced": 4,
        "in the table": 3,
        "in good": 5,
        "in lake": 5,
        "missing": 1,
        "duplicates": 1,
        "foreign": 1,
        "cut short by kills, and unseen": 2,
        "kills": 3,
        "of them in the midst of a batch": 2,
    }


def test_an_article_is_the_same_in_avro_in_the_table_and_in_json() -> None:
    time = datetime(2026, 1, 5, 1, 2, 3, 456_789, tzinfo=UTC)
    article = Article.of({**RECORD, "published_at": time})
    assert article == Article.of({**RECORD, "published_at": "2026-01-05T01:02:03.456Z"})
    assert article == Article.of({**RECORD, "published_at": "2026-01-05T02:02:03.456+01:00"})
    assert article != Article.of({**RECORD, "published_at": "2026-01-05T01:02:03.457Z"})
