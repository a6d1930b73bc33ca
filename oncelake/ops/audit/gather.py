"""Collect the evidence in an order that a running pipeline cannot disturb.

Kafka's first offsets are asked for before progress is read and its next offsets after, so neither
can seem wrong by what happened in between. Main is read before the side tables, which then may be
ahead: they are looked at as they were when main stood where it was read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from oncelake.errors import TableMissing
from oncelake.model import (
    FOLLOWED_PREFIX,
    PROGRESS_PREFIX,
    SIDE_FATES,
    Epochs,
    Origin,
    Progress,
    Ranges,
    Span,
    TopicPartition,
    compact,
    kafka_name,
)
from oncelake.ops.audit.brokers import FIRST, NEXT, Brokers
from oncelake.ops.audit.chain import stamps_of
from oncelake.ops.audit.counting import (
    MAIN,
    Counter,
    Pinned,
    has_topic_column,
    read_coordinates,
    repeated_keys,
)
from oncelake.ops.audit.evidence import Evidence, History, Side, TopicFacts
from oncelake.ops.audit.judge import judge, short_ranges
from oncelake.ops.audit.report import Report
from oncelake.ops.audit.slicing import Grid, cut
from oncelake.ops.audit.standing import progress_of
from oncelake.ops.audit.tables import TableState, read_table

Doing = Callable[[str], None]
"""Is told what is being done: a large table takes a while."""


def audit(spark: SparkSession, names: Names, kafka: Mapping[str, str] | None,
          doing: Doing = lambda words: None) -> Report:  # fmt: skip
    """Audit what a pipeline wrote, from the outside.

    `kafka` is a confluent-kafka client configuration; without it the topic is not compared.
    """
    evidence, counter = gather(spark, names, kafka, doing)
    if short := short_ranges(evidence):
        rows = replace(evidence.rows, holes=counter.holes(short))
        evidence = replace(evidence, rows=rows)
    return judge(evidence)


@dataclass(frozen=True, slots=True)
class Names:
    """`sides`: by fate, the table that keeps the rows of it.

    `key`: the columns of which a row's values must be its own, if there are such. `bounded`: the
    pipeline looks for a key only so far back, so one may stand twice by choice.
    """

    table: str
    pipeline: str
    sides: Mapping[str, str]
    key: tuple[str, ...] = ()
    bounded: bool = False

    def __post_init__(self) -> None:
        if unknown := sorted(self.sides.keys() - set(SIDE_FATES)):
            raise ValueError(
                f"Names.sides: no rows are kept as {', '.join(unknown)}; a side table is named by "
                f"the fate of its rows, one of {', '.join(SIDE_FATES)}"
            )


def gather(spark: SparkSession, names: Names, kafka: Mapping[str, str] | None,
           doing: Doing = lambda words: None) -> tuple[Evidence, Counter]:  # fmt: skip
    """The evidence, and the counter that can look closer at its rows."""
    doing(f"reading the stamps of {names.table}, and the topic's offsets")
    topic = _ask_first(_read_main(spark, names), names, kafka)
    main = _read_main(spark, names)
    evidence = _ledger(spark, names, main)
    progress = progress_of(evidence)
    topics = sorted({tp.topic for tp in progress.positions}) if progress else []
    histories = {MAIN: evidence.main, **{side.fate: side.history for side in evidence.sides}}
    pinned = {name: Pinned.newest(history) for name, history in histories.items()}
    counter = Counter(
        spark,
        {n: read_coordinates(spark, at, topics) if at else None for n, at in pinned.items()},
    )
    facts = topic.ask_next() if topic else None
    doing(f"counting the rows of {', '.join(history.table for history in histories.values())}")
    rows = counter.count(_grids(evidence, progress, facts))
    if names.key and (at := pinned[MAIN]):
        doing(f"looking for a key ({', '.join(names.key)}) that stands twice")
        twice, some = repeated_keys(spark, at, names.key)
        rows = replace(rows, keys_twice=twice, repeated=some)
    return replace(evidence, rows=rows, topic=facts), counter


@dataclass(frozen=True, slots=True)
class _Asked:
    """Kafka, asked for ids and first offsets, and yet to be asked for the next ones."""

    brokers: Brokers
    origin: Origin
    first: Mapping[TopicPartition, int]
    epochs: Epochs

    def ask_next(self) -> TopicFacts:
        """By the names that the ledger has for the topics."""
        ends = self.brokers.offsets(self.first, NEXT)
        offsets = {tp: Span(first, ends[tp]) for tp, first in self.first.items()}
        known = self.origin.known_as(self.epochs)
        return TopicFacts(known.cluster_id, known.topic_ids, self.epochs.in_ledger(offsets))


def _ask_first(main: TableState, names: Names, kafka: Mapping[str, str] | None) -> _Asked | None:
    progress = progress_of(_bare(names, main))
    if kafka is None or progress is None:
        return None
    brokers = Brokers(kafka)
    origin, partitions = brokers.identify({kafka_name(each) for each in progress.origin.topic_ids})
    first = brokers.offsets(partitions, FIRST)
    return _Asked(brokers, origin, first, progress.origin.epochs)


def _read_main(spark: SparkSession, names: Names) -> TableState:
    main = read_table(spark, names.table)
    if main is None:
        raise TableMissing(
            f"table {names.table} does not exist: check table.name in the spec. The first oncelake "
            "run PIPELINE.yaml makes it; where it was dropped, oncelake recover PIPELINE.yaml first"
        )
    return main


def _bare(names: Names, main: TableState) -> Evidence:
    return Evidence(
        pipeline=names.pipeline,
        main=main.history,
        progress_text=main.properties.get(PROGRESS_PREFIX + names.pipeline),
        bounded=names.bounded,
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
    progress = progress_of(evidence)
    fates = [fate for fate in SIDE_FATES if fate in names.sides]
    return replace(evidence, sides=tuple(_side(spark, names, fate, progress) for fate in fates))


def _side(spark: SparkSession, names: Names, fate: str, progress: Progress | None) -> Side:
    """A side table, as it was when main stood at `progress`."""
    state = read_table(spark, names.sides[fate])
    if state is None:
        return Side(fate, History(names.sides[fate], exists=False))
    side = Side(fate, state.history, state.properties.get(FOLLOWED_PREFIX + names.pipeline))
    ahead = _ahead(side, names.pipeline, progress)
    if not progress or not ahead or _sequence(spark, names) < ahead[-1][1]:
        return side
    return _as_it_was(side, progress, ahead[0][0])


def _ahead(side: Side, pipeline: str, progress: Progress | None) -> list[tuple[int, int]]:
    """Where in its history, and to which sequence, it went further than main as read."""
    stands = progress.sequence if progress else 0
    follows = stamps_of(side.history, pipeline)
    return [(s.index, s.stamp.sequence) for s in follows if s.stamp.sequence > stands]


def _sequence(spark: SparkSession, names: Names) -> int:
    """Where main stands by now."""
    progress = progress_of(_bare(names, _read_main(spark, names)))
    return progress.sequence if progress else 0


def _as_it_was(side: Side, progress: Progress, index: int) -> Side:
    """The table before it followed any commit later than `progress`; all of progress it had."""
    return replace(
        side,
        history=replace(side.history, ancestors=side.history.ancestors[:index]),
        followed_text=compact({"sequence": progress.sequence, "attempt": progress.attempt}),
    )


def _grids(evidence: Evidence, progress: Progress | None, topic: TopicFacts | None
           ) -> tuple[Grid, ...]:  # fmt: skip
    stamps = stamps_of(evidence.main, evidence.pipeline)
    ranges: list[Ranges] = [each.stamp.ranges for each in stamps]
    if progress:
        ranges.append(progress.positions)
    return cut(ranges, topic.offsets if topic else ())
