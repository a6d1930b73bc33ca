"""The set-up's warm-up, ended before it is done: what it has begun by then is ended with it."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path

import psutil
import pytest

from oncelake.local import classes

OWN_SESSION = ("kafka.tools.StorageTool", "kafka.Kafka")
SAME_SESSION = ("org.apache.spark.deploy.SparkSubmit",)


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where all that the warm-up makes is, so that its processes can be told by it."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


@pytest.mark.parametrize("stage", OWN_SESSION + SAME_SESSION)
def test_a_warm_up_that_is_ended_leaves_no_process_and_no_file(scratch: Path, stage: str) -> None:
    runs = classes.begin(scratch.parent / "archive")
    try:
        begun = _await(stage, runs, scratch)
        if stage in OWN_SESSION:
            begun.suspend()  # so that it is not gone for having done its work
        classes.end(runs)
        left = _naming(scratch)
    finally:
        runs.kill()
        for process in _naming(scratch):
            process.kill()
    assert not left
    assert not list(scratch.iterdir())


def test_a_warm_up_that_takes_too_long_is_told(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classes, "MADE_WITHIN_SECONDS", 0.1)
    told = classes._record(scratch.parent / "archive")
    assert told is not None
    assert "timed out" in told


def _await(stage: str, runs: subprocess.Popen[str], scratch: Path) -> psutil.Process:
    deadline, pause = time.monotonic() + 60, threading.Event()
    while time.monotonic() < deadline:
        if found := [each for each in _naming(scratch) if stage in each.info["cmdline"]]:
            return found[0]
        assert runs.poll() is None, f"it ended before it came to {stage}"
        pause.wait(0.01)
    raise AssertionError(f"it never came to {stage}")


def _naming(folder: Path) -> list[psutil.Process]:
    return [each for each in psutil.process_iter(["cmdline"])
            if str(folder) in " ".join(each.info["cmdline"] or ())]  # fmt: skip
