"""Which Java is taken, and what is said when there is none to take."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from oncelake.local import java


def fake_java(home: Path, version: str) -> Path:
    """A `java` that tells of itself what a real one of `version` does."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(
        "#!/bin/sh\n"
        f"echo '    java.home = {home}' >&2\n"
        f"echo '    java.specification.version = {version}' >&2\n"
    )
    command.chmod(0o755)
    return home


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No Java in JAVA_HOME, on PATH or as a package, until a test adds one."""
    java._java.cache_clear()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("ONCELAKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(java, "_packaged", lambda: None)


@pytest.mark.parametrize("version", ["17", "21"])
def test_java_home_is_taken_first(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = fake_java(tmp_path / "named", version)
    monkeypatch.setenv("JAVA_HOME", str(named))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "other", "17") / "bin"))
    assert java.java_home() == named


@pytest.mark.parametrize("version", ["1.8", "11", "25"])
def test_a_java_that_spark_does_not_run_on_is_passed_over(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = fake_java(tmp_path / "path", "17")
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "named", version)))
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    assert java.java_home() == on_path


def test_a_java_home_that_is_not_taken_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_path = fake_java(tmp_path / "path", "17")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    assert java.java_home() == on_path
    said = capsys.readouterr().err
    assert f"warning: {tmp_path}/gone/bin/java (from JAVA_HOME) does not start" in said
    assert f"Java 17 of {on_path} is taken" in said


def test_the_error_names_each_java_refused_and_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "old", "11")))
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "new", "25") / "bin"))
    with pytest.raises(java.JavaMissing) as missing:
        java.java_home()
    said = str(missing.value)
    assert f"{tmp_path}/old/bin/java (from JAVA_HOME) is Java 11" in said
    assert f"{tmp_path}/new/bin/java (from PATH) is Java 25" in said
    assert "`make setup`" in said


def test_a_java_that_does_not_start_is_named_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    with pytest.raises(java.JavaMissing, match=r"gone/bin/java \(from JAVA_HOME\) does not start"):
        java.java_home()


def test_a_java_that_fails_is_named_with_what_it_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake_java(tmp_path / "broken", "17")
    (home / "bin" / "java").write_text("#!/bin/sh\necho 'no such library' >&2\nexit 127\n")
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(java.JavaMissing, match="fails with exit code 127: no such library"):
        java.java_home()


def test_without_an_installed_java_the_packaged_one_is_wrapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = tmp_path / "it's a runtime"
    (runtime / "bin").mkdir(parents=True)
    (runtime / "bin" / "java").write_text('#!/bin/sh\nfor a; do echo "<$a>"; done\n')
    (runtime / "bin" / "java").chmod(0o755)
    monkeypatch.setattr(java, "_packaged", lambda: runtime)
    command = java.java_command()
    assert java.is_packaged()
    monkeypatch.undo()
    arguments = ["-cp", "a b:c", "--add-modules=jdk.incubator.vector", "Main", ""]
    said = subprocess.run([command, *arguments], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["<-cp>", "<a b:c>", "<Main>", "<>"]


def test_a_child_given_our_wrapper_as_java_home_keeps_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runtime = fake_java(tmp_path / "runtime", "21")
    monkeypatch.setattr(java, "_packaged", lambda: runtime)
    wrapper = java.java_home()
    monkeypatch.setenv("JAVA_HOME", java.environment()["JAVA_HOME"])
    assert java.java_home() == wrapper != runtime


def test_the_environment_for_a_child_names_that_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(fake_java(tmp_path / "path", "21") / "bin"))
    assert java.environment()["JAVA_HOME"] == str(tmp_path / "path")
