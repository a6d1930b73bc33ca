"""What every use of Java needs: its classes, its exceptions, and ours for them.

Two of the classes (SparkTableCache and FileRewriteCoordinator) are internal to Iceberg:
`require_iceberg` says at start, in words, when the version at hand lacks what is needed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession

from oncelake.errors import CatalogUnreachable, OncelakeError, TableMissing, TableUnfit
from oncelake.spec import scrub

JavaObject: TypeAlias = Any
# PySpark gives some of Java's exceptions classes of its own; the others come as py4j's.
JAVA_ERRORS = (Py4JError, PySparkException)

_STACK = re.compile(r"\s+(at [\w.$/]+\(|\.\.\. \d+ more)")
_PYTHON_WORKER = "An exception was thrown from the Python worker"
_FRAME = re.compile(r'File "(?:.*/)?([^"]+)", (line \d+), (in \S+)')
ICEBERG, SPARK_ERROR = "org.apache.iceberg.", "org.apache.spark.SparkException"
NEEDED_CLASSES = (
    "spark.Spark3Util",
    "spark.SparkTableCache",
    "spark.FileRewriteCoordinator",
    "ContentFileParser",
    "SnapshotAncestryValidator",
    "deletes.BaseDVFileWriter",
    "data.BaseDeleteLoader",
)


def require_iceberg(spark: SparkSession) -> str:
    """The Iceberg version, or an error that says which class it lacks."""
    if not hasattr(spark, "_jsparkSession"):
        raise TableUnfit(
            "this is a Spark Connect session, which gives no access to Iceberg's Java API; "
            "use a classic SparkSession (local, spark-submit or a cluster master)"
        )
    for name in NEEDED_CLASSES:
        try:
            java_class(spark, ICEBERG + name)
        except JAVA_ERRORS as error:
            raise TableUnfit(
                f"the Iceberg on Spark's class path lacks {ICEBERG}{name}; "
                "use iceberg-spark-runtime 1.12.0 for Spark 4.1 (see oncelake/versions.toml)"
            ) from error
    version = spark._jvm.org.apache.iceberg.IcebergBuild.version()  # type: ignore[union-attr]
    return str(version)


def java_class(spark: SparkSession, name: str) -> JavaObject:
    jvm: JavaObject = spark._jvm
    return jvm.org.apache.spark.util.Utils.classForName(name, True, False)


def in_short(error: BaseException) -> str:
    """The Java exception's own words, without its stack; of one in a user's Python function what
    was raised there, and where."""
    java = getattr(error, "java_exception", None)
    text = str(error if java is None else java.toString()).strip()
    return scrub(_raised_in_python(text) or (text.splitlines() or [type(error).__name__])[0])


def _causes(error: BaseException) -> Iterator[JavaObject]:
    """The Java exception and what it was caused by, down to the innermost."""
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while cause is not None:
        yield cause
        cause = cause.getCause()


def _root(error: BaseException) -> str:
    """The innermost cause in Java's words, which the outer ones may leave out; none: no words."""
    *_, inner = None, *_causes(error)
    return scrub(str(inner.getMessage() or "").strip().partition("\n")[0]) if inner else ""


def _of_a_job(error: BaseException) -> bool:
    """Whether a job of Spark's failed, and not the catalog."""
    return any(str(cause.getClass().getName()) == SPARK_ERROR for cause in _causes(error))


def without_stack(error: BaseException) -> str:
    """All that an error says, in Java's words and in Python's, but the lines of the stack."""
    if raised := _raised_in_python(str(error).strip()):
        return scrub(raised)
    lines = str(error).splitlines()
    return "\n".join(scrub(line) for line in lines if not _STACK.match(line)).strip()


def _raised_in_python(text: str) -> str | None:
    """`ValueError: bad id (cleaning.py, line 12, in strict)`, of an error in a Python worker."""
    if _PYTHON_WORKER not in text:
        return None
    raised = text.splitlines()[-1]
    frames = _FRAME.findall(text)
    return f"{raised} ({', '.join(frames[-1])})" if frames else raised


def missing(table: str) -> TableMissing:
    return TableMissing(
        f"table {table} does not exist. Where it was dropped or renamed, rename it back, or type: "
        "oncelake recover PIPELINE.yaml, and run again, which fills a new one. The first oncelake "
        "run PIPELINE.yaml makes it"
    )


def translated(error: Exception, table: str) -> OncelakeError:
    short = in_short(error)
    catalog = table.split(".")[0]
    # Without a catalog of that name Spark looks into its own, whose namespaces have one part.
    if "REQUIRES_SINGLE_PART_NAMESPACE" in short or "CATALOG_NOT_FOUND" in short:
        return TableUnfit(
            f"this Spark session has no catalog {catalog}, where {table} is to be. Set "
            f"spark.sql.catalog.{catalog} for it, or catalog in the spec"
        )
    if "ValidationException" in short:
        return TableUnfit(f"Iceberg refuses {table} as it is asked for: {short}")
    if "NoSuchTable" in short or "NoSuchNamespace" in short or "_NOT_FOUND" in short:
        return missing(table)
    if "No suitable driver" in str(error):
        return TableUnfit(
            f"Java has no driver for the address of catalog {catalog}, where {table} is to be: "
            f"{short}. Put its jar on spark.driver.extraClassPath, under spark.settings in the spec"
        )
    root = _root(error)
    why = f"{short} ({root})" if root not in short else short
    if isinstance(error, AnalysisException):
        return TableUnfit(f"Spark refuses {table} as it is asked for: {why}")
    if _of_a_job(error):
        return TableUnfit(
            f"{table} could not be read: {why}. Nothing was changed. Where a file is named, it is "
            "missing, or may not be read from here: restore it, or see who may"
        )
    if "NotAuthorized" in short or "Forbidden" in short:
        return CatalogUnreachable(
            f"the catalog refused {table}: {why}. Check who it is asked by: user, password or "
            "token in catalog.properties of the spec"
        )
    return CatalogUnreachable(
        f"the catalog did not answer for {table}: {why}. Nothing is lost. Check that it runs, and "
        "catalog.uri and catalog.properties in the spec"
    )


@contextmanager
def answering(table: str) -> Iterator[None]:
    """Of what goes wrong in Java a person is told in words."""
    try:
        yield
    except JAVA_ERRORS as error:
        raise translated(error, table) from error
