"""The last committed record of a partition, by a consumer that is kept for the next question."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from confluent_kafka import Producer

from oncelake.kafka_sink import progress, tail
from oncelake.local.kafka import LocalKafka, create_topic

ANSWER_SECONDS = 30.0


def _committed(bootstrap: str, topic: str, texts: Iterable[str], partition: int = 0) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for text in texts:
        producer.produce(topic, text, partition=partition)
    assert producer.flush(ANSWER_SECONDS) == 0


def _aborted(bootstrap: str, topic: str, texts: Iterable[str]) -> None:
    producer = _transactional(bootstrap, topic)
    producer.begin_transaction()
    for text in texts:
        producer.produce(topic, text, partition=0)
    producer.flush(ANSWER_SECONDS)
    producer.abort_transaction(ANSWER_SECONDS)
    # Kafka lets in the next of that id when the abort stands in every partition.
    _transactional(bootstrap, topic)


def _transactional(bootstrap: str, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(ANSWER_SECONDS)
    return producer


def test_each_question_is_answered_by_what_is_there_now(kafka: LocalKafka) -> None:
    topic, config = "tail.now", {"bootstrap.servers": kafka.bootstrap}
    create_topic(kafka.bootstrap, topic, 2)
    assert tail.last(config, topic, 0) is None
    _committed(kafka.bootstrap, topic, ["a", "b"])
    _committed(kafka.bootstrap, topic, ["other"], partition=1)
    assert [tail.last(config, topic, each) for each in (0, 1, 0)] == ["b", "other", "b"]
    _committed(kafka.bootstrap, topic, ["c"])
    assert tail.last(config, topic, 0) == "c"


def test_a_partition_that_was_made_since_the_last_question_is_known(kafka: LocalKafka) -> None:
    topic, config = "tail.wider", {"bootstrap.servers": kafka.bootstrap}
    progress.ensure(config, topic, 0)
    assert tail.last(config, topic, 0) is None
    progress.ensure(config, topic, 3)
    assert tail.last(config, topic, 3) is None


def test_what_was_taken_back_does_not_hide_what_was_said_before(kafka: LocalKafka) -> None:
    topic, config = "tail.aborted", {"bootstrap.servers": kafka.bootstrap}
    create_topic(kafka.bootstrap, topic, 1)
    _committed(kafka.bootstrap, topic, ["said"])
    _aborted(kafka.bootstrap, topic, map(str, range(3 * tail.NEAR)))
    assert tail.last(config, topic, 0) == "said"


@pytest.mark.faults
def test_a_broker_that_was_away_between_two_questions_answers_the_second(tmp_path: Path) -> None:
    with LocalKafka(tmp_path / "kafka") as broker:
        topic, config = "tail.away", {"bootstrap.servers": broker.bootstrap}
        create_topic(broker.bootstrap, topic, 1)
        _committed(broker.bootstrap, topic, ["a"])
        assert tail.last(config, topic, 0) == "a"
        broker.kill()
        broker.start()
        _committed(broker.bootstrap, topic, ["b"])
        assert tail.last(config, topic, 0) == "b"
