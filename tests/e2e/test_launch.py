"""Spark's JVM as it starts: what of it others may see, and what an early Ctrl+C leaves of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from oncelake import launch
from oncelake.local.kafka import LocalKafka
from tests.site import Site

PASSWORD = "correct horse"
ASK = """
import contextlib, json, sys, oncelake, psutil
spark = oncelake.spark(sys.argv[1])
commands = []
for process in psutil.Process().children(recursive=True):
    with contextlib.suppress(psutil.Error):  # Spark's scripts start others, that come and go
        commands.append(process.cmdline())
log = spark._jvm.org.apache.logging.log4j.LogManager.getLogger("org.apache.iceberg.Any")
cause = spark._jvm.java.lang.RuntimeException("no answer from jdbc:any://db?password=hunter22")
log.warn("cannot connect to jdbc:any://me:hunter22@db", cause)
print(json.dumps([spark.conf.get("spark.sql.catalog.safe.password"), commands]))
"""


@pytest.fixture
def site(kafka: LocalKafka, tmp_path: Path) -> Site:
    made = Site.make(kafka, tmp_path)
    secret = f"    spark.sql.catalog.safe.password: {PASSWORD}\n"
    made.spec.write_text(made.spec.read_text() + secret)
    return made


def test_what_is_secret_is_kept_back() -> None:
    settings = {
        "spark.master": "local[2]",
        "spark.hadoop.fs.s3a.secret.key": "s",
        "spark.sql.catalog.c.jdbc.password": "s",
        "spark.sql.catalog.c.uri": "jdbc:postgresql://me:s@host/db",
    }
    assert launch.public(settings) == {"spark.master": "local[2]"}


def test_a_path_that_reads_like_a_secret_is_not() -> None:
    settings = {"spark.driver.extraClassPath": "/jars/token-provider.jar:/jars/kafka.jar"}
    assert launch.public(settings) == settings


def test_the_session_has_the_secret_and_its_command_line_has_not(site: Site) -> None:
    told = subprocess.run(
        [sys.executable, "-c", ASK, site.spec], capture_output=True, text=True, timeout=120
    )
    assert told.returncode == 0, told.stderr
    value, commands = json.loads(told.stdout.splitlines()[-1])
    assert value == PASSWORD
    # What Java logs, of an exception too, goes by its layout alone.
    assert "cannot connect to jdbc:any://***@db" in told.stderr
    assert "no answer from jdbc:any://db?password=***" in told.stderr
    assert "hunter22" not in told.stderr
    words = [word for command in commands for word in command]
    assert "spark.sql.shuffle.partitions=2" in words, "else this looks at another process"
    assert not [word for word in words if PASSWORD in word]


@pytest.mark.parametrize(("signals", "after"), [(1, 0.0), (2, 0.0), (1, 1.0), (1, 2.0)])
def test_ctrl_c_while_spark_starts_leaves_no_process(
    site: Site, signals: int, after: float
) -> None:
    with _asking(site) as process:
        _until_the_jvm_starts(process.pid)
        # Not to wait for something, but to meet it at different moments.
        threading.Event().wait(after)
        for _ in range(signals):
            os.killpg(process.pid, signal.SIGINT)
        # The JVM holds stdout too: that is at its end only once both are gone.
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Exception" not in said
    assert "Error" not in said


@contextmanager
def _asking(site: Site) -> Iterator[subprocess.Popen[str]]:
    """`oncelake sql` in a process group of its own; none of it is left."""
    words = [sys.executable, "-m", "oncelake", "sql", str(site.spec), "SELECT 1"]
    process = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _until_the_jvm_starts(pid: int) -> None:
    deadline, pause = time.monotonic() + 60, threading.Event()
    while time.monotonic() < deadline:
        for child in psutil.Process(pid).children(recursive=True):
            # Spark's scripts start others, that come and go.
            with suppress(psutil.Error):
                if "org.apache.spark.deploy.SparkSubmit" in child.cmdline():
                    return
        pause.wait(0.01)
    raise AssertionError("Spark never started")
