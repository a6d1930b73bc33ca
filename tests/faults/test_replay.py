"""Rows in quarantine are read once more after a fix: exactly once, and each is marked."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from oncelake.errors import RolledBack, TerminalError
from oncelake.local.kafka import LocalKafka
from oncelake.ops.audit import Verdict
from oncelake.ops.decide import decide
from oncelake.ops.replay import Replay, Replayed
from oncelake.samples import articles
from oncelake.spec import read_spec
from tests import oracle
from tests.faults.test_decisions import rolled_back
from tests.faults.test_others import MAINTENANCE, sql
from tests.site import Site

pytestmark = pytest.mark.faults
BUG = "SELECT * EXCEPT (published_at), if(kafka.offset % 3 = 0, null, published_at) published_at"
FIXED = "SELECT *"
TRANSFORM = """\
watermark: {column: published_at, delay: 100000 hours}
transform: SELECT_ FROM rows
"""
SKEW = "watermark: {column: published_at, delay: 100000 hours, skew: 1 hour}\n"
NOW, LONG_AGO = 0, 1_700_000_000_000
SPOILED = "reason = 'published_at is null' OR reason LIKE '%ahead of its time in Kafka'"


class Case(Site):
    """A pipeline that takes a third of its records for bad ones, until it is fixed."""

    @classmethod
    def transforming(cls, kafka: LocalKafka, folder: Path, spark: SparkSession) -> Case:
        """By a bug in the transform of an upsert."""
        more = TRANSFORM.replace("SELECT_", BUG)
        case = cls.make(kafka, folder, upsert=True, more=more)
        case.produce(600)
        case.run_here(spark)
        return case

    @classmethod
    def skewed(cls, kafka: LocalKafka, folder: Path, spark: SparkSession) -> Case:
        """By the rule of an append for records whose times in Kafka are far behind their own."""
        case = cls.make(kafka, folder, more=SKEW)
        producer = Producer({"bootstrap.servers": case.bootstrap})
        for number, event in enumerate(articles.events(articles.Load(600, corrupt=0.01))):
            time = NOW if number % 3 else LONG_AGO
            producer.produce(case.topic, event.value, event.key, timestamp=time)
        assert producer.flush(30) == 0
        case.run_here(spark)
        return case

    def spoiled(self, spark: SparkSession) -> int:
        found = spark.table(self.quarantine).filter(SPOILED).count()
        assert found > 100
        return found

    def fix(self) -> None:
        text = self.spec.read_text()
        self.spec.write_text(text.replace(BUG, FIXED).replace("skew: 1 hour", "skew: 100000 hours"))

    def replay(self, spark: SparkSession) -> Replayed:
        return Replay(spark, read_spec(self.spec, {}).spec).run()

    def every(self) -> oracle.Contents:
        return oracle.expected(
            self.bootstrap, self.topic, oracle.read_schema(self.folder / "article.avsc")
        )

    def outcomes(self, spark: SparkSession) -> Counter[str | None]:
        return Counter(row.outcome for row in spark.table(self.quarantine).collect())

    def assert_replayed(self, spark: SparkSession, spoiled: int) -> None:
        """All is in main that can be, once; in quarantine the rest, and what was taken, marked."""
        report = self.audit(spark)
        assert report.verdict == "clean", report
        assert self.contents().good == self.expected().good
        outcomes = self.outcomes(spark)
        assert outcomes["taken"] == spoiled == report.totals.replayed
        bad = self.contents().bad
        assert bad.total() == outcomes.total() == spoiled + len(self.every().bad)
        assert max(bad.values()) == 1


def test_what_a_fix_makes_good_is_taken_once_and_marked(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """First what it would do, then for good, by the command that a person types."""
    case = Case.transforming(kafka, tmp_path, spark)
    spoiled, corrupt = case.spoiled(spark), len(case.every().bad)
    assert spoiled == sum(article.offset % 3 == 0 for article in case.every().good)
    assert corrupt
    case.fix()

    before = case.contents()
    would = Replay(spark, read_spec(case.spec, {}).spec).dry()
    assert (would.done, would.taken, would.failed) == (False, spoiled, corrupt)
    assert case.contents() == before
    command = [sys.executable, "-m", "oncelake", "replay", str(case.spec), "--json"]
    told = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert (told["done"], told["taken"], told["failed"]) == (True, spoiled, corrupt)
    case.assert_replayed(spark, spoiled)
    assert case.outcomes(spark)["failed"] == corrupt
    again = case.replay(spark)
    assert (again.taken, again.failed) == (0, corrupt)
    sql(spark, case, MAINTENANCE["expired to the last"])()
    assert case.audit(spark).verdict is Verdict.CLEAN


def test_a_replay_that_is_killed_is_completed_by_whatever_comes_next(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """kill -9 to its process when main has decided. A run comes next, which marks the rows."""
    case = Case.skewed(kafka, tmp_path, spark)
    spoiled = case.spoiled(spark)
    case.fix()
    case.run_halted("after:publish", 1, "--replay")
    report = case.audit(spark)
    assert report.verdict is Verdict.EXPLAINED, report
    case.produce(300, seed=2)
    case.run_here(spark)
    assert case.replay(spark).taken == 0
    case.assert_replayed(spark, spoiled)


def test_a_replay_that_is_rolled_back_is_done_again(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    case = Case.skewed(kafka, tmp_path, spark)
    spoiled = case.spoiled(spark)
    case.fix()
    assert case.replay(spark).taken == spoiled
    snapshots = spark.table(f"{case.table}.history").filter("is_current_ancestor").count()
    rolled_back(case, spark, to=snapshots - 1)
    with pytest.raises(RolledBack, match="--rewrite"):
        case.replay(spark)
    decide(spark, read_spec(case.spec, {}).spec, "rewrite", dry_run=False)
    assert case.audit(spark).totals.replayed == 0
    assert "taken" not in case.outcomes(spark)
    assert case.replay(spark).taken == spoiled
    case.assert_replayed(spark, spoiled)


def test_marks_that_somebody_wipes_off_double_nothing(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    case = Case.skewed(kafka, tmp_path, spark)
    spoiled = case.spoiled(spark)
    case.fix()
    case.replay(spark)
    spark.sql(f"UPDATE {case.quarantine} SET outcome = NULL WHERE kafka_partition = 1")
    before = case.contents()
    with pytest.raises(TerminalError, match=r"\[1\] offset"):
        case.replay(spark)
    assert case.contents() == before
    spark.sql(f"UPDATE {case.quarantine} SET outcome = 'taken' WHERE {SPOILED}")
    assert case.replay(spark).taken == 0
    assert case.contents().good == case.expected().good
    assert case.outcomes(spark)["taken"] == spoiled
