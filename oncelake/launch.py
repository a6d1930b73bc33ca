"""Start Spark's JVM: no secret on its command line, and none left behind by an early Ctrl+C."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from oncelake.errors import TerminalError
from oncelake.spec.secrets import guarded

NEEDED = ("spark.driver.", "spark.jars", "spark.submit.")
"""Settings that come too late with the session. A path among them may look like a secret."""


def session(name: str, settings: Mapping[str, str]) -> SparkSession:
    """The session there is, with these settings; or one in a JVM that is started for it.

    A secret is not among what the JVM is started with: anyone on the machine may read a command
    line. The session is given it as it is made.
    """
    with _interrupts_held() as hold:
        try:
            SparkContext._ensure_initialized(conf=_conf(public(settings)))
        except PySparkRuntimeError as error:
            raise TerminalError(
                "Spark's JVM ended as it started; what it said stands above. Check that Java can "
                "run here (java -version), that this machine's name and 127.0.0.1 can be reached, "
                "and spark.settings in the spec"
            ) from error
        SparkContext.getOrCreate(_conf(settings).setAppName(name))
        # PySpark has set a handler of its own, which talks to the JVM amid another word to it.
        hold()
        builder = SparkSession.builder.appName(name)
        for key, value in settings.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()


def _conf(settings: Mapping[str, str]) -> SparkConf:
    return SparkConf().setAll(list(settings.items()))


def public(settings: Mapping[str, str]) -> dict[str, str]:
    """What anyone may read: neither the name nor the text says that it is a secret."""
    return {
        key: value
        for key, value in settings.items()
        if key.startswith(NEEDED) or guarded(key, value) is value
    }


@contextmanager
def _interrupts_held() -> Iterator[Callable[[], None]]:
    """A Ctrl+C in here counts once the session is there, seconds later; a second counts now.
    Yields what holds them again, where another handler was set meanwhile.

    Were PySpark interrupted as it waits for the JVM, it would take away the file by which that is
    to answer; the JVM would fail to write it, and live on with nobody to end it. One that answers
    ends with this process.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    held: list[int] = []

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        if held:
            os._exit(130)
        held.append(number)

    def hold() -> None:
        handlers.append(signal.signal(signal.SIGINT, on_interrupt))

    handlers = [signal.signal(signal.SIGINT, on_interrupt)]
    try:
        yield hold
    finally:
        # None is one that was not set by Python: it cannot be set again.
        others = [each for each in handlers if each is not on_interrupt and each is not None]
        signal.signal(signal.SIGINT, others[-1] if others else signal.default_int_handler)
    if held:
        raise KeyboardInterrupt
