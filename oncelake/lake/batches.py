"""What Spark knows of a batch: the offsets it will read, and what it counted on the way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from pyspark.sql import DataFrame, Observation

from oncelake.lake.java import JAVA_ERRORS, JavaObject
from oncelake.model import Ranges, Span, TopicPartition, non_empty

SOURCE_RDD = "DataSourceRDD"
KAFKA_PARTITION = "KafkaBatchInputPartition"
ONE_TO_ONE = "OneToOneDependency"
# As text: asked for part by part it would take six calls to Java.
_RANGE = re.compile(r"KafkaOffsetRange\((.+)-(\d+),(\d+),(\d+),.*\)")


def planned(batch: DataFrame) -> Ranges | None:
    """The offsets that a batch of a stream will read; None where this Spark does not show them.

    The offset log says what a batch was to read. Two drivers that share a checkpoint can both
    write an entry of it: only the plan says which offsets these rows come from.
    """
    try:
        texts = list(_kafka_ranges(batch._jdf.queryExecution().logical().rdd()))
    except JAVA_ERRORS:
        return None
    found = [_RANGE.fullmatch(text) for text in texts]
    spans = sorted(_span(match) for match in found if match)
    if len(spans) != len(texts):
        return None
    ranges: dict[TopicPartition, Span] = {}
    for tp, start, end in spans:
        # Spark may split a partition's offsets among tasks: put them together again.
        begun = ranges.get(tp, Span(start, start))
        if begun.end != start:
            return None
        ranges[tp] = Span(begun.start, end)
    return non_empty(ranges) or None


def parts(batch: DataFrame) -> tuple[TopicPartition, ...] | None:
    """Which partition of Kafka each task of a batch reads, where each reads one and each is read by
    one, with nothing moved in between; None for every other batch."""
    try:
        rdd = batch._jdf.queryExecution().logical().rdd()
        while rdd.getClass().getSimpleName() != SOURCE_RDD:
            (dependency,) = _each(rdd.dependencies())
            if dependency.getClass().getSimpleName() != ONE_TO_ONE:
                return None
            rdd = dependency.rdd()
        texts = list(_kafka_ranges(rdd))
        tasks = rdd.getNumPartitions()
    except (*JAVA_ERRORS, ValueError):
        return None
    found = [_RANGE.fullmatch(text) for text in texts]
    read = tuple(_span(match)[0] for match in found if match)
    numbers = {tp.partition for tp in read}
    return read if read and len(read) == len(numbers) == tasks else None


def observed(observation: Observation) -> Mapping[str, int] | None:
    """What was counted on the way; None where the plan was pruned and nothing was."""
    try:
        return {name: int(count) for name, count in observation.get.items()}
    except JAVA_ERRORS:
        return None


def _kafka_ranges(rdd: JavaObject) -> Iterator[str]:
    """Walk from the rows back to the Kafka partitions that they are read from."""
    if rdd.getClass().getSimpleName() == SOURCE_RDD:
        for partition in rdd.partitions():
            for given in _each(partition.inputPartitions()):
                if given.getClass().getSimpleName() == KAFKA_PARTITION:
                    yield str(given.offsetRange().toString())
    for dependency in _each(rdd.dependencies()):
        yield from _kafka_ranges(dependency.rdd())


def _span(match: re.Match[str]) -> tuple[TopicPartition, int, int]:
    topic, partition, start, end = match.groups()
    return TopicPartition(topic, int(partition)), int(start), int(end)


def _each(sequence: JavaObject) -> Iterator[JavaObject]:
    """A Scala sequence's members."""
    for index in range(sequence.size()):
        yield sequence.apply(index)
