"""Processes of ours, told from others that were given the same pid later."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Process:
    """A process: its pid, and when it started as the system tells it."""

    pid: int
    started: str

    @classmethod
    def of(cls, pid: int) -> Process | None:
        """The process that has this pid now; None if there is none, or only a dead one."""
        started = _started(pid)
        return cls(pid, started) if started else None

    def alive(self) -> bool:
        return Process.of(self.pid) == self

    def end(self, grace_seconds: float) -> bool:
        """Ask it to end; after `grace_seconds` force it. True if asking was enough."""
        self._send(signal.SIGTERM)
        if self._gone_within(grace_seconds):
            return True
        self.kill()
        return False

    def kill(self) -> None:
        self._send(signal.SIGKILL)
        if not self._gone_within(10):
            raise TimeoutError(f"process {self.pid} is still there 10 s after SIGKILL")

    def _send(self, number: signal.Signals) -> None:
        if self.alive():
            with suppress(ProcessLookupError):  # it ended in between
                os.kill(self.pid, number)

    def _gone_within(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while self.alive():
            if time.monotonic() > deadline:
                return False
            time.sleep(_POLL_SECONDS)
        return True


def _started(pid: int) -> str | None:
    if Path("/proc/self/stat").exists():
        return _started_by_proc(pid)
    answer = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True
    )
    state, _, started = answer.stdout.strip().partition(" ")
    return None if state.startswith("Z") else started.strip() or None


def _started_by_proc(pid: int) -> str | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()  # the name before it may hold anything
    state, started = fields[0], fields[19]
    return None if state in "ZX" else started
