"""`sinks` of a spec: topics besides the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from oncelake.spec import KafkaSinkSpec, echo_yaml
from tests.unit.spec_files import ARTICLE, SPEC, complaints, read

TOPIC = "articles.good.v1"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "article.avsc").write_text(ARTICLE)
    return tmp_path


def test_a_topic_is_enough(folder: Path) -> None:
    spec = read(folder, f"{SPEC}sinks:\n  - kafka: {{topic: {TOPIC}}}\n")
    assert spec.sinks == (KafkaSinkSpec(TOPIC, spec.source.bootstrap, spec.name),)


def test_all_of_it_is_echoed_and_reads_back_the_same(folder: Path) -> None:
    given = (
        "sinks:\n  - kafka:\n      topic: other\n      bootstrap: elsewhere:9092\n"
        "      name: mirror\n      key: id\n      too_large: quarantine\n"
        "      transaction_timeout: 30 s\n      options: {linger.ms: 5}\n"
        "  - kafka: {topic: third, mode: offsets, foreign: pass}\n"
    )
    spec = read(folder, SPEC + given)
    one, two = spec.sinks
    assert one == KafkaSinkSpec(
        "other",
        "elsewhere:9092",
        "mirror",
        "id",
        too_large="quarantine",
        transaction_timeout_seconds=30.0,
        options={"linger.ms": "5"},
    )
    assert (two.mode, two.foreign) == ("offsets", "pass")
    assert read(folder, echo_yaml(spec)).sinks == spec.sinks


def test_a_password_is_not_shown(folder: Path) -> None:
    given = f"sinks:\n  - kafka: {{topic: {TOPIC}, options: {{sasl.password: hush}}}}\n"
    spec = read(folder, SPEC + given)
    assert "hush" not in echo_yaml(spec) + repr(spec)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("sinks: kafka", "sinks must be a list: - kafka: {topic: articles.good.v1}"),
        ("sinks: [kafka]", "sinks[1] must hold keys and values: kafka"),
        ("sinks: [{}]", "sinks[1].kafka is missing"),
        ("sinks: [{kafak: {topic: a}}]", "unknown key 'kafak' in sinks[1]; did you mean 'kafka'?"),
        ("sinks: [{kafka: {}}]", "sinks[1].kafka.topic is missing: the topic to send to"),
        ("sinks: [{kafka: {topic: 'a b'}}]", "sinks[1].kafka.topic 'a b'"),
        ("sinks: [{kafka: {topic: a, keys: id}}]", "did you mean 'key'?"),
        ("sinks: [{kafka: {topic: a, key: odd}}]", "'odd' is no column of the rows: id"),
        ("sinks: [{kafka: {topic: articles.raw.v1}}]", "is the topic that is read"),
        ("sinks: [{kafka: {topic: a}}, {kafka: {topic: a}}]", "sinks[2].kafka.name is needed"),
        ("sinks: [{kafka: {topic: a, too_large: drop}}]", "sinks[1].kafka.too_large 'drop'"),
        ("sinks: [{kafka: {topic: a, mode: offset}}]", "sinks[1].kafka.mode 'offset'"),
        (
            "sinks: [{kafka: {topic: a, mode: offsets, too_large: quarantine}}]",
            "too_large 'quarantine' needs mode: transactions",
        ),
        ("sinks: [{kafka: {topic: a, options: {acks: 1}}}]", "acks is set by the sink itself"),
    ],
)
def test_what_is_wrong_is_said(folder: Path, given: str, said: str) -> None:
    assert said in "".join(complaints(folder, f"{SPEC}{given}\n"))
