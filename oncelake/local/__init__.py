"""What one machine needs to run everything for real: Java, the jars, a Kafka broker."""

from __future__ import annotations

from collections.abc import Callable

from oncelake.errors import TerminalError


class LocalStackError(TerminalError):
    """Java, the jars or the broker of this machine; the message says what to type."""


Progress = Callable[[str], None]
"""Takes one short line for the person who waits."""


def quiet(_: str) -> None:
    """Nobody waits."""
