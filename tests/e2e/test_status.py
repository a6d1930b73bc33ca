"""Where a pipeline stands, and whether its Kafka and catalog answer, from the live parts."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oncelake.cli import main
from oncelake.cli.status import show
from oncelake.commit import Step
from oncelake.errors import Fenced, SpecError, TableMissing
from oncelake.local.kafka import LocalKafka
from oncelake.ops.status import Status, status
from oncelake.source import describe_topic
from oncelake.spec import read_spec
from tests.site import Site


@pytest.fixture
def site(kafka: LocalKafka, tmp_path: Path) -> Site:
    return Site.make(kafka, tmp_path)


def _status(site: Site, spark: SparkSession) -> Status:
    site.use_catalog(spark)
    spec = read_spec(site.spec, {}).spec
    return status(spark, spec, describe_topic(spec.source).offsets)


def test_status_says_what_is_done_and_how_far_behind(site: Site, spark: SparkSession) -> None:
    site.produce(1000)
    site.run_here(spark)
    site.produce(300, seed=2)
    found = _status(site, spark)
    assert found.lag == 300
    facts = json.loads(json.dumps(found.to_json()))
    assert facts["generation"] == 1
    assert facts["totals"]["read"] == 1000
    assert sum(p["next"] for p in facts["partitions"]) == 1000
    assert sum(p["topic_high"] for p in facts["partitions"]) == 1300


def test_rows_are_pending_until_their_side_table_shows_them(
    site: Site, spark: SparkSession
) -> None:
    """Progress goes on naming them until the next commit."""
    site.produce(1000)

    def end(when: str, step: Step) -> None:
        if (when, step) == ("after", Step.PUBLISH):
            raise Fenced("before the quarantine follows")

    with pytest.raises(Fenced):
        site.run_here(spark, on_step=end)
    found = _status(site, spark)
    assert found.progress is not None
    assert found.pending == found.progress.totals.quarantined > 0
    site.run_here(spark)
    assert _status(site, spark).pending == 0


def test_status_shows_late_rows_and_the_watermark(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mark = "watermark: {column: published_at, delay: 2 hours}\n"
    site = Site.make(kafka, tmp_path, max_offsets=500, upsert=True, more=mark)
    site.produce(1000)
    site.run_here(spark)
    found = _status(site, spark)
    assert found.to_json()["totals"]["late"] > 0
    assert re.fullmatch(r"2026-01-\d\d \d\d:\d\d:\d\d UTC", found.to_json()["watermark"])
    show(found)
    assert f"watermark {found.watermark}: what is earlier is late" in capsys.readouterr().out


def test_status_of_a_table_that_no_run_has_made_says_what_to_type(
    site: Site, spark: SparkSession
) -> None:
    with pytest.raises(TableMissing, match="oncelake run"):
        _status(site, spark)


def test_check_live_asks_kafka_and_the_catalog(
    site: Site, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(site.spec), "--live"]) == os.EX_OK
    said = capsys.readouterr().out
    assert "3 partitions" in said
    assert f"table {site.table} will be created" in said


def test_check_live_says_what_a_transform_gives_and_what_it_lacks(
    site: Site, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    site.use_catalog(spark)
    plain = site.spec.read_text()
    site.spec.write_text(f"{plain}transform: SELECT id, kafka FROM rows\n")
    assert main(["check", str(site.spec), "--live"]) == os.EX_OK
    assert "it gives the columns id\n" in capsys.readouterr().out
    keyed = "mode: upsert\nkey: title\ntransform: SELECT id, kafka FROM rows\n"
    site.spec.write_text(plain + keyed)
    assert main(["check", str(site.spec), "--live"]) == SpecError.exit_code
    assert "key: title is no column of the rows: id" in capsys.readouterr().out
