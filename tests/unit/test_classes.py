"""The archive of Spark's classes: made once, told when it cannot be, and left out then."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from oncelake.local import classes, java


@pytest.fixture
def prefix(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A Python environment that has no archive yet."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path / "oncelake"


Recorded = Callable[[bool], list[Path]]


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """Stands in for the job that leaves an archive, or fails; says where it was to leave them."""

    def replaced(works: bool) -> list[Path]:
        asked: list[Path] = []

        def record(archive: Path) -> str | None:
            asked.append(archive)
            # Also where the runs fail the JVM leaves what it had loaded by then.
            archive.write_bytes(b"classes")
            return None if works else "no room"

        monkeypatch.setattr(classes, "_record", record)
        monkeypatch.setattr(java, "java_version", lambda: classes.FITTING_JAVA)
        return asked

    return replaced


def test_it_is_made_once_and_takes_the_place_of_older_ones(
    prefix: Path, recorded: Recorded
) -> None:
    assert classes.options() == ""
    prefix.mkdir()
    (prefix / "older.jsa").write_bytes(b"")
    asked, told = recorded(True), list[str]()
    for _ in range(2):
        classes.make(told.append)
    (archive,) = prefix.iterdir()
    assert (len(asked), len(told)) == (1, 1)
    assert archive.read_bytes() == b"classes"
    assert classes.options().endswith(f'-XX:SharedArchiveFile="{archive}"')


def test_where_it_cannot_be_made_that_is_told_once_and_nothing_else_changes(
    prefix: Path, recorded: Recorded
) -> None:
    asked, told = recorded(False), list[str]()
    for _ in range(2):
        classes.make(told.append)
    (failed,) = prefix.iterdir()
    assert len(asked) == 1
    assert str(failed) in told[1]
    assert failed.read_text() == "no room"
    assert classes.options() == ""


def test_none_is_made_for_a_java_that_would_not_take_it(
    prefix: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, told = recorded(True), list[str]()
    monkeypatch.setattr(java, "java_version", lambda: 21)
    classes.make(told.append)
    assert (asked, told, prefix.exists(), classes.options()) == ([], [], False, "")
