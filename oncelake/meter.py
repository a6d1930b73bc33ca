"""Progress a person can follow: a bar on a terminal, now and then a line anywhere else."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

LINE_EVERY_SECONDS = 5.0


def console(json_on_stdout: bool = False) -> Console:
    """Where people read. With --json stdout belongs to the document, so they read stderr."""
    return Console(stderr=json_on_stdout, highlight=False, markup=False, soft_wrap=True)


class Meter:
    """`with Meter(...) as meter: meter.at(n)`. `lines=False` where others tell the numbers too."""

    def __init__(self, out: Console, title: str, total: int, *, lines: bool = True) -> None:
        self._out = out
        self._lines = lines
        self._title = title
        self._total = total
        self._shown, self._shown_at = 0, time.monotonic()
        self._bar: Progress | None = None
        if out.is_terminal:
            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=None),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                console=out,
                expand=True,
            )
            self._task = self._bar.add_task(title, total=total)

    def __enter__(self) -> Meter:
        if self._bar:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar:
            self._bar.stop()

    def at(self, done: int) -> None:
        """The state now; lines are spaced in time, but the last one is never left out."""
        if self._bar:
            self._bar.update(self._task, completed=done)
        elif self._lines and done != self._shown and (self._due() or done >= self._total):
            self._shown, self._shown_at = done, time.monotonic()
            percent = 100 * done // self._total
            self._out.print(f"{self._title}: {done:,} of {self._total:,} ({percent} %)")

    def _due(self) -> bool:
        return time.monotonic() - self._shown_at >= LINE_EVERY_SECONDS
