"""Somebody else works on the table while a batch is written: allowed, and the audit explains it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oncelake.commit import Step
from oncelake.local.kafka import LocalKafka
from oncelake.ops.audit import Verdict
from tests.site import Site

pytestmark = pytest.mark.faults

MAINTENANCE = {
    "compacted": "CALL {catalog}.system.rewrite_data_files(table => '{table}', "
    "options => map('rewrite-all', 'true'))",
    "sorted": "CALL {catalog}.system.rewrite_data_files(table => '{table}', strategy => 'sort', "
    "sort_order => 'id', options => map('rewrite-all', 'true'))",
    "manifests rewritten": "CALL {catalog}.system.rewrite_manifests(table => '{table}')",
    "expired to the last": "CALL {catalog}.system.expire_snapshots(table => '{table}', "
    "older_than => TIMESTAMP '2100-01-01', retain_last => 1)",
}


class Once:
    """Does something the first time that a batch is about to be published; counts stagings."""

    def __init__(self, act: Callable[[], object]) -> None:
        self._act = act
        self.done = 0
        self.staged = 0

    def __call__(self, when: str, step: Step) -> None:
        self.staged += (when, step) == ("before", Step.STAGE)
        if (when, step) == ("before", Step.PUBLISH) and not self.done:
            self.done += 1
            self._act()


def sql(spark: SparkSession, site: Site, statement: str) -> Callable[[], object]:
    text = statement.format(catalog=site.catalog, table=site.table)
    return lambda: spark.sql(text).collect()


@pytest.mark.parametrize("upsert", [False, True], ids=["append", "upsert"])
def test_maintenance_by_others_between_staging_and_commit(
    upsert: bool, kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """What was staged fits the table as it was: an upsert is staged anew where rows moved."""
    site = Site.make(kafka, tmp_path, upsert=upsert)
    site.produce(800, seed=1)
    site.run_here(spark)
    for seed, (name, statement) in enumerate(MAINTENANCE.items(), start=2):
        site.produce(800, seed=seed)
        others = Once(sql(spark, site, statement))
        site.run_here(spark, on_step=others)
        assert others.done == 1, name
        moved = name != "expired to the last"
        assert others.staged == (2 if upsert and moved else 1), name
    site.assert_exactly_once(spark)


@pytest.mark.parametrize("upsert", [False, True], ids=["append", "upsert"])
def test_rows_that_others_delete_and_append_are_explained(
    upsert: bool, kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """A row deleted for privacy stays away, a row of somebody else's stays, and neither is ours."""
    site = Site.make(kafka, tmp_path, upsert=upsert)
    site.produce(800, seed=1)
    site.run_here(spark)
    gone = spark.table(site.table).orderBy("kafka_partition", "kafka_offset").first()
    assert gone is not None
    place = f"kafka_partition = {gone.kafka_partition} AND kafka_offset = {gone.kafka_offset}"
    acts = (
        f"DELETE FROM {{table}} WHERE {place}",
        "INSERT INTO {table} (id, title) VALUES ('theirs', 'not of any topic')",
    )
    for seed, statement in enumerate(acts, start=2):
        site.produce(800, seed=seed)
        others = Once(sql(spark, site, statement))
        site.run_here(spark, on_step=others)
        assert others.done == 1
    report = site.audit(spark)
    assert report.verdict == Verdict.EXPLAINED
    assert report.foreign == 1
    assert {finding.kind for finding in report.findings} == {"rows-deleted", "foreign-rows"}
    want, have = site.expected().good, site.contents().good
    lost, surplus = want - have, have - want
    assert [(row.partition, row.offset) for row in lost.elements()] == [
        (gone.kafka_partition, gone.kafka_offset)
    ]
    assert [row.id for row in surplus.elements()] == ["theirs"]
