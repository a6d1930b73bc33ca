"""The turnstile: sides take turns batch by batch, one at a time."""

from __future__ import annotations

from threading import Thread

from bench.turns import Turnstile

BATCHES = 5
PATIENCE = 30


def test_sides_take_turns_and_all_but_the_last_are_timed() -> None:
    turnstile, seen = Turnstile(["a", "b"]), []

    def side(name: str) -> None:
        for number in range(BATCHES):
            turnstile.enter(name)
            seen.append((number, name))
        turnstile.leave(name)

    sides = [Thread(target=side, args=name, daemon=True) for name in "ba"]
    for each in sides:
        each.start()
    for each in sides:
        each.join(PATIENCE)
    assert seen == [(number, name) for number in range(BATCHES) for name in "ab"]
    assert [len(taken) for taken in turnstile.seconds.values()] == [BATCHES - 1] * 2


def test_a_side_that_is_gone_holds_up_nobody() -> None:
    turnstile = Turnstile(["a", "b"])
    turnstile.leave("a")
    other = Thread(target=turnstile.enter, args="b", daemon=True)
    other.start()
    other.join(PATIENCE)
    assert not other.is_alive()
