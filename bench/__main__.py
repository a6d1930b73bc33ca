"""Words to calls: `python -m bench` runs every benchmark, `python -m bench append` one.

Each runs in a process of its own, so that none finds a JVM that another has warmed or filled.
The exit code says whether they ran, not whether the targets hold: that is in the table.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence

from bench import append, flatness, memory, recovery, results, to_kafka, upsert
from bench.results import Result
from oncelake.errors import exit_code_of
from oncelake.meter import console

BENCHMARKS: dict[str, Callable[[argparse.Namespace], list[Result]]] = {
    "append": lambda chosen: append.run(chosen.rows, chosen.rounds, console()),
    "upsert": lambda chosen: [
        *upsert.run(chosen.rounds, console()),
        *flatness.run(chosen.rounds, console()),
    ],
    "to_kafka": lambda chosen: to_kafka.run(chosen.rows, chosen.rounds, console()),
    "recovery": lambda chosen: recovery.run(chosen.rounds, console()),
    "memory": lambda chosen: memory.run(chosen.batches, console()),
}


def main(arguments: Sequence[str]) -> int:
    chosen = _parser().parse_args(arguments)
    # A plain kill must still stop the broker and remove its folder.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    if chosen.only is None:
        return max(_in_a_process(name, arguments) for name in BENCHMARKS)
    return exit_code_of(lambda: _run(chosen))


def _run(chosen: argparse.Namespace) -> int:
    found = BENCHMARKS[chosen.only](chosen)
    results.save(found)
    out = console()
    out.print(results.table({result.name: result.to_json() for result in found}))
    out.print(f"every figure: {results.FILE}")
    return 0


def _in_a_process(name: str, arguments: Sequence[str]) -> int:
    return subprocess.run([sys.executable, "-m", "bench", name, *arguments], check=False).returncode


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument(
        "only", nargs="?", choices=BENCHMARKS, help="one benchmark; all if left out"
    )
    parser.add_argument("--rows", type=int, default=2_000_000, help="articles in the topic")
    parser.add_argument("--rounds", type=int, default=9, help="rounds that count")
    parser.add_argument(
        "--batches", type=int, default=500, help="batches that memory is watched over"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
