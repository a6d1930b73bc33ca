"""A verb of oncelake as a process of its own: its lines as they come, and ways to end it."""

from __future__ import annotations

import os
import queue
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from oncelake.demo.tally import Event, parse
from oncelake.errors import OncelakeError
from oncelake.local import java
from oncelake.spec.environment import PREFIX, RESERVED, SHORT_NAMES

# Long enough for a machine that is busy with other things: a hang is the only thing they catch.
SILENT_SECONDS = 300.0
END_SECONDS = 120.0


class RunFailed(OncelakeError):
    """A process of the demo did not do its part; the message ends with the tail of its log."""


def child_environment(scratch: Path) -> Mapping[str, str]:
    """Without the variables that would point the demo's spec at something else.

    A killed JVM leaves its temporary files behind: in `scratch`, which goes with the demo.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in SHORT_NAMES and (not name.startswith(PREFIX) or name in RESERVED)
    }
    options = kept.get("SPARK_SUBMIT_OPTS", ""), shlex.quote(java.scratch_option(scratch))
    return {**kept, "SPARK_SUBMIT_OPTS": " ".join(options).strip()}


class PipelineRun:
    """`python -m PROGRAM spec --json` in a session of its own: what befalls it, befalls it alone.

    The JVM is in the same process group and holds the same stdout, so a kill reaches it and the
    end of that stream means that both are gone.
    """

    def __init__(
        self,
        spec: Path,
        log: Path,
        program: Sequence[str] = ("oncelake", "run"),
        words: Sequence[str] = (),
    ) -> None:
        self._log = log
        self._name = " ".join(program)
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *program, str(spec), "--json", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=child_environment(spec.parent / "tmp"),
                start_new_session=True,
                text=True,
            )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> PipelineRun:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        return self._process.pid

    def alive(self) -> bool:
        return self._process.poll() is None

    def lines(self) -> Iterator[str]:
        """Each line as it comes, until the process and its JVM have ended."""
        while (line := self._next()) is not None:
            yield line

    def events(self) -> Iterator[Event]:
        return (event for line in self.lines() if (event := parse(line)))

    def kill(self) -> None:
        """kill -9 for the process and its JVM; returns when both are gone."""
        # Once both have ended, the number of their group may be another's.
        if self._process.poll() is None or self._reader.is_alive():
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join(END_SECONDS)
        if self._reader.is_alive():
            raise self.failed("outlived kill -9")

    def interrupt(self) -> None:
        """Ctrl+C, as a terminal would send it."""
        os.killpg(self._process.pid, signal.SIGINT)

    def ended(self) -> int:
        """Its exit code, once its stream has ended."""
        try:
            return self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            raise self.failed(f"did not end within {END_SECONDS:.0f} s") from None

    def failed(self, what: str) -> RunFailed:
        return RunFailed(f"{self._name} {what}.\n{tail(self._log)}")

    def _next(self) -> str | None:
        try:
            return self._lines.get(timeout=SILENT_SECONDS)
        except queue.Empty:
            raise self.failed(f"said nothing for {SILENT_SECONDS:.0f} s") from None

    def _read(self) -> None:
        stream = self._process.stdout
        if stream is not None:
            with stream:
                for line in stream:
                    self._lines.put(line)
        self._lines.put(None)


def tail(log: Path, lines: int = 15) -> str:
    """The end of a log, and where the rest is."""
    text = log.read_text(errors="replace").splitlines()[-lines:] if log.exists() else []
    return "".join(f"  {line}\n" for line in text) + f"Its log: {log}"
