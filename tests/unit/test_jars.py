"""The jars' cache: what is declared, checked, fetched again, and said when it cannot be."""

from __future__ import annotations

import hashlib
import multiprocessing
from multiprocessing.synchronize import Semaphore
from pathlib import Path
from xml.etree import ElementTree as xml

import pytest

from oncelake.local import Progress, ivy, jars
from oncelake.local.declared import MAVEN, Declared, Jar, declared, module_file

CONTENT = {"spark/a-1.jar": b"a", "kafka/b-2.jar": b"b"}
CHECKSUMS = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENT.items()}
ONE = Declared({"spark": (Jar("org.one", "a", "1"),)}, {"spark": ("org.two", "org.three:c")}, ())


class Repository:
    """Stands in for the network: writes CONTENT where Ivy would, and counts the calls."""

    def __init__(self) -> None:
        self.calls = 0
        self.content = dict(CONTENT)

    def resolve(self, wanted: Declared, work: Path, progress: Progress) -> Path:
        self.calls += 1
        for name, content in self.content.items():
            (work / "jars" / name).parent.mkdir(parents=True, exist_ok=True)
            (work / "jars" / name).write_bytes(content)
        return work / "jars"


@pytest.fixture
def repository(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Repository:
    """An empty cache, two declared jars, and no network."""
    stand_in = Repository()
    monkeypatch.setenv("ONCELAKE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(jars, "committed", lambda: CHECKSUMS)
    monkeypatch.setattr(ivy, "resolve", stand_in.resolve)
    return stand_in


def test_jars_are_fetched_once_and_then_reused_without_a_network(repository: Repository) -> None:
    first = jars.spark_jars()
    assert [jar.read_bytes() for jar in first] == [b"a"]
    assert jars.spark_jars() == first
    assert [jar.name for jar in jars.kafka_jars()] == ["b-2.jar"]
    assert repository.calls == 1


@pytest.mark.parametrize("harm", ["altered", "removed"])
def test_a_damaged_jar_is_named_and_fetched_again(repository: Repository, harm: str) -> None:
    (jar,) = jars.kafka_jars()
    jar.write_bytes(b"half") if harm == "altered" else jar.unlink()
    said: list[str] = []
    folder = jars.ensure(said.append)
    assert said[0] == "jars: damaged in the cache, fetched again: kafka/b-2.jar"
    assert (folder / "kafka/b-2.jar").read_bytes() == b"b"


def test_a_jar_that_is_not_what_was_promised_is_refused_and_not_kept(
    repository: Repository, tmp_path: Path
) -> None:
    repository.content["spark/a-1.jar"] = b"something else"
    with pytest.raises(
        ivy.JarsUnavailable, match=r"not what jars\.sha256 promises: spark/a-1\.jar"
    ):
        jars.ensure()
    assert list(tmp_path.rglob("*.jar")) == []


def test_an_interrupted_fetch_leaves_no_folder_that_looks_whole(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(*arguments: object) -> Path:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(ivy, "resolve", interrupted)
        with pytest.raises(KeyboardInterrupt):
            jars.ensure()
    assert jars.wrong(jars.ensure(), CHECKSUMS) == []


def _ensure_among(others: int, starts: str, waiting: Semaphore) -> None:
    def fetch_when_all_wait(wanted: Declared, work: Path, progress: Progress) -> Path:
        with Path(starts).open("a") as log:
            log.write("fetch\n")
        for _ in range(others):
            assert waiting.acquire(timeout=30), "another process did not wait"
        return Repository().resolve(wanted, work, progress)

    def said(line: str) -> None:
        if "waiting for it" in line:
            waiting.release()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ivy, "resolve", fetch_when_all_wait)
        patched.setattr(jars, "committed", lambda: CHECKSUMS)
        jars.ensure(said)


def test_of_processes_that_come_at_once_one_fetches_and_the_others_wait(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ONCELAKE_CACHE", str(tmp_path / "cache"))
    starts = tmp_path / "starts"
    context = multiprocessing.get_context("spawn")
    given = (2, str(starts), context.Semaphore(0))
    processes = [context.Process(target=_ensure_among, args=given) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert starts.read_text() == "fetch\n"


def test_the_cache_folder_changes_with_the_declarations() -> None:
    newer = Declared({"spark": (Jar("org.one", "a", "2"),)}, ONE.excludes, ())
    assert ONE.fingerprint() != newer.fingerprint()


def test_ivy_is_told_of_every_jar_exclude_and_override() -> None:
    text = module_file(Declared(ONE.sets, ONE.excludes, (Jar("org.four", "d", "4"),)))
    dependencies = xml.fromstring(text).find("dependencies")
    assert dependencies is not None
    assert [(entry.tag, dict(entry.attrib)) for entry in dependencies] == [
        ("dependency", {"org": "org.one", "name": "a", "rev": "1", "conf": "spark->default"}),
        ("exclude", {"org": "org.two", "conf": "spark"}),
        ("exclude", {"org": "org.three", "module": "c", "conf": "spark"}),
        ("override", {"org": "org.four", "module": "d", "rev": "4"}),
    ]


def test_ivy_is_told_which_files_of_a_module_are_wanted_and_of_none_it_depends_on() -> None:
    jar = Jar("org.five", "e", "5", classifiers=("", "tests"), alone=True)
    (dependency,) = xml.fromstring(module_file(Declared({"rest": (jar,)}, {}, ()))).iter(
        "dependency"
    )
    assert dependency.get("transitive") == "false"
    wanted = [artifact.get(f"{{{MAVEN}}}classifier") for artifact in dependency.iter("artifact")]
    assert wanted == [None, "tests"]


def test_without_a_network_the_cause_and_the_log_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ONCELAKE_CACHE", str(tmp_path))
    settings = tmp_path / "settings.xml"
    settings.write_text(
        '<ivysettings><settings defaultResolver="none"/><resolvers>'
        '<ibiblio name="none" m2compatible="true" root="http://nowhere.invalid/"/>'
        "</resolvers></ivysettings>"
    )
    monkeypatch.setenv("ONCELAKE_IVY_SETTINGS", str(settings))
    with pytest.raises(ivy.JarsUnavailable) as failure:
        ivy.resolve(declared(), tmp_path / "work", print)
    said = str(failure.value)
    assert "there is no network" in said
    assert str(tmp_path / "logs" / "ivy.log") in said
    assert "nowhere.invalid" not in said
