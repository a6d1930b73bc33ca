"""Two chains, killed at random, and a reader that must see every article once.

    .venv/bin/python -m examples.chain --articles 20000 --kills 6

Exit code 0 is PASS, 1 is FAIL.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from rich import box
from rich.console import Console
from rich.table import Table

from examples.chain import GOOD_TOPIC, LAKE_TOPIC
from examples.chain.compare import Outcome
from examples.chain.stages import Folder
from examples.chain.story import Chain
from oncelake.errors import OncelakeError, TerminalError, exit_code_of
from oncelake.meter import console

LEAST = 1_000
# A closed terminal or a kill ends it as Ctrl+C does.
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(words: Sequence[str] | None = None) -> int:
    args = _words().parse_args(words)
    out = console()
    folder = _fresh(args.dir)
    seed = random.randrange(1_000_000) if args.seed is None else args.seed
    try:
        outcome = Chain.of(Folder(folder), args.articles, args.kills, seed, out).play()
    except OncelakeError as error:
        out.print(f"FAIL: {error}")
        return 1
    _show(outcome, out)
    if outcome.passed and args.dir is None:
        shutil.rmtree(folder)
    else:
        out.print(f"All of it stays in {folder}")
    out.print(f"{'PASS' if outcome.passed else 'FAIL'} in {outcome.seconds:.0f} s")
    return 0 if outcome.passed else 1


def _words() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="python -m examples.chain", description=__doc__)
    words.add_argument("--articles", type=_articles, default=20_000, metavar="N",
                       help=f"to produce, at least {LEAST:,} (20,000)")  # fmt: skip
    words.add_argument("--kills", type=int, default=6, metavar="N",
                       help="kill -9, the two stages in turn (6)")  # fmt: skip
    words.add_argument("--seed", type=int, help="of the moments of the kills (any)")
    words.add_argument("--dir", type=Path, metavar="FOLDER",
                       help="a new or empty one, which stays (a temporary one)")  # fmt: skip
    return words


def _articles(text: str) -> int:
    number = int(text)
    if number < LEAST:
        raise argparse.ArgumentTypeError(f"{number} is less than {LEAST}")
    return number


def _fresh(given: Path | None) -> Path:
    if given is None:
        return Path(tempfile.mkdtemp(prefix="oncelake-chain-"))
    if given.is_dir() and any(given.iterdir()):
        raise TerminalError(f"{given} is not empty. Type: --dir with another folder")
    given.mkdir(parents=True, exist_ok=True)
    return given.absolute()


def _show(outcome: Outcome, out: Console) -> None:
    table = Table(box=box.SIMPLE, show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    for name, value in outcome.rows((GOOD_TOPIC, LAKE_TOPIC)):
        table.add_row(name, f"{value:,}")
    out.print(table)
    if outcome.places.produced != outcome.expected:
        out.print(f"does not hold: {outcome.expected:,} good articles were to be produced")
    for name, held in outcome.places.by_name((GOOD_TOPIC, LAKE_TOPIC)):
        if not held.exact:
            out.print(
                f"does not hold: in {name} {held.missing:,} are missing, {held.doubled:,} doubled, "
                f"{held.foreign:,} foreign"
            )


def _interrupted(number: int, frame: FrameType | None) -> None:
    """End with all that was started; an impatient second Ctrl+C must not leave a broker behind."""
    for ending in ENDINGS:
        signal.signal(ending, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    for each in ENDINGS:
        signal.signal(each, _interrupted)
    sys.exit(exit_code_of(main))
