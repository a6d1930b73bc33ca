"""What the audit asks of Kafka, asked of a real broker."""

from __future__ import annotations

import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from oncelake.errors import KafkaUnreachable
from oncelake.local import ports
from oncelake.local.kafka import LocalKafka, create_topic
from oncelake.model import TopicPartition
from oncelake.ops.audit import brokers
from oncelake.ops.audit.brokers import FIRST, NEXT, Brokers


def ask(kafka: LocalKafka) -> Brokers:
    return Brokers({"bootstrap.servers": kafka.bootstrap})


def test_first_and_next_offsets_are_those_of_the_topic(kafka: LocalKafka) -> None:
    create_topic(kafka.bootstrap, "audit-offsets", 2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    for _ in range(3):
        producer.produce("audit-offsets", b"x", partition=1)
    assert producer.flush(30) == 0
    origin, partitions = ask(kafka).identify(["audit-offsets"])
    zero, one = (TopicPartition("audit-offsets", number) for number in (0, 1))
    assert sorted(partitions) == [zero, one]
    assert origin.cluster_id
    assert ask(kafka).offsets(partitions, FIRST) == {zero: 0, one: 0}
    assert ask(kafka).offsets(partitions, NEXT) == {zero: 0, one: 3}


def test_a_topic_created_again_has_another_id(kafka: LocalKafka) -> None:
    create_topic(kafka.bootstrap, "audit-again", 1)
    before, _ = ask(kafka).identify(["audit-again"])
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.delete_topics(["audit-again"])["audit-again"].result(30)
    deadline = time.monotonic() + 30
    while ask(kafka).identify(["audit-again"])[0].topic_ids:
        assert time.monotonic() < deadline, "the topic is still there"
    gone, partitions = ask(kafka).identify(["audit-again"])
    assert (gone.topic_ids, partitions) == ({}, ())
    create_topic(kafka.bootstrap, "audit-again", 1)
    after, _ = ask(kafka).identify(["audit-again"])
    assert after.cluster_id == before.cluster_id
    assert after.topic_ids["audit-again"] != before.topic_ids["audit-again"]


def test_a_broker_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brokers, "ANSWER_SECONDS", 1.0)
    address = f"127.0.0.1:{ports.free_port()}"
    with pytest.raises(KafkaUnreachable, match=f"Kafka at {address} did not answer"):
        Brokers({"bootstrap.servers": address}).identify(["articles"])
