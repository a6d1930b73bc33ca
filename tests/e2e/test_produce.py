"""`oncelake produce` against a real broker: what it says it sent is what Kafka holds."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from fastavro import schemaless_reader
from fastavro.schema import load_schema

from oncelake.cli import main
from oncelake.errors import KafkaUnreachable, OncelakeError
from oncelake.local.kafka import LocalKafka, create_topic
from oncelake.samples.articles import SCHEMA_FILE, Event, Kind, Load, events
from oncelake.samples.producer import Target, ensure_topic, produce

LOAD = Load(3_000, duplicates=0.05, corrupt=0.01, late=0.02)


@pytest.fixture
def topic() -> str:
    return f"articles-{uuid.uuid4().hex[:8]}"


def held(bootstrap: str, topic: str) -> Iterator[Message]:
    """Every message of the topic, from the first to the last there is now."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test"})
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        ends = {
            p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10)[1]
            for p in partitions
        }
        consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
        for _ in range(sum(ends.values())):
            message = consumer.poll(10)
            assert message is not None
            assert message.error() is None
            yield message
    finally:
        consumer.close()


def test_kafka_holds_every_event_once_with_its_key(kafka: LocalKafka, topic: str) -> None:
    create_topic(kafka.bootstrap, topic, 3)
    produced = produce(events(LOAD), Target(kafka.bootstrap, topic))
    messages = [(m.key(), m.value()) for m in held(kafka.bootstrap, topic)]
    assert sorted(messages, key=repr) == sorted(((e.key, e.value) for e in events(LOAD)), key=repr)
    assert produced.sent == sum(produced.ends.values()) == 3_000
    assert (produced.corrupt, produced.duplicates, produced.late) == (30, 150, 60)


def test_versions_of_an_article_stay_in_order_in_one_partition(
    kafka: LocalKafka, topic: str
) -> None:
    create_topic(kafka.bootstrap, topic, 3)
    produce(events(LOAD), Target(kafka.bootstrap, topic))
    sent: dict[bytes, list[bytes | None]] = {}
    for event in events(LOAD):
        sent.setdefault(event.key, []).append(event.value)
    found: dict[bytes, list[bytes | None]] = {}
    places: dict[bytes, set[int | None]] = {}
    for message in held(kafka.bootstrap, topic):
        key = message.key()
        assert isinstance(key, bytes)
        found.setdefault(key, []).append(message.value())
        places.setdefault(key, set()).add(message.partition())
    assert found == sent
    assert {len(partitions) for partitions in places.values()} == {1}


def test_a_rate_is_kept(kafka: LocalKafka, topic: str) -> None:
    create_topic(kafka.bootstrap, topic, 1)
    produced = produce(events(Load(100)), Target(kafka.bootstrap, topic, rate=200))
    assert produced.seconds >= 99 / 200


def test_a_missing_topic_is_created_once_with_the_partitions_asked_for(
    kafka: LocalKafka, topic: str
) -> None:
    assert ensure_topic(kafka.bootstrap, topic, 4)
    assert not ensure_topic(kafka.bootstrap, topic, 9)
    assert len(produce(events(Load(500)), Target(kafka.bootstrap, topic)).ends) == 4


def test_a_message_that_kafka_refuses_fails_the_call_and_names_the_topic(
    kafka: LocalKafka, topic: str
) -> None:
    create_topic(kafka.bootstrap, topic, 1, {"max.message.bytes": "2000"})
    too_large = [Event(Kind.NEW, b"k", b"x" * 500_000)]
    with pytest.raises(OncelakeError, match=rf"{topic} at {kafka.bootstrap} was not delivered"):
        produce(too_large, Target(kafka.bootstrap, topic))


def test_the_command_prints_one_json_document(
    kafka: LocalKafka, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--bootstrap", kafka.bootstrap, "--topic", topic]
    code = main(["produce", *where, "--count", "2000", "--partitions", "2", "--json"])
    document = json.loads(capsys.readouterr().out)
    assert code == 0
    assert (document["sent"], document["corrupt"]) == (2_000, 2)
    assert sum(document["ends"].values()) == 2_000


def test_a_second_call_goes_on_where_the_topic_ends(kafka: LocalKafka, topic: str) -> None:
    """With other articles, none of them late; a seed asks for the same ones again."""
    plain = ["--duplicates", "0", "--corrupt", "0", "--late", "0", "--partitions", "1"]
    words = ["produce", "--bootstrap", kafka.bootstrap, "--topic", topic, "--count", "50", *plain]
    for more in ([], [], ["--seed", "1"]):
        assert main([*words, *more]) == 0
    sent = [_article(message) for message in held(kafka.bootstrap, topic)]
    first, second, again = sent[:50], sent[50:100], sent[100:]
    assert again == first
    assert len({article["id"] for article in sent}) == 100
    times = [article["published_at"] for article in first + second]
    assert times == sorted(set(times))


def _article(message: Message) -> dict[str, Any]:
    schema = load_schema(str(SCHEMA_FILE))
    value = message.value()
    assert value is not None
    article = schemaless_reader(BytesIO(value), schema, None)
    assert isinstance(article, dict)
    return article


def test_a_broker_that_is_not_there_is_said_within_ten_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    began = time.monotonic()
    code = main(["produce", "--bootstrap", "localhost:1", "--count", "1"])
    assert time.monotonic() - began < 10
    assert code == KafkaUnreachable.exit_code == 8
    assert "Kafka at localhost:1 did not answer" in capsys.readouterr().err
