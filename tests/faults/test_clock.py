"""A wrong clock changes nothing: lateness is judged by the events' own times alone."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oncelake.errors import TableUnfit
from oncelake.local import java
from oncelake.local.kafka import LocalKafka
from tests.site import Site

WATERMARK = "watermark: {column: published_at, delay: 2 hours}\n"
SECONDS = 240
COLUMNS = "id, title, published_at, kafka_partition, kafka_offset"


def _contents(site: Site, spark: SparkSession, side: str) -> list[tuple[object, ...]]:
    rows = spark.sql(f"SELECT {COLUMNS} FROM {site.table}{side}").collect()
    return sorted((tuple(row) for row in rows), key=lambda row: row[-2:])


pytestmark = [
    pytest.mark.faults,
    pytest.mark.skipif(shutil.which("faketime") is None, reason="needs Debian's faketime"),
]


def test_a_clock_that_was_put_back_is_told(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """Iceberg keeps a table's commits in the order of their times, but for a minute."""
    site = Site.make(kafka, tmp_path)
    site.produce(300)
    _run_ahead(site, tmp_path)
    with pytest.raises(TableUnfit, match="by the clock of this machine it is more than a minute"):
        site.run_here(spark)


def test_a_skewed_clock_and_another_zone_write_the_same(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """The same topic by a right clock, and by one three hours ahead in a zone with summer time.

    It is Spark's clock: the one that times a batch, and by which its own watermark would be told.
    """
    for name in ("right", "wrong"):
        (tmp_path / name).mkdir()
    right = Site.make(kafka, tmp_path / "right", max_offsets=700, upsert=True, more=WATERMARK)
    wrong = Site.make(kafka, tmp_path / "wrong", max_offsets=700, upsert=True, more=WATERMARK)
    right.produce(1400)
    right.run_here(spark)
    _run_ahead(wrong, tmp_path, TZ="America/New_York", KAFKA_TOPIC=right.topic)
    wrong.use_catalog(spark)
    for side in ("", "_late"):
        there = _contents(right, spark, side)
        assert there
        assert _contents(wrong, spark, side) == there
    assert _hours_ahead(wrong, right, spark) > 2.5, "its clock was wrong indeed"


def _run_ahead(site: Site, folder: Path, **environ: str) -> None:
    ahead = str(_three_hours_ahead(folder / "java"))
    command = [sys.executable, "-m", "oncelake", "run", str(site.spec), "--once"]
    environ = {**os.environ, "JAVA_HOME": ahead, **environ}
    done = subprocess.run(command, env=environ, timeout=SECONDS, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def _three_hours_ahead(home: Path) -> Path:
    """A JAVA_HOME whose Java has that clock. Python keeps its own: librdkafka hung with one."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    command.write_text(
        f'#!/bin/sh\nexec faketime -f +3h {shlex.quote(str(java.java_command()))} "$@"\n'
    )
    command.chmod(0o755)
    return home


def _hours_ahead(one: Site, other: Site, spark: SparkSession) -> float:
    newest = "SELECT unix_seconds(max(processed_at)) AS at FROM "
    ahead, here = (spark.sql(newest + site.table).collect()[0]["at"] for site in (one, other))
    return float(ahead - here) / 3600
