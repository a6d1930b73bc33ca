"""Where a run stops because a person must decide: what each decision does to rows and audit."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from oncelake.errors import Gap, RolledBack, SourceChanged, TerminalError
from oncelake.local.kafka import LocalKafka, create_topic
from oncelake.ops.audit import Verdict
from oncelake.ops.decide import Decided, decide
from oncelake.spec import read_spec
from tests import oracle
from tests.faults.test_kafka import ANSWER_SECONDS, next_offsets, remove_records
from tests.faults.test_others import MAINTENANCE, sql
from tests.site import PARTITIONS, Site

pytestmark = pytest.mark.faults
MODES = pytest.mark.parametrize("upsert", [False, True], ids=["append", "upsert"])


def decided(site: Site, spark: SparkSession, decision: str, dry_run: bool = False) -> Decided:
    return decide(spark, read_spec(site.spec, {}).spec, decision, dry_run)


def findings(site: Site, spark: SparkSession) -> tuple[Verdict, set[str]]:
    report = site.audit(spark)
    return report.verdict, {finding.kind for finding in report.findings}


def made_anew(site: Site) -> None:
    admin = AdminClient({"bootstrap.servers": site.bootstrap})
    admin.delete_topics([site.topic])[site.topic].result(ANSWER_SECONDS)
    create_topic(site.bootstrap, site.topic, partitions=PARTITIONS)


def rolled_back(site: Site, spark: SparkSession, to: int) -> None:
    """By Iceberg's own procedure, to the state after so many of main's snapshots."""
    ancestors = spark.table(f"{site.table}.history").filter("is_current_ancestor")
    chosen = ancestors.orderBy("made_current_at").collect()[to - 1].snapshot_id
    call = f"CALL {site.catalog}.system.rollback_to_snapshot('{site.table}', {chosen})"
    sql(spark, site, call)()


def test_an_accepted_gap_is_shown_for_ever(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """First what it would do, then for good, by the command that a person types."""
    site = Site.make(kafka, tmp_path)
    site.produce(600)
    site.run_here(spark)
    before, stands = site.contents(), next_offsets(site)[1]
    site.produce(600, seed=2)
    remove_records(site, 1, stands + 7)
    with pytest.raises(Gap, match="--accept-gap"):
        site.run_here(spark)

    lost = {site.topic: {"1": [stands, stands + 7]}}
    would = decided(site, spark, "accept-gap", dry_run=True).to_json()
    assert (would["done"], would["lost"]) == (False, lost)
    with pytest.raises(Gap):
        site.run_here(spark)
    command = [sys.executable, "-m", "oncelake", "recover", str(site.spec), "--accept-gap"]
    done = subprocess.run([*command, "--json"], capture_output=True, check=True)
    told = json.loads(done.stdout)
    assert (told["done"], told["lost"]) == (True, lost)
    site.run_here(spark)
    oracle.assert_exactly_once(
        oracle.Contents(before.good | site.expected().good, before.bad | site.expected().bad),
        site.contents(),
    )
    assert findings(site, spark) == (Verdict.EXPLAINED, {"gap-accepted"})
    sql(spark, site, MAINTENANCE["expired to the last"])()
    assert findings(site, spark) == (Verdict.EXPLAINED, {"gap-accepted"})
    with pytest.raises(TerminalError, match="no gap to accept"):
        decided(site, spark, "accept-gap")


@MODES
def test_a_topic_made_anew_goes_on_beside_the_former_rows(
    upsert: bool, kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """Its partitions and offsets are those of former rows too: no row is taken for another."""
    site = Site.make(kafka, tmp_path, upsert=upsert)
    site.produce(900)
    site.run_here(spark)
    former = site.expected()
    made_anew(site)
    site.produce(600, seed=2)
    with pytest.raises(SourceChanged, match="--rebase"):
        site.run_here(spark)
    with pytest.raises(SourceChanged):
        decided(site, spark, "accept-gap")
    done = decided(site, spark, "rebase")
    assert list(done.epochs) == [f"{site.topic}#2"]
    assert done.aside is not None
    assert findings(site, spark) == (Verdict.EXPLAINED, {"rebased"})
    site.run_here(spark)
    site.produce(300, seed=3)
    site.run_here(spark)
    have, now = site.contents(), site.expected()
    good = former.good + now.good
    both = oracle.Contents(good, former.bad)
    assert have.good == (oracle.latest(both).good if upsert else good)
    assert {row.topic for row in have.bad} == {site.topic, f"{site.topic}#2"}
    assert have.bad.total() == former.bad.total() + now.bad.total()
    assert findings(site, spark) == (Verdict.EXPLAINED, {"rebased"})
    with pytest.raises(TerminalError, match="nothing to rebase"):
        decided(site, spark, "rebase")


def test_what_a_rollback_lost_is_written_again(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """In the quarantine too each record is once, also where the command is killed half-way: a
    kill -9 of its process."""
    site = Site.make(kafka, tmp_path, max_offsets=300, upsert=True)
    site.produce(900)
    site.run_here(spark)
    rolled_back(site, spark, to=2)
    with pytest.raises(RolledBack, match="--rewrite"):
        site.run_here(spark)
    # Main has gone back by then, and the quarantine has not followed it.
    site.run_halted("before:finish", 1, "--decide", "rewrite")
    site.run_here(spark)
    site.assert_exactly_once(spark)
    site.produce(300, seed=2)
    site.run_here(spark)
    rolled_back(site, spark, to=3)
    assert decided(site, spark, "rewrite").due_again
    site.run_here(spark)
    site.assert_exactly_once(spark)


def test_a_rewrite_that_kafka_cannot_give_is_refused_and_rolled_forward(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """Retention has passed what was rolled back: only the table's own snapshots still have it."""
    site = Site.make(kafka, tmp_path, max_offsets=300)
    site.produce(900)
    site.run_here(spark)
    before, ends = site.contents(), next_offsets(site)
    rolled_back(site, spark, to=2)
    back, stands = site.contents(), next_offsets(site)
    remove_records(site, 1, ends[1] - 5)
    with pytest.raises(Gap, match="has removed") as told:
        decided(site, spark, "rewrite", dry_run=True)
    with pytest.raises(Gap):
        decided(site, spark, "rewrite")
    assert (site.contents(), next_offsets(site)) == (back, stands)
    with pytest.raises(RolledBack, match="set_current_snapshot") as stopped:
        site.run_here(spark)
    calls = {re.findall('type: oncelake sql PIPELINE.yaml "(.*?)"', str(e.value))[0]
             for e in (told, stopped)}  # fmt: skip
    (call,) = calls
    spark.sql(call)
    assert site.contents() == before
    site.run_here(spark)
    assert findings(site, spark) == (Verdict.CLEAN, set())


def test_a_rollback_that_is_accepted_is_shown_for_ever(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    site = Site.make(kafka, tmp_path)
    site.produce(600)
    site.run_here(spark)
    kept = site.contents()
    ends = next_offsets(site)
    site.produce(600, seed=2)
    site.run_here(spark)
    rolled_back(site, spark, to=2)
    done = decided(site, spark, "accept-rollback")
    assert {tp.partition: span.start for tp, span in done.lost.items()} == ends
    assert site.contents() == kept
    site.produce(600, seed=3)
    site.run_here(spark)
    assert findings(site, spark) == (Verdict.EXPLAINED, {"rollback-accepted"})
    sql(spark, site, MAINTENANCE["expired to the last"])()
    assert findings(site, spark) == (Verdict.EXPLAINED, {"rollback-accepted"})
