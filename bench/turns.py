"""Sides that take turns batch by batch: what a few per cent of difference can be seen by.

A shared machine's speed changes from minute to minute by more than that. So the queries of both
sides run in one session at once, but one at a time works: each passes the turn on as it comes to
its next batch, and waits there. A turn is thus a whole cycle of Spark's: the batch, its commit in
the log, and the planning of the next one. Turns next to each other are seconds apart.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from threading import Condition

from rich.console import Console

from bench.content import content, require_equal
from bench.rounds import order_of
from bench.sides import Duellist
from bench.stack import Stack

Turns = Mapping[str, Sequence[float]]
WARM_UPS = 2


class Turnstile:
    """`enter` is called by each side as it begins a batch, `leave` when its query has ended."""

    def __init__(self, names: Sequence[str]) -> None:
        self.seconds: dict[str, list[float]] = {name: [] for name in names}
        self._queue = list(names)
        self._arrived: set[str] = set()
        self._began: float | None = None
        self._changed = Condition()

    def enter(self, name: str) -> None:
        with self._changed:
            if self._began is not None and self._queue[0] == name:
                self.seconds[name].append(time.perf_counter() - self._began)
                self._queue.append(self._queue.pop(0))
            self._arrived.add(name)
            self._begin()
            self._changed.wait_for(lambda: self._began is not None and self._queue[0] == name)

    def leave(self, name: str) -> None:
        """Its last turn is not timed: how a query ends is no part of a cycle."""
        with self._changed:
            self._queue.remove(name)
            self._begin()

    def _begin(self) -> None:
        """The clock of a turn starts when all stand at the turnstile: none works besides."""
        if self._arrived >= set(self._queue):
            self._began = time.perf_counter()
            self._changed.notify_all()


def duel(ground: Stack, sides: Sequence[Duellist], rounds: int, out: Console) -> Turns:
    """The seconds of each side's turns, those that belong together at the same place."""
    taken: dict[str, list[float]] = {side.name: [] for side in sides}
    for number in range(1 - WARM_UPS, rounds + 1):
        order = order_of(sides, number)
        found = _round(ground, order, f"duel_{number + WARM_UPS}")
        label = f"duel {number} of {rounds}" if number > 0 else "warm-up"
        for side in order:
            out.print(f"{label:<14} {side.about:<32} {median(found[side.name]):>9.2f} s a batch")
            if number > 0:
                taken[side.name] += found[side.name]
    return taken


def _round(ground: Stack, order: Sequence[Duellist], name: str) -> Turns:
    turnstile = Turnstile([side.name for side in order])
    specs = {side.name: ground.fresh(f"{name}_{side.name}") for side in order}
    ground.collect_garbage()
    waits = {s.name: s.start(ground.spark, specs[s.name], partial(turnstile.enter, s.name))
             for s in order}  # fmt: skip
    for side in order:
        try:
            waits[side.name]()
        finally:
            turnstile.leave(side.name)
    left = {name: content(ground.spark, spec.table.name) for name, spec in specs.items()}
    require_equal(left, ground.load.articles)
    for spec in specs.values():
        ground.remove(spec)
    return turnstile.seconds
