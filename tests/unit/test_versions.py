"""The pins, the locks, the checksums and pyproject.toml say the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from oncelake.local.jars import committed
from oncelake.versions import pinned

ROOT = Path(__file__).resolve().parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def locked(lock: str) -> dict[str, str]:
    text = (ROOT / lock).read_text()
    return dict(re.findall(r"^([a-z0-9._-]+)==([^ ;]+)", text, re.MULTILINE))


def bare(requirements: list[str]) -> set[str]:
    return {requirement.partition("[")[0] for requirement in requirements}


def test_runtime_pins_are_the_packages_pyproject_names() -> None:
    assert set(pinned()["python"]) == bare(PROJECT["dependencies"])


def test_development_pins_are_the_packages_pyproject_names() -> None:
    assert set(pinned()["python-dev"]) == bare(PROJECT["optional-dependencies"]["dev"])


def test_extras_are_the_same_in_pins_and_pyproject() -> None:
    pins = pinned()["python-dev"].items()
    pinned_extras = {f"{n}[{','.join(pin['extras'])}]" for n, pin in pins if "extras" in pin}
    named = PROJECT["optional-dependencies"]["dev"]
    assert pinned_extras == {requirement for requirement in named if "[" in requirement}


@pytest.mark.parametrize(
    ("section", "lock"),
    [
        ("python", "requirements.lock"),
        ("python-dev", "requirements.lock"),
        ("java", "requirements-java.lock"),
    ],
)
def test_locks_hold_the_pinned_versions(section: str, lock: str) -> None:
    in_lock = locked(lock)
    pins = {name: pin["version"] for name, pin in pinned()[section].items()}
    assert pins == {name: in_lock.get(name) for name in pins}, "type `make lock`"


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-java.lock"])
def test_locks_hold_hashes_and_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert text.count("--hash=sha256:") >= len(locked(lock)) > 0
    assert "://" not in text


@pytest.mark.parametrize("jar_set", ["spark", "kafka"])
def test_every_declared_jar_has_a_checksum(jar_set: str) -> None:
    declared = pinned()["jars"][jar_set].items()
    files = {f"{jar_set}/{name.split(':')[1]}-{pin['version']}.jar" for name, pin in declared}
    assert files <= set(committed()), "type `make lock`"


def test_overridden_jars_are_the_versions_that_were_fetched() -> None:
    for name, pin in pinned()["overrides"].items():
        assert f"spark/{name.split(':')[1]}-{pin['version']}.jar" in committed()


def test_every_version_has_a_reason() -> None:
    sections = ("python", "python-dev", "java", "overrides")
    pins = [pin for section in sections for pin in pinned()[section].values()]
    pins += [pin for jar_set in pinned()["jars"].values() for pin in jar_set.values()]
    reasons = [pin["why"] for pin in pins]
    reasons += [why for left_out in pinned()["excludes"].values() for why in left_out.values()]
    assert all(reasons)
