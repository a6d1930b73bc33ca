"""Two drivers on one pipeline at once: the older is fenced with a clear error, nothing doubles."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oncelake.errors import Fenced
from oncelake.local.kafka import LocalKafka
from tests.site import Site, wait_for


def test_the_older_of_two_drivers_is_fenced(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    site = Site.make(kafka, tmp_path)
    site.produce(3000)
    with site.run() as older:
        wait_for(older, "batch")
        site.run_here(spark)
        # New rows wake the older; it may not write them any more.
        site.produce(3000, seed=2)
        error = wait_for(older, "error")
        assert error["kind"] == "Fenced"
        assert "generation 1 of this run was overtaken by generation 2" in error["message"]
        assert older.ended() == Fenced.exit_code
        assert "Traceback" not in (site.folder / "run.log").read_text(), "told in words alone"
    site.run_here(spark)
    site.assert_exactly_once(spark)


@pytest.mark.faults
def test_of_two_drivers_started_at_once_one_writes_all_and_nothing_doubles(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """Whichever claims last goes on; the other is fenced, unless it was done before that."""
    site = Site.make(kafka, tmp_path)
    site.produce(6000)
    with site.run("--once") as one, site.run("--once") as other:
        told = [list(run.events()) for run in (one, other)]
        codes = [run.ended() for run in (one, other)]
    assert sorted(codes) in ([0, Fenced.exit_code], [0, 0])
    generations = {e["generation"] for events in told for e in events if e["event"] == "claimed"}
    assert generations == {1, 2}
    site.assert_exactly_once(spark)
