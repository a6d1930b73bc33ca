"""Kafka as a source: the stream with its coordinates, and whose offsets they are."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from threading import Event
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from oncelake import client
from oncelake.errors import KafkaUnreachable, TopicMissing
from oncelake.local import ports
from oncelake.model import Origin, Ranges, Span, TopicPartition
from oncelake.spec import LimitsSpec, SourceSpec, shown

TOPIC = "kafka_topic"
"""The column of a row's topic, in tables that name it."""
Answer = TypeVar("Answer")
ANSWER_SECONDS = 15.0
ASK_AGAIN_SECONDS = 0.1
NOT_LED = (KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION)
# Spark asks for the topic's first and last offset around each poll: 500 records are too few for
# that. And it asks behind a fetch that waits for new records at the topic's end, half a second a
# task by default: a batch that reaches the end would spend its time there.
FETCH_OPTIONS = {
    "kafka.max.poll.records": "10000",
    "kafka.max.partition.fetch.bytes": "4194304",
    "kafka.fetch.max.wait.ms": "10",
}


@dataclass(frozen=True, slots=True)
class Topics:
    """Live topics: whose they are, and first and next offset of each partition."""

    origin: Origin
    offsets: Ranges

    @property
    def partitions(self) -> tuple[int, ...]:
        return tuple(tp.partition for tp in sorted(self.offsets))

    def starts(self, where: str) -> dict[TopicPartition, int]:
        """Where a pipeline without progress begins."""
        return {tp: s.start if where == "earliest" else s.end for tp, s in self.offsets.items()}


def client_config(source: SourceSpec) -> dict[str, str]:
    """The spec's Java client options in librdkafka's words, for admin calls."""
    return client.settings(source.bootstrap, source.options)


def describe_topic(source: SourceSpec) -> Topics:
    """Ask Kafka for the topic's ids and offsets; clear errors where it does not answer."""
    return describe(client_config(source), [source.topic])


def describe(config: Mapping[str, str], topics: Sequence[str]) -> Topics:
    names = ", ".join(shown(topic) for topic in topics)
    admin = client.admin(config)
    try:
        cluster = admin.describe_cluster(request_timeout=ANSWER_SECONDS).result(ANSWER_SECONDS)
        asked = admin.describe_topics(TopicCollection(list(topics)), request_timeout=ANSWER_SECONDS)
        found = {name: future.result(ANSWER_SECONDS) for name, future in asked.items()}
        keys = [TopicPartition(name, p.id) for name, t in found.items() for p in t.partitions]
        earliest, latest = OffsetSpec.earliest(), OffsetSpec.latest()  # type: ignore[no-untyped-call]
        low = once_led(lambda: _offsets(admin, keys, earliest))
        high = once_led(lambda: _offsets(admin, keys, latest))
    except (KafkaException, TimeoutError) as error:
        raise _translated(error, names, shown(config["bootstrap.servers"])) from error
    origin = Origin(cluster.cluster_id, {name: str(t.topic_id) for name, t in found.items()})
    return Topics(origin, {tp: Span(low[tp], high[tp]) for tp in keys})


def once_led(ask: Callable[[], Answer], also: tuple[int, ...] = ()) -> Answer:
    """Ask again where a partition has no leader: for a moment after it was created, or moved. And
    where the answer is one of `also`."""
    deadline = time.monotonic() + ANSWER_SECONDS
    while True:
        try:
            return ask()
        except KafkaException as error:
            if error.args[0].code() not in (*NOT_LED, *also) or time.monotonic() > deadline:
                raise
            Event().wait(ASK_AGAIN_SECONDS)


def within(ranges: Ranges, partition: Column, offset: Column,
           topic: Column | None = None) -> Column:  # fmt: skip
    """Whether a row's coordinates are in these ranges; without a topic, of whichever it is."""
    keep = F.lit(False)
    for tp, span in ranges.items():
        here = (partition == tp.partition) & (offset >= span.start) & (offset < span.end)
        keep |= here if topic is None else here & (topic == tp.topic)
    return keep


def open_stream(spark: SparkSession, source: SourceSpec, limits: LimitsSpec,
                begin: Mapping[TopicPartition, int]) -> DataFrame:  # fmt: skip
    """The topic as a stream. `begin` holds only where there is no checkpoint."""
    options = _options(source, limits) | {
        "subscribe": source.topic,
        "startingOffsets": offsets_as_json(begin),
    }
    if limits.max_offsets is not None:
        options["maxOffsetsPerTrigger"] = str(limits.max_offsets)
    return spark.readStream.format("kafka").options(**options).load()


def read_ranges(spark: SparkSession, source: SourceSpec, limits: LimitsSpec,
                ranges: Ranges) -> DataFrame:  # fmt: skip
    """Exactly these offsets, whatever Spark's stream has planned."""
    partitions: dict[str, list[int]] = {}
    for tp in sorted(ranges):
        partitions.setdefault(tp.topic, []).append(tp.partition)
    options = _options(source, limits) | {
        "assign": json.dumps(partitions),
        "startingOffsets": offsets_as_json({tp: span.start for tp, span in ranges.items()}),
        "endingOffsets": offsets_as_json({tp: span.end for tp, span in ranges.items()}),
        # One name for all batches: executors then keep their connections, and what they have
        # fetched ahead, from batch to batch, instead of holding both for each batch anew.
        "kafka.group.id": f"oncelake-{source.topic}",
    }
    return spark.read.format("kafka").options(**options).load()


def _options(source: SourceSpec, limits: LimitsSpec) -> dict[str, str]:
    split = {} if limits.min_partitions is None else {"minPartitions": str(limits.min_partitions)}
    return {
        "kafka.bootstrap.servers": source.bootstrap,
        "failOnDataLoss": "true",
        "includeHeaders": "true",
        # What a transaction took back, or has not decided yet, was never sent.
        "kafka.isolation.level": "read_committed",
        **split,
        **FETCH_OPTIONS,
        **{f"kafka.{key}": value for key, value in source.options.items()},
    }


def _offsets(admin: AdminClient, keys: list[TopicPartition],
             which: OffsetSpec) -> dict[TopicPartition, int]:  # fmt: skip
    wanted = {KafkaPartition(tp.topic, tp.partition): which for tp in keys}
    answers = admin.list_offsets(wanted, request_timeout=ANSWER_SECONDS)
    return {
        TopicPartition(asked.topic, asked.partition): int(future.result(ANSWER_SECONDS).offset)
        for asked, future in answers.items()
    }


def offsets_as_json(begin: Mapping[TopicPartition, int]) -> str:
    """As Spark spells them."""
    nested: dict[str, dict[str, int]] = {}
    for tp, offset in sorted(begin.items()):
        nested.setdefault(tp.topic, {})[str(tp.partition)] = offset
    return json.dumps(nested)


def _translated(error: Exception, topic: str, bootstrap: str) -> Exception:
    if "UNKNOWN_TOPIC_OR_PART" in str(error):
        return TopicMissing(
            f"topic {topic} does not exist at {bootstrap}; create it, or set source.topic "
            "(KAFKA_TOPIC) to one that does"
        )
    return KafkaUnreachable(
        f"Kafka at {bootstrap} did not answer for topic {topic}: "
        f"{str(error) or f'nothing within {ANSWER_SECONDS:.0f} s'}. Check source.bootstrap "
        "(KAFKA_BOOTSTRAP_SERVERS), source.options (security.protocol, sasl.*, ssl.*) and that "
        f"the broker runs; for a local one type: oncelake local up{ports.port_option(bootstrap)}"
    )
