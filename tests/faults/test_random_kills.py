"""Twenty kills at random moments of one pipeline's life, its checkpoint deleted in between."""

from __future__ import annotations

import random
import shutil
import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oncelake.local.kafka import LocalKafka
from tests.site import Site, kill

KILLS = 20
ROWS_A_ROUND = 2000
SEED = 20261115


@pytest.mark.minutes
@pytest.mark.faults
def test_twenty_kills_at_random_moments_leave_each_row_exactly_once(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    site = Site.make(kafka, tmp_path, max_offsets=500)
    moments = random.Random(SEED)
    for number in range(KILLS):
        site.produce(ROWS_A_ROUND, seed=number)
        _run_and_kill(site, moments)
        if moments.random() < 0.2:
            shutil.rmtree(site.folder / "checkpoint")
    site.run_here(spark)
    site.assert_exactly_once(spark)


def _run_and_kill(site: Site, moments: random.Random) -> None:
    """Kill a random while after a random event: anywhere between two of our lines."""
    events_to_see, delay = moments.randint(1, 6), moments.uniform(0.0, 0.6)
    with site.run() as run:
        for _ in zip(range(events_to_see), run.events(), strict=False):
            pass
        # The moment is meant to be arbitrary: nothing is waited for.
        threading.Event().wait(delay)
        kill(run)
