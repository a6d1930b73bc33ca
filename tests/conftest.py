"""What the whole suite shares: one broker, one Spark session, and no skipped test under CI."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oncelake.local import classes, java
from oncelake.local.kafka import LocalKafka
from oncelake.session import AVRO_OPTIONS


@pytest.fixture(scope="session", autouse=True)
def _scratch(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every Spark of the suite, this process's and others', keeps its temporary files in there:
    one that is killed does not remove them."""
    os.environ["SPARK_SUBMIT_OPTS"] = java.scratch_option(tmp_path_factory.mktemp("java"))


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalKafka]:
    """One real broker for the session; a test makes topics of its own names on it."""
    with LocalKafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the catalog `demo`: its database `catalog.db`, and all its tables."""
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="session")
def spark(warehouse: Path) -> Iterator[SparkSession]:
    os.environ["JAVA_HOME"] = java.environment()["JAVA_HOME"]
    os.environ["PYSPARK_PYTHON"] = sys.executable
    catalog = "spark.sql.catalog.demo"
    settings = {
        "spark.driver.extraClassPath": classes.class_path(),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "jdbc",
        f"{catalog}.uri": f"jdbc:sqlite:{warehouse}/catalog.db",
        f"{catalog}.warehouse": str(warehouse),
        f"{catalog}.jdbc.schema-version": "V1",
        f"{catalog}.cache-enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        # It lives for minutes, in which Java's second compiler pays for itself (a third of the time
        # of a batch), as it does not in the short lives of the runs that are killed.
        "spark.driver.extraJavaOptions": f"-XX:+UseParallelGC {classes.options()} {AVRO_OPTIONS}",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("oncelake tests")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes minutes begins first, so that nobody waits for it alone at the end."""
    items.sort(key=lambda item: item.get_closest_marker("minutes") is None)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Under CI a test that could not run is a failure, with the reason it gave."""
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI does not allow: {report.longrepr}"
