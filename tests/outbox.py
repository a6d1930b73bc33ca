"""Topics to send to and from, and a reader that shares nothing with the sink."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, Self

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from oncelake import outbound, pipeline
from oncelake.demo.run import PipelineRun
from oncelake.demo.tally import Event
from oncelake.kafka_sink.target import Sending
from oncelake.local.kafka import LocalKafka, create_topic
from tests.oracle import records

SPEC = """\
pipeline: sender
source: {{bootstrap: "{bootstrap}", topic: {source}}}
decode: {{format: avro, schema: article.avsc}}
table: {{name: unused.news.articles}}
checkpoint: checkpoint
catalog: {{type: jdbc, uri: 'jdbc:sqlite:catalog.db', warehouse: warehouse}}
spark:
  master: {master}
  settings:
    spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1
"""
ANSWER_SECONDS = 30.0
PARTITIONS, KEYS = 3, 10
_numbers = itertools.count(1)


class Seen(NamedTuple):
    """A message as a reader of committed records gets it."""

    partition: int
    key: str
    value: str
    headers: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Outbox:
    """One test's topics: numbered messages come in, and are to come out once each."""

    bootstrap: str
    source: str
    target: str
    folder: Path
    master: str = "local[2]"
    settings: str = ""
    """Further lines of Spark's settings."""

    @classmethod
    def make(cls, kafka: LocalKafka, folder: Path, partitions: int = PARTITIONS) -> Self:
        number = next(_numbers)
        box = cls(kafka.bootstrap, f"in.{number}", f"out.{number}", folder)
        create_topic(box.bootstrap, box.source, partitions)
        create_topic(box.bootstrap, box.target, partitions)
        return box

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def run(self, *words: str) -> PipelineRun:
        """The stream as a process of its own (see tests.faults.sender)."""
        spec = self.folder / "pipeline.yaml"
        given = {"bootstrap": self.bootstrap, "source": self.source, "master": self.master}
        spec.write_text(SPEC.format(**given) + self.settings)
        schema = resources.files("oncelake.samples").joinpath("article.avsc").read_text()
        (self.folder / "article.avsc").write_text(schema)
        words = ("--target", self.target, *words)
        return PipelineRun(
            spec, self.folder / "run.log", program=("tests.faults.sender",), words=words
        )

    def run_to_the_end(self, *words: str) -> list[Event]:
        with self.run("--once", *words) as run:
            told = list(run.events())
            assert run.ended() == 0, run.failed("failed")
        return told

    def run_here(self, spark: SparkSession, mode: str = "transactions") -> None:
        """What is there now, in this process, on the shared session."""
        running = pipeline.Running(str(self.checkpoint), once=True)
        sending = Sending(self.target, self.bootstrap, mode=mode)
        outbound.write(with_coordinates(self.stream(spark)), sending, running).wait()

    def produce(self, numbers: Iterable[int], keys: int = KEYS) -> None:
        """Each number as the value of a message; of one key they ascend."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 5})
        for number in numbers:
            producer.produce(self.source, key=f"k{number % keys}", value=str(number))
            producer.poll(0)
        assert producer.flush(ANSWER_SECONDS) == 0

    def stream(self, spark: SparkSession, most: int | None = None) -> DataFrame:
        options = {"kafka.bootstrap.servers": self.bootstrap, "subscribe": self.source,
                   "startingOffsets": "earliest"}  # fmt: skip
        if most is not None:
            options["maxOffsetsPerTrigger"] = str(most)
        return spark.readStream.format("kafka").options(**options).load()

    def partitions_by_java(self, spark: SparkSession) -> dict[str, int]:
        """Into which partition each key goes by Java's producer, in a topic of as many."""
        other = f"{self.target}.java"
        create_topic(self.bootstrap, other, PARTITIONS)
        keys = spark.range(KEYS).selectExpr("concat('k', id) AS key", "'' AS value")
        options = {"kafka.bootstrap.servers": self.bootstrap, "topic": other}
        keys.write.format("kafka").options(**options).save()
        return {message.key: message.partition for message in read_committed(self.bootstrap, other)}

    def seen(self) -> list[Seen]:
        return read_committed(self.bootstrap, self.target)

    def assert_once(self, numbers: Iterable[int]) -> None:
        """Every number once, and those of one key in their order."""
        seen = self.seen()
        values = [int(message.value) for message in seen]
        assert sorted(values) == sorted(numbers)
        by_key: dict[str, list[int]] = {}
        for message in seen:
            by_key.setdefault(message.key, []).append(int(message.value))
        assert all(each == sorted(each) for each in by_key.values()), "reordered"
        homes = {(message.key, message.partition) for message in seen}
        assert len(homes) == len(by_key), "a key in two partitions"


def with_coordinates(stream: DataFrame) -> DataFrame:
    """Its messages, and where each was read."""
    return stream.select(
        "key",
        "value",
        F.col("partition").alias("kafka_partition"),
        F.col("offset").alias("kafka_offset"),
    )


def read_committed(bootstrap: str, topic: str) -> list[Seen]:
    """All that a reader of committed records sees."""
    return [
        Seen(
            message.partition() or 0,
            (message.key() or b"").decode(),
            (message.value() or b"").decode(),
            tuple(message.headers() or ()),
        )
        for message in records(bootstrap, topic)
    ]
