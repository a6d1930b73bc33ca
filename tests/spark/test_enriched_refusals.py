"""Tables that the enriched job must not read, or write to: each is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oncelake.enrich import job
from oncelake.errors import SourceChanged, TableMissing, TableUnfit
from oncelake.model import Origin
from tests.spark.enriching import PARTITIONS, PROGRESS, Newsdesk, Sent


@pytest.fixture
def versions(spark: SparkSession) -> Newsdesk:
    """A raw table of every version."""
    return Newsdesk(spark, "append")


def test_a_missing_raw_table_is_named(spark: SparkSession) -> None:
    nowhere = job.Settings(raw="demo.enriching.nowhere", enriched="demo.enriching.not_made")
    with pytest.raises(TableMissing, match=r"demo\.enriching\.nowhere does not exist"):
        job.run(spark, nowhere)
    assert not spark.catalog.tableExists("demo.enriching.not_made")


def test_a_raw_table_of_somebody_else_is_refused(versions: Newsdesk) -> None:
    with pytest.raises(TableUnfit, match="was not filled by a pipeline of oncelake"):
        versions.run()


@pytest.mark.faults
def test_a_table_of_other_columns_is_refused(versions: Newsdesk) -> None:
    versions.send(Sent(0, "a", 1))
    versions.spark.sql(
        f"CREATE TABLE {versions.enriched} (id int, more int) USING iceberg "
        "TBLPROPERTIES ('format-version'='3')"
    )
    with pytest.raises(TableUnfit, match=r"id is int and not string, title is missing.*more is"):
        versions.run()


@pytest.mark.faults
def test_a_raw_table_of_a_recreated_topic_is_refused_until_it_is_read_anew(
    versions: Newsdesk, warehouse: Path
) -> None:
    versions.send(Sent(0, "a", 1), Sent(0, "b", 1))
    versions.run()
    versions.spark.sql(f"DROP TABLE {versions.raw}")
    versions.make_raw()
    versions.topic = [[] for _ in range(PARTITIONS)]
    versions.origin = Origin("cluster", {"t": "created again"})
    versions.send(Sent(1, "a", 1), Sent(1, "b", 2, "Later"))
    with pytest.raises(SourceChanged, match=rf"UNSET TBLPROPERTIES \('{PROGRESS}'\)"):
        versions.run()
    versions.forget()
    versions.run()
    versions.assert_as_wanted(warehouse)
