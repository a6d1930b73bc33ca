"""A driver that was paused, and goes on when another has done its work: fenced, nothing doubled."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oncelake.errors import Fenced
from oncelake.local.kafka import LocalKafka
from tests.site import Site, wait_for


@pytest.mark.faults
@pytest.mark.parametrize("point", ["before:publish", "after:publish"])
def test_a_driver_that_was_paused_is_fenced_when_it_goes_on(
    point: str, kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    """Its files are staged, or its commit has landed and it does not know: with its JVM it stands
    still while a second one writes everything, and then goes on as if nothing had been."""
    site = Site.make(kafka, tmp_path)
    site.produce(3000)
    words = ("--halt", point, "--occurrence", "2")
    with site.run(*words, program=("tests.faults.driver",)) as zombie:
        wait_for(zombie, "halted")
        os.killpg(zombie.pid, signal.SIGSTOP)
        site.run_here(spark)
        site.produce(1000, seed=2)
        os.kill(zombie.pid, signal.SIGUSR1)
        os.killpg(zombie.pid, signal.SIGCONT)
        for _ in zombie.events():
            pass
        assert zombie.ended() == Fenced.exit_code
        assert "overtaken by generation 2" in (site.folder / "run.log").read_text()
    site.assert_nothing_twice("after the zombie's end")
    site.run_here(spark)
    site.assert_exactly_once(spark)
