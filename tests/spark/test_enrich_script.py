"""`python jobs/spark/upsert_enriched.py` as a person runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oncelake.demo.run import child_environment
from tests.site import JDBC, SPEC, Site
from tests.spark.enriching import Newsdesk, Sent

ROOT = Path(__file__).parents[2]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """A spec and its catalog. The job needs no Kafka: the address is never asked."""
    site = Site(tmp_path, "127.0.0.1:1", "t", "scripted")
    schema = resources.files("oncelake.samples").joinpath("article.avsc").read_text()
    (tmp_path / "article.avsc").write_text(schema)
    words = {"bootstrap": site.bootstrap, "topic": site.topic, "catalog": site.catalog}
    site.spec.write_text(SPEC.format(**words, max_offsets=1, catalog_settings=JDBC))
    return site


def _run(site: Site, desk: Newsdesk, *words: str) -> subprocess.CompletedProcess[str]:
    environ = {
        **child_environment(site.folder / "tmp"),
        "PIPELINE_SPEC": str(site.spec),
        "RAW_TABLE": desk.raw,
        "ENRICHED_TABLE": desk.enriched,
    }
    script = [sys.executable, "jobs/spark/upsert_enriched.py", *words]
    return subprocess.run(
        script, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=300
    )


@pytest.mark.faults
def test_the_script_merges_once_and_says_so(site: Site, spark: SparkSession) -> None:
    (site.folder / "warehouse").mkdir()
    site.use_catalog(spark)
    desk = Newsdesk(spark, "upsert", site.catalog)
    desk.send(Sent(0, "a", 1, "Growth in New York"), Sent(1, "b", 1), Sent(1, "b", 2))
    first = _run(site, desk, "--json")
    assert first.returncode == 0, first.stderr
    told = json.loads(first.stdout)
    assert (told["table"], told["counts"]["inserted"]) == (desk.enriched, 2)
    before = desk.contents(site.folder)
    assert [(r["id"], r["entities"], r["version"]) for r in before] == [
        ("a", ["New York"], 1), ("b", [], 1),
    ]  # fmt: skip
    again = _run(site, desk)
    assert again.returncode == 0, again.stderr
    assert again.stdout.strip() == (
        f"{desk.enriched}: nothing new in {desk.raw} at snapshot {told['snapshot']}"
    )
    assert desk.contents(site.folder) == before
