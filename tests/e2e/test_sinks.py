"""One batch into a table and a topic: each has every good row once, whatever happens in between."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from oncelake.errors import Gap, TopicMissing
from oncelake.local.kafka import LocalKafka, create_topic
from oncelake.samples import articles
from tests.faults.test_decisions import decided, made_anew
from tests.faults.test_kafka import remove_records
from tests.outbox import read_committed
from tests.site import Site

END = -1
SINK = "sinks:\n  - kafka: {{topic: {topic}, key: id}}\n"


@dataclass(frozen=True)
class Pair(Site):
    """A pipeline with a topic besides its table."""

    @classmethod
    def paired(cls, kafka: LocalKafka, folder: Path, upsert: bool = False,
               more: str = "") -> Pair:  # fmt: skip
        pair = cls.make(kafka, folder, max_offsets=300, upsert=upsert, more=more)
        create_topic(kafka.bootstrap, pair.target, 2)
        pair.with_sink()
        return pair

    @property
    def target(self) -> str:
        return f"{self.topic}.good"

    def without_sink(self) -> None:
        self.spec.write_text(self.spec.read_text().replace(SINK.format(topic=self.target), ""))

    def with_sink(self) -> None:
        self.spec.write_text(self.spec.read_text() + SINK.format(topic=self.target))

    def assert_sent_once(self) -> None:
        """Every good record, under its key, and of a key all in one partition."""
        seen = read_committed(self.bootstrap, self.target)
        wanted = Counter((each.id, each.title) for each in self.expected().good)
        found = [json.loads(message.value) for message in seen]
        assert Counter((each["id"], each["title"]) for each in found) == wanted
        times = [datetime.fromisoformat(each["published_at"]) for each in found]
        assert {(each["id"], at) for each, at in zip(found, times, strict=True)} == {
            (each.id, each.published_at) for each in self.expected().good
        }
        assert all(m.key == each["id"] for m, each in zip(seen, found, strict=True))
        homes = {(message.key, message.partition) for message in seen}
        assert len(homes) == len({key for key, _ in homes}), "a key in two partitions"


@pytest.fixture
def pair(kafka: LocalKafka, tmp_path: Path) -> Pair:
    return Pair.paired(kafka, tmp_path)


def test_each_good_row_is_in_the_table_and_in_the_topic(pair: Pair, spark: SparkSession) -> None:
    pair.produce(600)
    told = pair.run_here(spark)
    assert [event.name for event in told].count("sent") >= 2
    pair.assert_exactly_once(spark)
    pair.assert_sent_once()


@pytest.mark.faults
def test_a_sink_that_is_added_begins_where_the_table_stands(
    pair: Pair, spark: SparkSession
) -> None:
    """And one that was left out for a while sends what it has missed."""
    pair.without_sink()
    pair.produce(300)
    pair.run_here(spark)
    pair.with_sink()
    claimed = [event for event in pair.run_here(spark) if event.name == "claimed"]
    (ends,) = [event.facts["positions"][pair.topic] for event in claimed]
    pair.produce(300, seed=2)
    pair.run_here(spark)
    pair.without_sink()
    pair.produce(300, seed=3)
    pair.run_here(spark)
    pair.with_sink()
    pair.run_here(spark)
    pair.assert_exactly_once(spark)
    seen = Counter(m.key for m in read_committed(pair.bootstrap, pair.target))
    assert seen == Counter(
        each.id for each in pair.expected().good if each.offset >= ends[str(each.partition)][1]
    )


@pytest.mark.faults
@pytest.mark.parametrize("transform", ["", "transform: SELECT * FROM rows\n"])
def test_a_tombstone_is_sent_without_a_value_under_the_key_it_had_and_in_its_place(
    transform: str, kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """Also where a transform, which is not given tombstones, has parted them from the rows."""
    pair = Pair.paired(kafka, tmp_path, upsert=True, more=f"deletes: tombstone\n{transform}")
    (event,) = articles.events(articles.Load(1))
    producer = Producer({"bootstrap.servers": pair.bootstrap})
    for value in (event.value, None, event.value):
        producer.produce(pair.topic, value, event.key)
    assert producer.flush(30) == 0
    pair.run_here(spark)
    first, second, third = read_committed(pair.bootstrap, pair.target)
    assert json.loads(first.value)["id"] == first.key == second.key == third.key
    assert second.value == ""
    assert third.value == first.value


def test_a_topic_that_is_missing_is_told(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    pair = Pair.make(kafka, tmp_path)
    pair.with_sink()
    with pytest.raises(TopicMissing, match="which is to be sent to, does not exist"):
        pair.run_here(spark)


@pytest.mark.faults
def test_what_was_not_sent_before_the_topic_was_made_anew_is_a_gap_of_the_sink(
    pair: Pair, spark: SparkSession
) -> None:
    pair.produce(300)
    pair.run_here(spark)
    pair.without_sink()
    pair.produce(300, seed=2)
    pair.run_here(spark)
    made_anew(pair)
    pair.produce(300, seed=3)
    decided(pair, spark, "rebase")
    pair.with_sink()
    with pytest.raises(Gap, match="of a topic that was made anew since"):
        pair.run_here(spark)
    pair.spec.write_text(pair.spec.read_text().replace("key: id", "key: id, name: anew"))
    pair.run_here(spark)


@pytest.mark.faults
def test_a_sink_that_has_sent_all_goes_on_with_the_topic_made_anew(
    pair: Pair, spark: SparkSession
) -> None:
    pair.produce(300)
    pair.run_here(spark)
    made_anew(pair)
    pair.produce(300, seed=2)
    decided(pair, spark, "rebase")
    for _ in range(2):
        pair.run_here(spark)
        pair.produce(300, seed=3)
    pair.run_here(spark)
    now = Counter(each.id for each in pair.expected().good)
    sent = Counter(message.key for message in read_committed(pair.bootstrap, pair.target))
    assert not now - sent


@pytest.mark.faults
def test_what_kafka_no_longer_holds_is_a_gap_of_the_sink(pair: Pair, spark: SparkSession) -> None:
    pair.produce(300)
    pair.run_here(spark)
    pair.without_sink()
    pair.produce(300, seed=2)
    pair.run_here(spark)
    remove_records(pair, 1, END)
    pair.with_sink()
    with pytest.raises(Gap, match="what Kafka no longer holds"):
        pair.run_here(spark)
    pair.spec.write_text(pair.spec.read_text().replace("key: id", "key: id, name: anew"))
    pair.run_here(spark)
