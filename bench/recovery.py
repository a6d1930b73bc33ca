"""Recovery: from kill -9 to the first new commit, against the same pipeline's cold start.

Each run is a process of its own, as `oncelake run` is. In each round one begins with nothing, and
is killed while it is at its third batch; the next goes on from the checkpoint that this one left,
and is killed likewise; the last finds no checkpoint. Timed is from the launch, or the kill, to the
first commit of rows that were not in the table before.
"""

from __future__ import annotations

import shutil
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from rich.console import Console

from bench.results import Result
from bench.rounds import estimate, paired_ratios
from bench.stack import TOPIC, Load, fill
from oncelake.demo.run import PipelineRun
from oncelake.local.kafka import LocalKafka
from oncelake.samples import articles

ROWS, BATCH = 300_000, 20_000
BATCHES_BEFORE_A_KILL = 2
MOST_TIMES, MOST_SECONDS = 1.1, 1.0
SPEC = """\
pipeline: articles
source: {{bootstrap: "{bootstrap}", topic: {topic}}}
decode: {{format: avro, schema: "{schema}"}}
table: {{name: bench.news.articles, partition_by: [days(published_at)]}}
trigger: 0 seconds
limits: {{max_offsets: {batch}}}
checkpoint: checkpoint
catalog: {{type: jdbc, uri: "jdbc:sqlite:catalog.db", warehouse: warehouse}}
"""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds to the first commit: of a first start, after a kill, and without a checkpoint."""

    cold: float
    killed: float
    lost: float

    def __str__(self) -> str:
        return (
            f"cold {self.cold:5.1f} s, after kill -9 {self.killed:5.1f} s, "
            f"without checkpoint {self.lost:5.1f} s"
        )


def run(rounds: int, out: Console) -> list[Result]:
    with TemporaryDirectory(prefix="oncelake-bench-") as name:
        folder = Path(name)
        with LocalKafka(folder / "kafka") as kafka:
            fill(kafka.bootstrap, Load(ROWS, BATCH), out)
            found = []
            for number in range(rounds + 1):
                times = _round(kafka.bootstrap, folder / str(number))
                label = f"round {number} of {rounds}" if number else "warm-up"
                out.print(f"{label:<14} {times}")
                found.append(times)
    return _results(found[1:])


def _results(found: list[Times]) -> list[Result]:
    cold = [each.cold for each in found]
    ratio = estimate(paired_ratios([each.killed for each in found], cold))
    added = estimate([each.lost - each.killed for each in found])
    details = {"rows_a_batch": BATCH, "rounds": [asdict(each) for each in found]}
    return [
        Result(
            name="recovery_vs_cold_start",
            value=round(ratio.median, 3),
            target=f"at most {MOST_TIMES:g} times",
            holds=ratio.median <= MOST_TIMES,
            shown=f"{ratio.median:.2f} times ({ratio.low:.2f} to {ratio.high:.2f}); "
            f"cold {median(cold):.1f} s",
            details=details,
        ),
        Result(
            name="recovery_without_checkpoint_seconds",
            value=round(added.median, 2),
            target=f"at most {MOST_SECONDS:g} s more",
            holds=added.median <= MOST_SECONDS,
            shown=f"{added.median:+.2f} s ({added.low:+.2f} to {added.high:+.2f})",
            details=details,
        ),
    ]


def _round(bootstrap: str, folder: Path) -> Times:
    folder.mkdir()
    text = SPEC.format(bootstrap=bootstrap, topic=TOPIC, schema=articles.SCHEMA_FILE, batch=BATCH)
    spec = folder / "pipeline.yaml"
    spec.write_text(text)
    cold, killed_at = _run_and_kill(spec, time.perf_counter())
    killed, killed_at = _run_and_kill(spec, killed_at)
    shutil.rmtree(folder / "checkpoint")
    lost, _ = _run_and_kill(spec, killed_at)
    shutil.rmtree(folder)
    return Times(cold, killed, lost)


def _run_and_kill(spec: Path, began: float) -> tuple[float, float]:
    """Seconds from `began` to the first new commit, and when it was killed."""
    first, batches = 0.0, 0
    with PipelineRun(spec, spec.parent / "run.log") as running:
        for event in running.events():
            if event["event"] == "batch" and event["outcome"] != "skipped":
                first = first or time.perf_counter() - began
                batches += 1
            # A batch that is staged is about to be committed: in the midst of it.
            if event["event"] == "staged" and batches >= BATCHES_BEFORE_A_KILL:
                killed_at = time.perf_counter()
                running.kill()
                return round(first, 3), killed_at
        raise running.failed("ended before it could be killed")
