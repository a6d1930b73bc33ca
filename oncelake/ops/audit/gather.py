"""Collect the evidence in an order that a running pipeline cannot disturb.

Kafka's first offsets are asked for before progress is read and its next offsets after, so neither
can seem wrong by what happened in between. Main is read before quarantine, which then may be
ahead: it is looked at as it was when main stood where it was read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from oncelake.errors import TableMissing
from oncelake.model import (
    FOLLOWED_PREFIX,
    PROGRESS_PREFIX,
    Progress,
    Ranges,
    Span,
    TopicPartition,
    compact,
)
from oncelake.ops.audit.brokers import FIRST, NEXT, Brokers
from oncelake.ops.audit.chain import stamps_of
from oncelake.ops.audit.counting import (
    Counter,
    Pinned,
    has_topic_column,
    read_coordinates,
    repeated_keys,
)
from oncelake.ops.audit.evidence import Evidence, History, TopicFacts
from oncelake.ops.audit.judge import judge, short_ranges
from oncelake.ops.audit.report import Report
from oncelake.ops.audit.slicing import Grid, cut
from oncelake.ops.audit.standing import progress_of
from oncelake.ops.audit.tables import TableState, read_table


def audit(spark: SparkSession, names: Names, kafka: Mapping[str, str] | None) -> Report:
    """Audit what a pipeline wrote, from the outside.

    `kafka` is a confluent-kafka client configuration; without it the topic is not compared.
    """
    evidence, counter = gather(spark, names, kafka)
    if short := short_ranges(evidence):
        rows = replace(evidence.rows, holes=counter.holes(short))
        evidence = replace(evidence, rows=rows)
    return judge(evidence)


@dataclass(frozen=True, slots=True)
class Names:
    """`key`: the columns of which a row's values must be its own, if there are such."""

    table: str
    pipeline: str
    quarantine: str
    key: tuple[str, ...] = ()


def gather(spark: SparkSession, names: Names, kafka: Mapping[str, str] | None
           ) -> tuple[Evidence, Counter]:  # fmt: skip
    """The evidence, and the counter that can look closer at its rows."""
    topic = _ask_first(_read_main(spark, names), names, kafka)
    main = _read_main(spark, names)
    evidence = _ledger(spark, names, main)
    progress = progress_of(evidence)
    topics = sorted({tp.topic for tp in progress.positions}) if progress else []
    counter = Counter(
        spark,
        read_coordinates(spark, Pinned(names.table, main.head), topics) if main.head else None,
        _quarantined(spark, evidence, topics),
    )
    facts = topic.ask_next() if topic else None
    rows = counter.count(_grids(evidence, progress, facts))
    if names.key and main.head:
        twice, some = repeated_keys(spark, Pinned(names.table, main.head), names.key)
        rows = replace(rows, keys_twice=twice, repeated=some)
    return replace(evidence, rows=rows, topic=facts), counter


@dataclass(frozen=True, slots=True)
class _Asked:
    """Kafka, asked for ids and first offsets, and yet to be asked for the next ones."""

    brokers: Brokers
    cluster_id: str
    topic_ids: Mapping[str, str]
    first: Mapping[TopicPartition, int]

    def ask_next(self) -> TopicFacts:
        ends = self.brokers.offsets(self.first, NEXT)
        offsets = {tp: Span(first, ends[tp]) for tp, first in self.first.items()}
        return TopicFacts(self.cluster_id, self.topic_ids, offsets)


def _ask_first(main: TableState, names: Names, kafka: Mapping[str, str] | None) -> _Asked | None:
    progress = progress_of(_bare(names, main))
    if kafka is None or progress is None:
        return None
    brokers = Brokers(kafka)
    origin, partitions = brokers.identify(progress.origin.topic_ids)
    first = brokers.offsets(partitions, FIRST)
    return _Asked(brokers, origin.cluster_id, origin.topic_ids, first)


def _read_main(spark: SparkSession, names: Names) -> TableState:
    main = read_table(spark, names.table)
    if main is None:
        raise TableMissing(
            f"table {names.table} does not exist: check table.name in the spec, or let "
            "`oncelake run` create it"
        )
    return main


def _bare(names: Names, main: TableState) -> Evidence:
    return Evidence(
        pipeline=names.pipeline,
        main=main.history,
        quarantine=History(names.quarantine, exists=False),
        progress_text=main.properties.get(PROGRESS_PREFIX + names.pipeline),
    )


def _ledger(spark: SparkSession, names: Names, main: TableState) -> Evidence:
    """All but the rows and the topic."""
    own = PROGRESS_PREFIX + names.pipeline
    keys = sorted(key for key in main.properties if key.startswith(PROGRESS_PREFIX) and key != own)
    evidence = replace(
        _bare(names, main),
        neighbours=tuple(key.removeprefix(PROGRESS_PREFIX) for key in keys),
        topic_column=has_topic_column(spark, names.table),
    )
    side = read_table(spark, names.quarantine)
    if side is None:
        return evidence
    followed = side.properties.get(FOLLOWED_PREFIX + names.pipeline)
    evidence = replace(evidence, quarantine=side.history, followed_text=followed)
    progress = progress_of(evidence)
    ahead = _ahead(evidence, progress)
    if not progress or not ahead or _sequence(spark, names) < ahead[-1][1]:
        return evidence
    return _as_it_was(evidence, progress, ahead[0][0])


def _ahead(evidence: Evidence, progress: Progress | None) -> list[tuple[int, int]]:
    """Where in its history, and to which sequence, quarantine went further than main as read."""
    stands = progress.sequence if progress else 0
    follows = stamps_of(evidence.quarantine, evidence.pipeline)
    return [(s.index, s.stamp.sequence) for s in follows if s.stamp.sequence > stands]


def _sequence(spark: SparkSession, names: Names) -> int:
    """Where main stands by now."""
    progress = progress_of(_bare(names, _read_main(spark, names)))
    return progress.sequence if progress else 0


def _as_it_was(evidence: Evidence, progress: Progress, index: int) -> Evidence:
    """Quarantine before it followed any commit later than `progress`; all of progress it had."""
    history = evidence.quarantine
    return replace(
        evidence,
        quarantine=replace(history, ancestors=history.ancestors[:index]),
        followed_text=compact({"sequence": progress.sequence, "attempt": progress.attempt}),
    )


def _quarantined(spark: SparkSession, evidence: Evidence, topics: Sequence[str]
                 ) -> DataFrame | None:  # fmt: skip
    ancestors = evidence.quarantine.ancestors
    if not ancestors:
        return None
    pinned = Pinned(evidence.quarantine.table, ancestors[-1].snapshot_id)
    return read_coordinates(spark, pinned, topics)


def _grids(evidence: Evidence, progress: Progress | None, topic: TopicFacts | None
           ) -> tuple[Grid, ...]:  # fmt: skip
    stamps = stamps_of(evidence.main, evidence.pipeline)
    ranges: list[Ranges] = [each.stamp.ranges for each in stamps]
    if progress:
        ranges.append(progress.positions)
    return cut(ranges, topic.offsets if topic else ())
