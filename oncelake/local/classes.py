"""Spark's classes, loaded and checked once and kept in an archive of Java's own.

With it a session starts in half the time. The set-up makes it, for this Python environment; where
there is none, or Java finds that it does not fit, classes are loaded one by one as ever. That is so
with Java 21: Spark names a jar twice in its class path, of which that Java says that it is not the
one the archive was made for.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from oncelake.local import Progress, jars, java
from oncelake.local.declared import declared

MADE_WITHIN_SECONDS, ENDED_WITHIN_SECONDS = 300, 30
FITTING_JAVA = 17
# Java's own words go to standard output by default, among what a command prints as JSON; and of an
# archive that does not fit nobody needs to hear.
_QUIET = "-Xlog:disable -Xlog:all=warning,cds*=off:stderr"


def class_path() -> str:
    """The jars that Spark needs besides its own, as the archive has them."""
    return os.pathsep.join(str(jar) for jar in jars.spark_jars())


def options() -> str:
    """What a JVM of Spark is started with to use the archive; nothing where there is none."""
    archive = _archive()
    return f'{_QUIET} -XX:SharedArchiveFile="{archive}"' if archive.exists() else ""


def make(progress: Progress) -> None:
    """Make the archive unless it is there. Spark runs without it too: a failure is only told."""
    archive = _archive()
    failed = archive.with_suffix(".failed")
    if java.java_version() != FITTING_JAVA or archive.exists() or failed.exists():
        return
    progress("java: keeping Spark's classes ready, so that it starts in half the time")
    archive.parent.mkdir(parents=True, exist_ok=True)
    for older in archive.parent.iterdir():
        older.unlink()
    unfinished = archive.with_suffix(f".{os.getpid()}")
    failure = _record(unfinished)
    if failure is None and unfinished.exists():
        unfinished.replace(archive)
    else:
        # A JVM leaves an archive also where the runs failed, of what it had loaded by then.
        unfinished.unlink(missing_ok=True)
        failed.write_text(failure or "the JVM left no archive")
        progress(f"java: that did not work (see {failed}): Spark starts as it does elsewhere")


def _record(archive: Path) -> str | None:
    """Have runs of each mode make the archive; what failed, if any."""
    runs = begin(archive)
    try:
        # The pipe is closed when the JVM has ended, which outlives its Python.
        said, _ = runs.communicate(timeout=MADE_WITHIN_SECONDS)
    except subprocess.TimeoutExpired as slow:
        return f"{slow}. Delete this file to have it tried again"
    finally:
        end(runs)
    return said or "no word" if runs.returncode else None


def begin(archive: Path) -> subprocess.Popen[str]:
    """The runs, in a process whose JVM leaves the archive as it ends."""
    command = [sys.executable, "-m", "oncelake.warmup"]
    option = f'{_QUIET} -XX:TieredStopAtLevel=1 -XX:ArchiveClassesAtExit="{archive}"'
    # A session of its own, to be ended as a whole: a JVM and a broker outlive their Python.
    return subprocess.Popen(
        [*command, option], env=java.environment(), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        start_new_session=True,
    )  # fmt: skip


def end(runs: subprocess.Popen[str]) -> None:
    """With the broker, which it stops itself, and the JVM, which would go on to make an archive."""
    if runs.poll() is None:
        runs.terminate()
        with suppress(subprocess.TimeoutExpired):
            runs.wait(ENDED_WITHIN_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(runs.pid, signal.SIGKILL)
    runs.communicate()


def _archive() -> Path:
    """Named by what Java compares: itself, the jars and where they are."""
    binary = java.java_command().resolve().stat()
    told = (binary.st_mtime_ns, binary.st_size, version("pyspark"), declared().fingerprint())
    name = hashlib.sha256(repr((*told, class_path())).encode()).hexdigest()[:16]
    return Path(sys.prefix) / "oncelake" / f"{name}.jsa"
