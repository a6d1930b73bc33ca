"""Read rows in quarantine once more, after a fix: what is good now goes where it belongs, once.

A step takes rows in the order of their offsets. Which of them pass is worked out first; those are
staged like any batch, and main decides in one commit. The quarantine then follows: each row of the
step is marked with what became of it, and by which commit. A row that was taken is not taken again.
They are not judged by the watermark: whoever asks for them knows that they come late.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import Row as SparkRow
from pyspark.sql import functions as F

from oncelake import lake, layout, ledger, pipeline, planner
from oncelake.batch import Stage
from oncelake.commit import Committer, OnStep, Staging
from oncelake.decode import REASON
from oncelake.errors import TableMissing, TerminalError, Unaccounted
from oncelake.ledger import Placement
from oncelake.model import (
    FAILED,
    FILTERED,
    QUARANTINED,
    TAKEN,
    Counts,
    Progress,
    TopicPartition,
    kafka_name,
    marks_of,
)
from oncelake.reading import Reading
from oncelake.spec import PipelineSpec

# What became of each row of a step is kept in main's progress until the quarantine has it.
STEP_ROWS = 10_000
PLACE = ("topic", "partition", "offset")
NO_VALUE = "value is null"
SAMPLE = 5
Place = tuple[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Replayed:
    """What became of rows in quarantine, or with a dry run would. `reasons` are of those that
    failed again; in a dry run what would be `taken` is not told apart any further."""

    table: str
    done: bool
    rows: int = 0
    taken: int = 0
    filtered: int = 0
    counts: Counts = field(default_factory=Counts)
    reasons: Mapping[str, int] = field(default_factory=dict)

    @property
    def failed(self) -> int:
        return sum(self.reasons.values())

    def and_of(self, step: Step, counts: Counts) -> Replayed:
        outcomes = Counter(step.outcomes.values())
        return replace(
            self,
            rows=self.rows + len(step.outcomes),
            taken=self.taken + outcomes[TAKEN],
            filtered=self.filtered + outcomes[FILTERED],
            counts=self.counts + counts,
            reasons=Counter(self.reasons) + Counter(step.reasons.values()),
        )

    def to_json(self) -> Mapping[str, Any]:
        told = {"rows": self.rows, TAKEN: self.taken, FILTERED: self.filtered, FAILED: self.failed}
        counts = self.counts.to_json() if self.done else {}
        return {"table": self.table, "done": self.done, **told, "reasons": dict(self.reasons),
                "counts": counts}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """Some rows of the quarantine as Kafka gave them, what comes of each, and why of the failed."""

    rows: DataFrame
    outcomes: Mapping[Place, str]
    reasons: Mapping[Place, str]

    @property
    def passing(self) -> int:
        return len(self.outcomes) - len(self.reasons)

    @property
    def topic(self) -> str:
        return kafka_name(next(iter(self.outcomes))[0].topic)

    def good(self) -> DataFrame:
        failed = _frame(self.rows.sparkSession, self.reasons)
        return self.rows.join(F.broadcast(failed), list(PLACE), "left_anti")


class Replay:
    def __init__(self, spark: SparkSession, spec: PipelineSpec) -> None:
        if not lake.table_exists(spark, spec.table.name):
            raise TableMissing(
                f"table {spec.table.name} does not exist: no run has put anything in quarantine"
            )
        self._spark = spark
        self._spec = spec
        self._reading = Reading.of(spark, spec)
        self._tables = layout.make_tables(spark, spec, self._reading.record)
        self._progress = ledger.claimed(ledger.look(self._tables.main, spec.name))

    def dry(self) -> Replayed:
        """What would become of the rows that are not taken yet, were they read now."""
        told = Replayed(self._tables.main.name, done=False)
        for step in self._steps(self._progress):
            told = told.and_of(step, Counts())
        return told

    def run(self, tell: Callable[[Replayed], None] = lambda told: None,
            on_step: OnStep = lambda when, step: None) -> Replayed:  # fmt: skip
        """Own the pipeline, and take what passes. `tell` is called after every step."""
        tables = self._tables
        committer = Committer(self._spec.name, tables.main, tables.sides, on_step)
        progress = committer.claim(self._progress.origin, {})
        committer.finish()
        layout.make_markable(self._spark, tables.sides[QUARANTINED])
        stage = pipeline.stager(self._spec, self._reading, tables)
        told = Replayed(tables.main.name, done=True)
        for step in self._steps(progress):
            told = told.and_of(step, committer.replay(self._stager(stage, step)).counts)
            tell(told)
        return told

    def _steps(self, progress: Progress) -> Iterator[Step]:
        waiting = layout.waiting(self._spark, self._tables.sides[QUARANTINED], progress)
        while places := _places(waiting.orderBy(*PLACE).limit(STEP_ROWS)):
            beyond = _beyond(max(places))
            yield self._step(waiting.filter(~beyond).localCheckpoint(), places)
            waiting = waiting.filter(beyond)

    def _step(self, rows: DataFrame, places: set[Place]) -> Step:
        """What comes of each row by itself."""
        due = self._reading.due(rows.filter(F.isnotnull("value")), watermark=None)
        judged = due.rows()
        reasons = dict.fromkeys(_places(rows.filter(F.isnull("value"))), NO_VALUE)
        reasons |= _reasons(judged)
        if due.left_out is not None:
            reasons |= _reasons(due.read)
        passed = _places(judged.filter(F.isnull(REASON)))
        outcomes = {
            place: FAILED if place in reasons else TAKEN if place in passed else FILTERED
            for place in places
        }
        return Step(rows, outcomes, reasons)

    def _stager(self, stage: Stage, step: Step) -> Callable[[Placement], Staging]:
        def staged(placement: Placement) -> Staging:
            self._refuse_taken(step, placement)
            made = stage(step.good(), replace(placement, watermark=None))
            counts = replace(made.counts, read=0, replayed=made.counts.read)
            if counts.replayed != step.passing or made.sides or not counts.balanced:
                raise Unaccounted(
                    f"{self._tables.main.name}: of {len(step.outcomes)} rows in quarantine "
                    f"{step.passing} passed, and then {counts.to_json()} came of them. Nothing "
                    "was committed. Look for a transform that is not deterministic"
                )
            marks = marks_of((tp, offset, what) for (tp, offset), what in step.outcomes.items())
            return replace(made, counts=counts, watermark=None, marks=marks)

        return staged

    def _refuse_taken(self, step: Step, placement: Placement) -> None:
        """The marks say what was taken; whoever changes them must not double a row."""
        main = self._tables.main
        assert placement.base is not None, "the claim's commit gave the table a snapshot"
        rows = layout.places(main.at(placement.base, self._spark), step.topic)
        passing = [place for place in step.outcomes if place not in step.reasons]
        both = rows.join(F.broadcast(_frame(self._spark, passing)), list(PLACE), "left_semi")
        if found := sorted(_places(both.limit(SAMPLE))):
            named = ", ".join(f"{tp} offset {offset}" for tp, offset in found)
            raise TerminalError(
                f"{main.name} has rows already that wait in {self._tables.sides[QUARANTINED].name} "
                f"to be taken: {named}. Somebody has copied them, or changed the column "
                f"{lake.OUTCOME}. Nothing was written. Set it to '{TAKEN}' for these rows, or "
                "delete them in one of the tables, and replay again"
            )


def _place(row: SparkRow) -> Place:
    return TopicPartition(row.topic, row.partition), row.offset


def _places(rows: DataFrame) -> set[Place]:
    return {_place(row) for row in rows.select(*PLACE).collect()}


def _reasons(rows: DataFrame) -> dict[Place, str]:
    failed = rows.filter(F.isnotnull(REASON)).select(*PLACE, REASON)
    return {_place(row): row[REASON] for row in failed.collect()}


def _beyond(place: Place) -> Column:
    (topic, partition), offset = place
    last = F.struct(F.lit(topic), F.lit(partition), F.lit(offset).cast("bigint"))
    return F.struct(*PLACE) > last


def _frame(spark: SparkSession, places: Iterable[Place]) -> DataFrame:
    listed = [(*tp, offset) for tp, offset in places]
    return planner.local_rows(spark, listed, "topic string, partition int, offset bigint")
