"""The jars for Spark and for the local servers: fetched once per user, checked at each use.

They are declared in versions.toml, resolved by the Ivy that pyspark ships, and their checksums
are in jars.sha256. The cache folder is named by the declarations; a jar appears in it only
whole and checked, so several processes may ask at once and any of them may be killed.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from oncelake.local import Progress, folders, ivy, quiet
from oncelake.local.declared import Declared, declared

EVERYDAY = ("spark", "kafka")
REST = ("rest",)


def spark_jars() -> list[Path]:
    """What pyspark needs besides its own jars."""
    return _members("spark")


def kafka_jars() -> list[Path]:
    """The class path of the broker."""
    return _members("kafka")


def rest_jars() -> list[Path]:
    """The class path of the REST catalog: its own, SQLite's, and the Hadoop that pyspark ships."""
    sqlite = [jar for jar in spark_jars() if jar.name.startswith("sqlite-jdbc-")]
    return [
        *_members("rest", REST),
        *sqlite,
        *sorted(ivy.ivy_jar().parent.glob("hadoop-client-*.jar")),
    ]


def _members(name: str, sets: tuple[str, ...] = EVERYDAY) -> list[Path]:
    folder = ensure(sets=sets)
    return [folder / jar for jar in committed() if jar.startswith(f"{name}/")]


def ensure(progress: Progress = quiet, sets: tuple[str, ...] = EVERYDAY) -> Path:
    """The folder with every jar of these sets, each checked; fetches what is missing or damaged."""
    wanted = declared().only(sets)
    expected = {jar: digest for jar, digest in committed().items() if jar.split("/")[0] in sets}
    folder = folders.cache() / "jars" / wanted.fingerprint()
    if not wrong(folder, expected):
        return folder
    with _alone(folder.with_suffix(".lock"), progress):
        damaged = wrong(folder, expected)
        if damaged and folder.exists():
            progress(f"jars: damaged in the cache, fetched again: {', '.join(damaged)}")
        if damaged:
            _fetch(wanted, expected, folder, progress)
    return folder


def committed() -> dict[str, str]:
    """The checksum of each jar by its name (`spark/….jar`)."""
    text = Path(__file__).with_name("jars.sha256").read_text(encoding="utf-8")
    return {name: digest for digest, name in (line.split() for line in text.splitlines())}


def checksums_of(folder: Path) -> dict[str, str | None]:
    jars = sorted(folder.glob("*/*.jar"))
    return {jar.relative_to(folder).as_posix(): _sha256(jar) for jar in jars}


def wrong(folder: Path, expected: Mapping[str, str]) -> list[str]:
    """The jars that `folder` lacks, or holds with another content."""
    return [name for name, digest in expected.items() if _sha256(folder / name) != digest]


def _sha256(jar: Path) -> str | None:
    try:
        with jar.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    except FileNotFoundError:
        return None


@contextmanager
def _alone(lock: Path, progress: Progress) -> Iterator[None]:
    """Hold `lock`; the system takes it back from a process that dies."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("w") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress("jars: another process is fetching them; waiting for it")
            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _fetch(wanted: Declared, expected: Mapping[str, str], folder: Path, progress: Progress) -> None:
    """Resolve beside `folder`, check everything, then move the jars in."""
    work = folder.with_suffix(".partial")  # left by an interrupted fetch: the next goes on in it
    retrieved = ivy.resolve(wanted, work, progress)
    if bad := wrong(retrieved, expected):
        shutil.rmtree(work)
        raise ivy.JarsUnavailable(
            f"fetched, but not what jars.sha256 promises: {', '.join(bad)}.\n"
            "Type the same command again; if it stays so, do not use what your repository serves."
            " After a change of versions.toml type `make lock`."
        )
    if folder.exists():
        for name in wrong(folder, expected):
            (folder / name).parent.mkdir(exist_ok=True)
            (retrieved / name).replace(folder / name)
    else:
        retrieved.rename(folder)
    shutil.rmtree(work)
    progress(f"jars: {len(expected)} fetched and checked, in {folder}")
