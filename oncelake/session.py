"""A SparkSession from a spec: jars, catalog and tuning, or the session a cluster already has."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlparse

from pyspark.sql import SparkSession

from oncelake import launch
from oncelake.errors import CatalogUnreachable
from oncelake.local import classes, jars, java
from oncelake.spec import CatalogSpec, PipelineSpec, read_spec
from oncelake.spec.secrets import scrub

TUNING = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.adaptive.coalescePartitions.enabled": "true",
    "spark.sql.streaming.minBatchesToRetain": "10",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # What the UI would show of past batches is kept in the driver's memory even without a UI.
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.ui.retainedExecutions": "20",
}
EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
LOCAL_MASTER, LOCAL_DRIVER_MEMORY = "local[*]", "2g"
SENT, CLASS_PATH = "spark.jars", "spark.driver.extraClassPath"
# Fetched records and Parquet pages are large objects, on which G1, Java's default, spent a fifth
# of the processor's time; this collector a twentieth.
LOCAL_COLLECTOR = "-XX:+UseParallelGC"
LOG_SETTINGS = Path(__file__).with_name("log4j2.properties").absolute()
# A corrupt record can claim a string of 2 GiB: refused as undecodable, it costs no memory. Avro's
# fast reader keeps a schema for every task there ever was.
LONGEST_AVRO_VALUE = 32 * 1024 * 1024
AVRO_OPTIONS = "-Dorg.apache.avro.fastread=false " + " ".join(
    f"-Dorg.apache.avro.limits.{what}.maxLength={LONGEST_AVRO_VALUE}"
    for what in ("string", "bytes", "collectionItems")
)


def spark(spec: str | os.PathLike[str]) -> SparkSession:
    """A session with the jars and the catalog that a spec names, for work of one's own."""
    return open_session(read_spec(Path(spec), os.environ).spec)


def open_session(spec: PipelineSpec) -> SparkSession:
    """The session the pipeline runs in. Under spark-submit the master and jars are given."""
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    settings = {
        **TUNING,
        **_catalog_settings(spec.table.catalog, spec.catalog),
        **({} if submitted else _launch_settings(spec)),
        **spec.spark.settings,
        **({} if submitted else _jars(spec)),
        **_java_options(
            spec.spark.settings, classes.options() if not submitted and _is_local(spec) else ""
        ),
    }
    _make_embedded_folders(spec.catalog)
    # PySpark logs the stack, as JSON, of every error in SQL that we are about to tell in words.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    session = launch.session(f"oncelake {spec.name}", settings)
    session.sparkContext.setLogLevel(spec.log_level)
    return session


def check_catalog(spec: PipelineSpec) -> str:
    """Reach the catalog and say what it holds, or raise what to do."""
    session = open_session(spec)
    catalog, table = spec.table.catalog, spec.table.name
    try:
        there = "is there" if session.catalog.tableExists(table) else "will be created"
    except Exception as error:
        raise CatalogUnreachable(
            f"catalog {catalog} did not answer: {scrub(_cause(error))}. Check "
            "catalog.uri and catalog.properties"
        ) from error
    return f"catalog {catalog} answers; table {table} {there}"


def _cause(error: Exception) -> str:
    """Java's own words: those before them only name the call."""
    lines = str(error).splitlines()
    return next((line[2:] for line in lines if line.startswith(": ")), lines[0]).rstrip(".")


def _catalog_settings(name: str, catalog: CatalogSpec) -> dict[str, str]:
    prefix = f"spark.sql.catalog.{name}"
    # A cached table could hide another driver's commit.
    uncached = {f"{prefix}.cache-enabled": "false"}
    if catalog.type == "session":
        return uncached
    settings = {
        "spark.sql.extensions": EXTENSIONS,
        prefix: "org.apache.iceberg.spark.SparkCatalog",
        f"{prefix}.type": catalog.type,
        f"{prefix}.uri": catalog.uri,
        f"{prefix}.warehouse": catalog.warehouse,
        **uncached,
    }
    if catalog.type == "jdbc":
        settings[f"{prefix}.jdbc.schema-version"] = "V1"
    settings.update({f"{prefix}.{key}": value for key, value in catalog.properties.items()})
    return {key: value for key, value in settings.items() if value}


def _launch_settings(spec: PipelineSpec) -> dict[str, str]:
    """What spark-submit would have given."""
    os.environ.update(java.environment())
    if _is_local(spec):
        # Tasks in Python, as those that send to Kafka, find there what this one has installed.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return {
        "spark.master": spec.spark.master or LOCAL_MASTER,
        "spark.driver.memory": LOCAL_DRIVER_MEMORY,
    }


def _jars(spec: PipelineSpec) -> dict[str, str]:
    """Ours, and those of the spec."""
    given = spec.spark.settings
    if not _is_local(spec):
        ours = ",".join(str(path) for path in jars.spark_jars())
        return {SENT: ",".join(filter(None, (ours, given.get(SENT))))}
    # A single JVM needs no jars sent to it, and these are what its archive of classes is made of.
    path = (classes.class_path(), given.get(CLASS_PATH))
    return {CLASS_PATH: os.pathsep.join(filter(None, path))}


def _is_local(spec: PipelineSpec) -> bool:
    """In one JVM, that is: `local-cluster` has several."""
    master = spec.spark.settings.get("spark.master", spec.spark.master or LOCAL_MASTER)
    return master.partition("[")[0] == "local"


def submit_settings() -> dict[str, str]:
    """What must be there before Spark starts, for `spark-submit --properties-file`."""
    return {
        "spark.jars": ",".join(str(path) for path in jars.spark_jars()),
        "spark.sql.extensions": EXTENSIONS,
        **_java_options({}),
    }


def _java_options(given: Mapping[str, str], archive: str = "") -> dict[str, str]:
    """The spec's own JVM options come last, so that they may set other limits."""
    driver, executor = "spark.driver.extraJavaOptions", "spark.executor.extraJavaOptions"
    logging = f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}"
    # Java refuses two collectors: one that the spec names stands alone.
    named = re.search(r"-XX:\+Use\w+GC", given.get(driver, ""))
    collector = "" if named else LOCAL_COLLECTOR
    return {
        driver: f"{collector} {archive} {AVRO_OPTIONS} {logging} {given.get(driver, '')}".strip(),
        executor: f"{AVRO_OPTIONS} {given.get(executor, '')}".strip(),
    }


def _make_embedded_folders(catalog: CatalogSpec) -> None:
    """SQLite creates its file, not the folder around it."""
    if catalog.type != "jdbc":
        return
    if catalog.uri.startswith("jdbc:sqlite:"):
        database = Path(catalog.uri.removeprefix("jdbc:sqlite:").split("?")[0])
        database.parent.mkdir(parents=True, exist_ok=True)
    if urlparse(catalog.warehouse).scheme in {"", "file"} and catalog.warehouse:
        Path(urlparse(catalog.warehouse).path).mkdir(parents=True, exist_ok=True)
