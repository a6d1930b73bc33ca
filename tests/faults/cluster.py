"""A Spark cluster on this machine: a master, and two workers that Spark takes for two hosts.

Spark does not run a second copy of a task on the host of the first, so one worker would not do.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark

from oncelake.local import java, ports

MASTER, WORKERS = "127.0.0.1", ("127.0.0.2", "127.0.0.3")
READY_WITHIN_SECONDS = 60.0
# They live for a minute and do little.
LIGHT = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The master's address."""
    address = f"spark://{MASTER}:{ports.free_port()}"
    port = address.rpartition(":")[2]
    with ExitStack() as running:
        master = ("master.Master", "--host", MASTER, "--port", port, "--webui-port", "0")
        log = running.enter_context(_started(master, folder / "master.log"))
        for host in WORKERS:
            worker = ("worker.Worker", "--host", host, "--cores", "1", "--memory", "1g",
                      "--webui-port", "0", "-d", str(folder / host), address)  # fmt: skip
            running.enter_context(_started(worker, folder / f"{host}.log"))
        _await(log, "Registering worker", len(WORKERS))
        yield address


@contextmanager
def _started(words: tuple[str, ...], log: Path) -> Iterator[Path]:
    home = Path(pyspark.__file__).parent
    command = [str(java.java_command()), *LIGHT, "-cp", str(home / "jars" / "*")]
    # As Spark's own scripts would set them.
    given = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": MASTER, "SPARK_SCALA_VERSION": "2.13"}
    with log.open("wb") as out:
        child = subprocess.Popen(
            [*command, f"org.apache.spark.deploy.{words[0]}", *words[1:]],
            env={**os.environ, **java.environment(), **given},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
        try:
            yield log
        finally:
            child.terminate()
            child.wait(READY_WITHIN_SECONDS)


def _await(log: Path, words: str, times: int) -> None:
    deadline = time.monotonic() + READY_WITHIN_SECONDS
    while (text := log.read_text(errors="replace")).count(words) < times:
        assert time.monotonic() < deadline, f"no cluster: {text[-2000:]}"
        time.sleep(0.05)
