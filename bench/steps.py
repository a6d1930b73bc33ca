"""The protocol's own steps, timed from inside a run."""

from __future__ import annotations

import time
from collections import defaultdict
from statistics import median
from typing import Any

from oncelake.commit import Step
from oncelake.events import Event


class StepClock:
    """Give `on_step` and `tell` to a run; `to_json` then says where a batch's time went."""

    def __init__(self) -> None:
        self._began: dict[Step, float] = {}
        self._milliseconds: defaultdict[Step, list[float]] = defaultdict(list)
        self._batches: list[float] = []

    def on_step(self, when: str, step: Step) -> None:
        now = time.perf_counter()
        if when == "before":
            self._began[step] = now
        else:
            self._milliseconds[step].append(1000 * (now - self._began[step]))

    def tell(self, event: Event) -> None:
        if event.name == "batch":
            self._batches.append(1000 * event.facts["seconds"])

    def forget(self) -> None:
        """Leave out what was timed so far: it was the warm-up."""
        self._milliseconds.clear()
        self._batches.clear()

    def to_json(self) -> dict[str, Any]:
        """Median milliseconds of each step, and its share of all batches' time in per cent."""
        whole = sum(self._batches)
        steps = {
            step.value: {
                "median_ms": round(median(taken), 1),
                "share_percent": round(100 * sum(taken) / whole, 2),
            }
            for step, taken in self._milliseconds.items()
            if step is not Step.CLAIM
        }
        claims = self._milliseconds[Step.CLAIM]
        return {
            "batches": len(self._batches),
            "batch_median_ms": round(median(self._batches), 1),
            "claim_median_ms": round(median(claims), 1) if claims else None,
            "steps": steps,
        }
