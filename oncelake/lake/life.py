"""The life of Spark's JVM, whose end is told in words."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from oncelake.errors import CatalogUnreachable, SparkDied

DYING_SECONDS = 2.0
"""A connection may be gone a moment before the process is."""
LOGGED_TWICE = {
    "root": "Exception while sending command.",
    "py4j.clientserver": "There was an exception while executing the Python Proxy",
}
"""By the name of its logger, what py4j logs with a stack and raises besides."""


@contextmanager
def until_stopped(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, which is stopped at the end. Raises SparkDied where its JVM went before."""
    for name in LOGGED_TWICE:
        logging.getLogger(name).addFilter(_told_once)
    try:
        yield spark
    except (Py4JError, OSError, CatalogUnreachable) as error:
        if isinstance(error, Py4JJavaError) or not _died(spark):
            raise
        raise SparkDied(
            "Spark's JVM died, or somebody ended it. Nothing is lost: what was not committed is "
            "read again. Run again; if it dies again, see whether the machine ran out of memory "
            "(dmesg), and spark.driver.memory in spark.settings of the spec"
        ) from error
    finally:
        for name in LOGGED_TWICE:
            logging.getLogger(name).removeFilter(_told_once)
        if not _died(spark, within=0):
            spark.stop()


def _told_once(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(tuple(LOGGED_TWICE.values()))


def _died(spark: SparkSession, within: float = DYING_SECONDS) -> bool:
    """Whether the JVM has ended, if it was this process that started it."""
    process = getattr(spark.sparkContext._gateway, "proc", None)
    if process is None:
        return False
    try:
        process.wait(within)
    except subprocess.TimeoutExpired:
        return False
    return True
