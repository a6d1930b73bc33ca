"""What Iceberg offers to keep a table small and quick, and the files that nobody refers to."""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, datetime

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import Row, SparkSession

from oncelake.lake.java import JAVA_ERRORS, JavaObject, translated
from oncelake.lake.table import LakeTable

TRIES = 3
OVERTAKEN = ("exceptions.ValidationException", "exceptions.CommitFailedException")
"""What Iceberg says where a table is no longer as it was when the work on it began."""


def compact(spark: SparkSession, table: str) -> int:
    """Join small files into large ones; how many went."""
    return int(_call(spark, table, "rewrite_data_files")["rewritten_data_files_count"])


def rewrite_manifests(spark: SparkSession, table: str) -> int:
    """Order the lists of files by partition; how many went."""
    return int(_call(spark, table, "rewrite_manifests")["rewritten_manifests_count"])


def expire(spark: SparkSession, table: str, before: datetime, keep: int) -> int:
    """Forget old snapshots, and remove the files that only they had; how many files went."""
    at = f"TIMESTAMP '{before.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}Z'"
    gone = _call(spark, table, "expire_snapshots", f"older_than => {at}", f"retain_last => {keep}")
    return sum(int(count or 0) for count in gone.asDict().values())


def orphans(spark: SparkSession, table: LakeTable, before_ms: int) -> list[str]:
    """Files in the table's folder, last changed before then, that no metadata refers to.

    As it is now: what others have written since it was last read would seem to be nobody's.
    """
    table.refresh()
    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
    actions = spark._jvm.org.apache.iceberg.spark.actions.SparkActions  # type: ignore[union-attr]
    action = actions.get(spark._jsparkSession).deleteOrphanFiles(table.java)
    try:
        found = action.olderThan(before_ms).deleteWith(_Leave()).execute()
    except JAVA_ERRORS as error:
        raise translated(error, table.name) from error
    return sorted(str(path) for path in found.orphanFileLocations())


def remove(table: LakeTable, paths: Collection[str]) -> None:
    for path in paths:
        try:
            table.java.io().deleteFile(path)
        except JAVA_ERRORS as error:
            raise translated(error, table.name) from error


def changed_ms(spark: SparkSession, path: str) -> int:
    """When a file was last changed, by the clock of its storage."""
    return int(_system(spark, path).getFileStatus(_path(spark, path)).getModificationTime())


def storage_ms(spark: SparkSession, table: LakeTable) -> int:
    """What time it is, by the clock of the table's storage: a driver's may be wrong."""
    probe = f"{table.java.location()}/metadata/.clock"
    _system(spark, probe).create(_path(spark, probe), True).close()
    try:
        return changed_ms(spark, probe)
    finally:
        _system(spark, probe).delete(_path(spark, probe), False)


class _Leave:
    """Removes nothing: what is found is looked at first."""

    def accept(self, path: str) -> None:
        pass

    class Java:
        implements = ["java.util.function.Consumer"]  # noqa: RUF012 (py4j's form)


def _path(spark: SparkSession, path: str) -> JavaObject:
    return spark._jvm.org.apache.hadoop.fs.Path(path)  # type: ignore[union-attr]


def _system(spark: SparkSession, path: str) -> JavaObject:
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    return _path(spark, path).getFileSystem(configuration)


def _call(spark: SparkSession, table: str, procedure: str, *arguments: str) -> Row:
    """Once more where somebody has committed meanwhile, as a run does: it begins with what is there
    now, and nothing was done."""
    catalog = table.partition(".")[0]
    listed = ", ".join((f"table => '{table}'", *arguments))
    for left in reversed(range(TRIES)):
        try:
            return spark.sql(f"CALL {catalog}.system.{procedure}({listed})").collect()[0]
        except JAVA_ERRORS as error:
            if not left or not any(each in str(error) for each in OVERTAKEN):
                raise translated(error, table) from error
    raise AssertionError("unreachable: the last try returns or raises")
