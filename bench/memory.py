"""Driver memory over many batches in one process: it must not grow with their number.

Sampled every 50 batches after a warm-up: live objects on the driver's heap (after a collection),
and the resident memory of the Python process. Growth is from the first sample to the last, along
a robust line. Flat means: neither grows by more than 5 per cent over the batches after the
warm-up.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import psutil
from rich.console import Console

from bench.results import Result
from bench.stack import Load, Stack, stack
from bench.trend import growth_percent
from oncelake import pipeline
from oncelake.events import Event

ROWS_A_BATCH = 200
WARM_UP = 100
SAMPLE_EVERY = 50
MOST_GROWTH_PERCENT = 5.0


@dataclass(frozen=True, slots=True)
class Sample:
    batches: int
    heap_bytes: int
    python_bytes: int
    batch_seconds: float


class Sampler:
    """Called after every batch; samples every fiftieth past the warm-up."""

    def __init__(self, ground: Stack, out: Console) -> None:
        self._ground = ground
        self._out = out
        self._process = psutil.Process()
        self._seconds: list[float] = []
        self.samples: list[Sample] = []

    def tell(self, event: Event) -> None:
        if event.name != "batch":
            return
        self._seconds.append(event.facts["seconds"])
        done = len(self._seconds)
        if done >= WARM_UP and done % SAMPLE_EVERY == 0:
            self._sample(done)

    def _sample(self, done: int) -> None:
        taken = Sample(
            batches=done,
            heap_bytes=self._ground.used_heap(),
            python_bytes=self._process.memory_info().rss,
            batch_seconds=round(median(self._seconds[-SAMPLE_EVERY:]), 4),
        )
        self.samples.append(taken)
        self._out.print(
            f"{done:>5} batches  heap {taken.heap_bytes / 2**20:7.1f} MiB  "
            f"Python {taken.python_bytes / 2**20:6.1f} MiB  "
            f"a batch {1000 * taken.batch_seconds:.0f} ms"
        )


def run(batches: int, out: Console) -> list[Result]:
    """`batches` are counted after the warm-up."""
    rows = (batches + WARM_UP) * ROWS_A_BATCH
    with stack(Load(rows, ROWS_A_BATCH), out) as ground:
        sampler = Sampler(ground, out)
        spec = ground.fresh("memory")
        running = pipeline.Running(spec.checkpoint, once=True, tell=sampler.tell)
        pipeline.start(ground.spark, spec, running).wait()
    return [_result(sampler.samples, batches)]


def _result(samples: list[Sample], batches: int) -> Result:
    at = [sample.batches for sample in samples]
    heap = growth_percent(at, [sample.heap_bytes for sample in samples])
    python = growth_percent(at, [sample.python_bytes for sample in samples])
    details: dict[str, Any] = {
        "heap_growth_percent": round(heap, 2),
        "python_growth_percent": round(python, 2),
        "batches": batches,
        "warm_up_batches": WARM_UP,
        "rows_a_batch": ROWS_A_BATCH,
        "samples": [asdict(sample) for sample in samples],
    }
    return Result(
        name="driver_memory_growth",
        value=round(max(heap, python), 2),
        target=f"at most {MOST_GROWTH_PERCENT:g} % over {batches} batches",
        holds=max(heap, python) <= MOST_GROWTH_PERCENT,
        shown=f"heap {heap:+.1f} %, Python {python:+.1f} %",
        details=details,
    )
