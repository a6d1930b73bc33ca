"""Maintenance between batches and on demand: it removes what nobody refers to, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oncelake import events, pipeline
from oncelake.errors import CatalogUnreachable
from oncelake.lake import LakeTable, upkeep
from oncelake.local.kafka import LocalKafka
from oncelake.maintain import KEEP_SNAPSHOTS, Ages, Maintenance
from oncelake.model import Origin, Progress
from oncelake.spec import MaintenanceSpec, PipelineSpec, read_spec
from tests.faults.test_others import sql
from tests.site import Site

pytestmark = pytest.mark.faults
OTHER = "oncelake.progress.other"
AT_ONCE = MaintenanceSpec(every_seconds=0.0, expire_seconds=0.0, orphans_seconds=0.0)


def maintenance(site: Site, spark: SparkSession) -> Maintenance:
    """For which nothing is too young."""
    site.use_catalog(spark)
    sides = (LakeTable(spark, site.quarantine),)
    return Maintenance(spark, LakeTable(spark, site.table), sides, Ages(0.0, 0.0))


def orphans(site: Site, spark: SparkSession) -> list[str]:
    return [path for done in maintenance(site, spark).dry_run() for path in done.orphans]


def run_maintained(site: Site, spark: SparkSession) -> list[events.Event]:
    """One run that is maintained after every batch."""
    site.use_catalog(spark)
    spec: PipelineSpec = replace(read_spec(site.spec, {}).spec, maintenance=AT_ONCE)
    told: list[events.Event] = []
    running = pipeline.Running(spec.checkpoint, once=True, tell=told.append)
    pipeline.start(spark, spec, running).wait()
    return told


def test_files_of_a_killed_batch_are_removed_once_it_cannot_be_published_any_more(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    site = Site.make(kafka, tmp_path)
    site.produce(600)
    site.run_here(spark)
    assert orphans(site, spark) == []
    site.produce(600, seed=2)
    site.run_halted("after:stage", 1)
    assert orphans(site, spark) == [], "the killed run could still be alive, for all we know"
    site.run_here(spark)
    found = orphans(site, spark)
    assert found
    assert all(Path(path.removeprefix("file:")).exists() for path in found)
    other = Progress("other", Origin("cluster")).to_text()
    spark.sql(f"ALTER TABLE {site.table} SET TBLPROPERTIES ('{OTHER}' = '{other}')")
    assert orphans(site, spark) == [], "another pipeline may be about to publish them"
    spark.sql(f"ALTER TABLE {site.table} UNSET TBLPROPERTIES ('{OTHER}')")
    done = list(maintenance(site, spark).run())
    assert [path for each in done for path in each.orphans] == found
    assert not any(each.failed for each in done)
    assert not any(Path(path.removeprefix("file:")).exists() for path in found)
    site.assert_exactly_once(spark)


def test_files_that_wait_for_a_side_table_are_not_removed(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """They are older than main's newest commit, and no metadata refers to them but progress."""
    site = Site.make(kafka, tmp_path)
    site.produce(600)
    site.run_halted("after:publish", 1)
    for done in maintenance(site, spark).run():
        assert not done.orphans
        assert not done.failed
    site.run_here(spark)
    site.assert_exactly_once(spark)


def test_files_that_came_since_a_table_was_last_read_are_not_removed(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """A side table may be compacted, and be old news to a run that has nothing for it."""
    site = Site.make(kafka, tmp_path)
    site.produce(600)
    site.run_here(spark)
    loaded = maintenance(site, spark)
    spark.sql(
        f"CALL {site.catalog}.system.rewrite_data_files(table => '{site.quarantine}', "
        "options => map('rewrite-all', 'true'))"
    )
    # A claim, which is main's newest commit from here on, and later than those files.
    site.run_here(spark)
    assert [path for done in loaded.dry_run() for path in done.orphans] == []
    for done in loaded.run():
        assert not done.failed
    site.assert_exactly_once(spark)


def test_a_run_that_is_maintained_after_every_batch_writes_the_same(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """An upsert's vectors name rows by file and position, which compaction changes."""
    site = Site.make(kafka, tmp_path, max_offsets=300, upsert=True)
    site.produce(900)
    told = [event for event in run_maintained(site, spark) if event.name == "maintained"]
    assert sum(event.facts["compacted"] for event in told) > 0
    assert [event.facts["failed"] for event in told if event.facts["failed"]] == []
    site.assert_exactly_once(spark)


def test_the_newest_commit_of_ours_is_never_expired(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """However many of others' came after it: a rollback behind it would not be noticed."""
    site = Site.make(kafka, tmp_path)
    site.produce(600)
    site.run_here(spark)
    newest = LakeTable(spark, site.table).newest_stamped("articles")
    for _ in range(KEEP_SNAPSHOTS + 2):
        sql(spark, site, "INSERT INTO {table} (id) VALUES ('theirs')")()
    for done in maintenance(site, spark).run():
        assert not done.failed
    assert LakeTable(spark, site.table).newest_stamped("articles") == newest


def test_maintenance_that_fails_is_told_and_fails_no_batch(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(spark: SparkSession, table: str) -> int:
        raise CatalogUnreachable("the catalog is away")

    monkeypatch.setattr(upkeep, "compact", away)
    site = Site.make(kafka, tmp_path, max_offsets=300)
    site.produce(600)
    told = [event for event in run_maintained(site, spark) if event.name == "maintained"]
    assert told
    assert all("compacted failed: the catalog is away" in event.text for event in told)
    site.assert_exactly_once(spark)
