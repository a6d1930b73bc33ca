"""Start Spark's JVM: no secret on its command line, and none left behind by an early Ctrl+C."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from pyspark import SparkConf, SparkContext

from oncelake.spec.secrets import guarded


NEEDED = ("spark.driver.", "spark.jars", "spark.submit.")
"""Settings that come too late with the session. A path among them may look like a secret."""


def launch(settings: Mapping[str, str]) -> None:
    """The JVM, with those settings that it must know as it starts; nothing where one runs.

    A secret is not among them: anyone on the machine may read a command line. The session is
    given it later, as it is made.
    """
    known = SparkConf(loadDefaults=False).setAll(list(public(settings).items()))
    with _interrupts_held():
        SparkContext._ensure_initialized(conf=known)


def public(settings: Mapping[str, str]) -> dict[str, str]:
    """What anyone may read: neither the name nor the text says that it is a secret."""
    return {
        key: value
        for key, value in settings.items()
        if key.startswith(NEEDED) or guarded(key, value) is value
    }


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """A Ctrl+C in here counts once the JVM is up, some two seconds later; a second counts now.

    Were PySpark interrupted as it waits for the JVM, it would take away the file by which that is
    to answer; the JVM would fail to write it, and live on with nobody to end it. One that answers
    ends with this process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        if held:
            os._exit(130)
        held.append(number)

    former = signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, former)
    if held:
        raise KeyboardInterrupt
