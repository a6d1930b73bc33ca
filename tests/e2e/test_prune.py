"""What is left around a checkpoint is removed once it is old, and what Spark needs is not."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oncelake.local.kafka import LocalKafka
from oncelake.ops.prune import prune
from oncelake.spec import MaintenanceSpec, read_spec
from tests.site import Site

DAY = 24 * 3600
OLD = ".aside-20200101T000000000000Z"


def _made(path: Path, age_seconds: float = 0.0) -> Path:
    path.write_text("half")
    then = time.time() - age_seconds
    os.utime(path, (then, then))
    return path


@pytest.mark.faults
def test_old_leftovers_of_a_checkpoint_are_removed_and_nothing_else(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    site = Site.make(kafka, tmp_path, max_offsets=30)
    site.produce(510)
    site.run_to_the_end()
    entries = {path.name for path in (site.checkpoint / "offsets").iterdir()}
    batches = {int(name) for name in entries if name.isdigit()}
    assert max(batches) > 15
    assert len(batches) <= 12, "Spark prunes its own logs, as our sessions are set up"
    aside = tmp_path / f"checkpoint{OLD}"
    (aside / "offsets").mkdir(parents=True)
    young = tmp_path / "checkpoint.aside-29990101T000000000000Z"
    other = tmp_path / f"checkpoint2{OLD}"
    mine = tmp_path / "checkpoint.aside-mine"
    for folder in (young, other, mine):
        folder.mkdir()
    half = _made(site.checkpoint / "offsets" / ".7.1f.tmp", 4 * DAY)
    crc = _made(site.checkpoint / "offsets" / "..7.1f.tmp.crc", 4 * DAY)
    fresh = _made(site.checkpoint / "commits" / ".8.2f.tmp")
    spec = replace(read_spec(site.spec, {}).spec, maintenance=MaintenanceSpec())
    seen = prune(spark, spec, dry_run=True)
    assert {Path(path) for path in seen.removed} == {aside, half, crc}
    assert all(path.exists() for path in (aside, half, crc))
    assert prune(spark, spec, dry_run=False) == seen
    assert not any(path.exists() for path in (aside, half, crc))
    assert all(path.exists() for path in (young, other, mine, fresh))
    assert entries <= {path.name for path in (site.checkpoint / "offsets").iterdir()}
    site.produce(30, seed=2)
    site.run_here(spark)
    site.assert_exactly_once(spark)
