"""The article jobs by their names: started as people start them, with the variables they set."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from oncelake.local import classes, java
from oncelake.local.kafka import LocalKafka, create_topic
from oncelake.samples import articles
from oncelake.samples.producer import Target, produce

JOBS = Path(__file__).parents[2] / "jobs" / "spark"
RAW, SPEC = JOBS / "stream_write_raw.py", JOBS / "articles_raw.yaml"
TABLE = "demo.news.articles_raw"
SECONDS = 180
_numbers = itertools.count(1)


class Desk:
    """A topic, and the environment that points the job at it."""

    def __init__(self, kafka: LocalKafka, folder: Path, topic: str) -> None:
        self.folder, self.topic, self.bootstrap = folder, topic, kafka.bootstrap
        create_topic(kafka.bootstrap, topic, partitions=3)
        self.variables = {
            "KAFKA_BOOTSTRAP_SERVERS": kafka.bootstrap,
            "KAFKA_TOPIC": topic,
            "ICEBERG_TABLE": TABLE,
            "CHECKPOINT_LOCATION": str(folder / "chk"),
            "ONCELAKE_CATALOG_URI": f"jdbc:sqlite:{folder}/catalog.db",
            "ONCELAKE_CATALOG_WAREHOUSE": str(folder / "warehouse"),
        }

    def send(self, count: int, seed: int) -> None:
        load = articles.Load(count, duplicates=0.05, corrupt=0.01, late=0.02, seed=seed)
        produce(articles.events(load), Target(self.bootstrap, self.topic))

    def environ(self, more: Mapping[str, str]) -> dict[str, str]:
        # A JVM that lives for seconds gets nothing back for the second compiler's work.
        options = f"{os.environ['SPARK_SUBMIT_OPTS']} -XX:TieredStopAtLevel=1"
        return {**os.environ, **self.variables, "SPARK_SUBMIT_OPTS": options, **more}

    def run(self, *command: str, more: Mapping[str, str] | None = None) -> str:
        done = subprocess.run(
            command, env=self.environ(more or {}), capture_output=True, text=True, timeout=SECONDS
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def desk(kafka: LocalKafka, tmp_path: Path) -> Desk:
    return Desk(kafka, tmp_path, f"jobs.{next(_numbers)}")


def _asked(desk: Desk, query: str) -> str:
    return desk.run(sys.executable, "-m", "oncelake", "sql", str(SPEC), query, "--json").strip()


@pytest.mark.faults
def test_start_send_stop_and_restart(desk: Desk) -> None:
    """No duplicates, nothing lost, by plain SQL and by the audit."""
    desk.send(1500, seed=1)
    job = subprocess.Popen(
        [sys.executable, str(RAW), "--json"], env=desk.environ({}), text=True,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert job.stdout is not None
    for line in job.stdout:
        if '"event": "batch"' in line:
            job.send_signal(signal.SIGINT)
            break
    assert job.wait(SECONDS) == 0
    job.stdout.close()
    desk.send(500, seed=2)
    desk.run(sys.executable, str(RAW), "--once")
    twice = f"SELECT id, count(*) FROM {TABLE} GROUP BY id HAVING count(*) > 1"
    assert _asked(desk, twice) == ""
    audit = desk.run(sys.executable, "-m", "oncelake", "audit", str(SPEC))
    assert "audit: clean — 2000 read" in audit
    assert " late" in audit


@pytest.mark.faults
def test_under_spark_submit_with_a_catalog_of_the_cluster(desk: Desk) -> None:
    desk.send(400, seed=1)
    settings = desk.run(sys.executable, "-m", "oncelake", "conf")
    catalog = "spark.sql.catalog.demo"
    settings += f"""\
{catalog} org.apache.iceberg.spark.SparkCatalog
{catalog}.type jdbc
{catalog}.uri {desk.variables["ONCELAKE_CATALOG_URI"]}
{catalog}.warehouse {desk.variables["ONCELAKE_CATALOG_WAREHOUSE"]}
{catalog}.jdbc.schema-version V1
"""
    (desk.folder / "oncelake.conf").write_text(settings)
    desk.run(
        str(Path(sys.executable).with_name("spark-submit")), "--master", "local[2]",
        "--properties-file", str(desk.folder / "oncelake.conf"), str(RAW), "--once",
        more={"ONCELAKE_CATALOG_TYPE": "session", **java.environment(),
              "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable},
    )  # fmt: skip
    audit = desk.run(sys.executable, "-m", "oncelake", "audit", str(SPEC))
    assert "audit: clean — 400 read" in audit


def test_a_wrong_query_is_told_in_a_line(desk: Desk) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "oncelake", "sql", str(SPEC), "SELECT nope FROM nowhere"],
        env=desk.environ({}), capture_output=True, text=True, timeout=SECONDS,
    )  # fmt: skip
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if not line.startswith("WARNING")]
    assert len(said) == 1
    assert "error: the query failed: [TABLE_OR_VIEW_NOT_FOUND]" in said[0]


def test_of_several_queries_one_that_failed_is_seen_at_the_end(desk: Desk) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "oncelake", "sql", str(SPEC), "--json"], env=desk.environ({}),
        input="SELECT nope FROM nowhere;\nSELECT 1 AS one;\n", capture_output=True, text=True,
        timeout=SECONDS,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, '{"one":1}\n')
    assert '{"error": "[TABLE_OR_VIEW_NOT_FOUND]' in done.stderr


def test_a_session_takes_its_classes_from_the_archive(desk: Desk) -> None:
    """Those of our jars too, if this Java can; it says nothing of it among what a query gives."""
    can = java.java_version() == classes.FITTING_JAVA
    assert bool(classes.options()) == can, f"see {sys.prefix}/oncelake"
    log = desk.folder / "classes.log"
    words = [sys.executable, "-m", "oncelake", "sql", str(SPEC), "SELECT 1 AS one", "--json"]
    given = desk.run(*words, more={"_JAVA_OPTIONS": f"-Xlog:class+load:file={log}"})
    assert given == '{"one":1}\n'
    taken = [line for line in log.read_text().splitlines() if "shared objects file (top)" in line]
    for package in ("org.apache.spark.sql.", "org.apache.iceberg."):
        assert any(package in line for line in taken) == can, package
