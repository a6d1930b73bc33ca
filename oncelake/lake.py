"""The one door to Iceberg's Java API: load, stage, publish, look back.

Only this module touches py4j. Two of the classes it uses (SparkTableCache and
FileRewriteCoordinator) are internal to Iceberg: `require_iceberg` says at start, in words, when
the version at hand lacks what is needed.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.types import StructType

from oncelake.errors import CatalogUnreachable, OncelakeError, TableMissing, TableUnfit
from oncelake.model import STAMP_KEY

JavaObject: TypeAlias = Any
# PySpark gives some of Java's exceptions classes of its own; the others come as py4j's.
JAVA_ERRORS = (Py4JError, PySparkException)

ICEBERG = "org.apache.iceberg."
NEEDED_CLASSES = (
    "spark.Spark3Util",
    "spark.SparkTableCache",
    "spark.FileRewriteCoordinator",
    "ContentFileParser",
    "SnapshotAncestryValidator",
)
# Without retries Iceberg deletes the manifest list of a commit that landed but was reported lost.
FEWEST_COMMIT_RETRIES = 4
STAGING_OPTIONS = {"fanout-enabled": "true", "distribution-mode": "none"}


class Unanswered(Exception):
    """A commit that was not confirmed: it may have landed all the same. Only the table knows."""


class Ancestor(NamedTuple):
    """A snapshot on main, newest first, with our stamp's text where it has one."""

    snapshot_id: int
    stamp: str | None


Guard: TypeAlias = Callable[[Mapping[str, str], Iterator[Ancestor]], bool]


@dataclass(frozen=True, slots=True)
class Staged:
    """Data files that are written and belong to no snapshot yet."""

    files: tuple[JavaObject, ...] = ()

    @property
    def rows(self) -> int:
        return sum(int(file.recordCount()) for file in self.files)


@dataclass(frozen=True, slots=True)
class Publication:
    """One conditional commit: files, stamp and properties, or none of them."""

    stamp: str
    properties: Mapping[str, str]
    guard: Guard
    files: Sequence[JavaObject] = field(default=())


def require_iceberg(spark: SparkSession) -> str:
    """The Iceberg version, or an error that says which class it lacks."""
    if not hasattr(spark, "_jsparkSession"):
        raise TableUnfit(
            "this is a Spark Connect session, which gives no access to Iceberg's Java API; "
            "use a classic SparkSession (local, spark-submit or a cluster master)"
        )
    for name in NEEDED_CLASSES:
        try:
            _java_class(spark, ICEBERG + name)
        except JAVA_ERRORS as error:
            raise TableUnfit(
                f"the Iceberg on Spark's class path lacks {ICEBERG}{name}; "
                "use iceberg-spark-runtime 1.12.0 for Spark 4.1 (see oncelake/versions.toml)"
            ) from error
    version = spark._jvm.org.apache.iceberg.IcebergBuild.version()  # type: ignore[union-attr]
    return str(version)


class LakeTable:
    """One Iceberg table, always read afresh: a cached view could hide another driver."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.name = name
        self._spark = spark
        self._jvm: JavaObject = spark._jvm
        self._table = self._load()
        self._require_fit()

    def refresh(self) -> None:
        try:
            self._table.refresh()
        except JAVA_ERRORS as error:
            raise _translated(error, self.name) from error

    def properties(self) -> dict[str, str]:
        return dict(self._table.properties())

    def head(self) -> int | None:
        snapshot = self._table.currentSnapshot()
        return None if snapshot is None else int(snapshot.snapshotId())

    def ancestors(self) -> Iterator[Ancestor]:
        """Main's snapshots from the newest back to the oldest that is not expired."""
        snapshot = self._table.currentSnapshot()
        while snapshot is not None:
            yield _ancestor(snapshot)
            parent = snapshot.parentId()
            snapshot = None if parent is None else self._table.snapshot(parent)

    def stamps(self) -> Iterator[Ancestor]:
        """Every stamped snapshot in the metadata, on main or not."""
        for snapshot in self._table.snapshots():
            found = _ancestor(snapshot)
            if found.stamp is not None:
                yield found

    def stage(self, rows: DataFrame) -> Staged:
        """Write data files that no snapshot refers to: invisible until published."""
        key = str(uuid.uuid4())
        cache = self._table_cache()
        coordinator = self._jvm.org.apache.iceberg.spark.FileRewriteCoordinator.get()
        cache.add(key, self._table)
        try:
            rows.write.format("iceberg").mode("append").options(**STAGING_OPTIONS).save(key)
            return Staged(tuple(coordinator.fetchNewFiles(self._table, key)))
        finally:
            coordinator.clearRewrite(self._table, key)
            cache.remove(key)

    def publish(self, publication: Publication) -> None:
        """Commit once, guarded at every retry; Unanswered unless it is confirmed."""
        try:
            self._commit(publication)
        except JAVA_ERRORS as error:
            raise Unanswered(_in_short(error)) from error

    def _commit(self, publication: Publication) -> None:
        ensure_callback_server_started(self._spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
        transaction = self._table.newTransaction()
        append = transaction.newAppend()
        for file in publication.files:
            append.appendFile(file)
        append.set(STAMP_KEY, publication.stamp)
        validator = _Validator(transaction, publication.guard)
        append.validateWith(validator)
        try:
            self._commit_with_properties(transaction, append, publication.properties)
        finally:
            validator.let_go()

    def _commit_with_properties(self, transaction: JavaObject, append: JavaObject,
                                properties: Mapping[str, str]) -> None:  # fmt: skip
        append.commit()
        # After the append, so that the guard sees the properties of the refreshed base.
        update = transaction.updateProperties()
        for key, value in properties.items():
            update.set(key, value)
        update.commit()
        transaction.commitTransaction()

    def files_to_text(self, files: Sequence[JavaObject]) -> tuple[str, ...]:
        parser = self._jvm.org.apache.iceberg.ContentFileParser
        specs = self._table.specs()
        return tuple(str(parser.toJson(file, specs.get(file.specId()))) for file in files)

    def files_from_text(self, texts: Sequence[str]) -> tuple[JavaObject, ...]:
        parser = self._jvm.org.apache.iceberg.ContentFileParser
        mapper = self._jvm.org.apache.iceberg.util.JsonUtil.mapper()
        return tuple(parser.fromJson(mapper.readTree(text), self._table.specs()) for text in texts)

    def _load(self) -> JavaObject:
        loader = self._jvm.org.apache.iceberg.spark.Spark3Util
        try:
            table = loader.loadIcebergTable(self._spark._jsparkSession, self.name)
            table.refresh()
        except JAVA_ERRORS as error:
            raise _translated(error, self.name) from error
        return table

    def _require_fit(self) -> None:
        operations = str(self._table.operations().getClass().getSimpleName())
        if operations == "HadoopTableOperations":
            raise TableUnfit(
                f"{self.name} is in a Hadoop catalog, where two writers can lose a commit; "
                "use a JDBC or REST catalog (catalog.type in the spec)"
            )
        retries = int(self.properties().get("commit.retry.num-retries", "4"))
        if retries < FEWEST_COMMIT_RETRIES:
            raise TableUnfit(
                f"{self.name} has commit.retry.num-retries={retries}: fewer than "
                f"{FEWEST_COMMIT_RETRIES} can destroy the table when a commit's answer is lost; "
                f"type: ALTER TABLE {self.name} SET TBLPROPERTIES "
                f"('commit.retry.num-retries'='{FEWEST_COMMIT_RETRIES}')"
            )

    def _table_cache(self) -> JavaObject:
        """SparkTableCache.get(), by reflection: an instance get(String) hides it from py4j."""
        gateway = self._spark.sparkContext._gateway
        assert gateway is not None
        cache_class = _java_class(self._spark, ICEBERG + "spark.SparkTableCache")
        none = gateway.new_array(self._jvm.java.lang.Class, 0)
        return cache_class.getMethod("get", none).invoke(
            None, gateway.new_array(self._jvm.java.lang.Object, 0)
        )


class _Validator:
    """Runs a guard inside Iceberg's commit, on the refreshed base, at every retry."""

    def __init__(self, transaction: JavaObject, guard: Guard) -> None:
        self._transaction = transaction
        self._guard = guard

    def validate(self, ancestors: JavaObject) -> bool:
        base = dict(self._transaction.table().properties())
        return self._guard(base, _each_ancestor(ancestors.iterator()))

    def let_go(self) -> None:
        """Break the cycle through py4j, which would keep a table's metadata for each commit."""
        self._transaction = None

    def errorMessage(self) -> str:
        return "oncelake: progress is not what this commit was placed on"

    class Java:
        implements = [ICEBERG + "SnapshotAncestryValidator"]  # noqa: RUF012 (py4j's form)


def columns_of(schema: StructType) -> str:
    """A schema as the column list of a CREATE TABLE."""
    return ", ".join(f"`{f.name}` {f.dataType.simpleString()}" for f in schema.fields)


def create_table(spark: SparkSession, name: str, columns: str, partition_by: Sequence[str] = (),
                 properties: Mapping[str, str] | None = None) -> None:  # fmt: skip
    """Create a table, and its namespace, where they are missing."""
    catalog, *namespace, _ = name.split(".")
    partitioned = f" PARTITIONED BY ({', '.join(partition_by)})" if partition_by else ""
    listed = ", ".join(f"{_quoted(k)}={_quoted(v)}" for k, v in sorted((properties or {}).items()))
    with_properties = f" TBLPROPERTIES ({listed})" if listed else ""
    try:
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {'.'.join([catalog, *namespace])}")
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {name} ({columns}) USING iceberg"
            f"{partitioned}{with_properties}"
        )
    except JAVA_ERRORS as error:
        raise _translated(error, name) from error


def observed(observation: Observation) -> Mapping[str, int] | None:
    """What was counted on the way; None where the plan was pruned and nothing was."""
    try:
        return {name: int(count) for name, count in observation.get.items()}
    except JAVA_ERRORS:
        return None


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _each_ancestor(iterator: JavaObject) -> Iterator[Ancestor]:
    while iterator.hasNext():
        yield _ancestor(iterator.next())


def _ancestor(snapshot: JavaObject) -> Ancestor:
    return Ancestor(int(snapshot.snapshotId()), snapshot.summary().get(STAMP_KEY))


def _java_class(spark: SparkSession, name: str) -> JavaObject:
    jvm: JavaObject = spark._jvm
    return jvm.org.apache.spark.util.Utils.classForName(name, True, False)


def _in_short(error: Exception) -> str:
    """The Java exception's own words, without its stack."""
    java = getattr(error, "java_exception", None)
    return str(error if java is None else java.toString()).splitlines()[0]


def _translated(error: Exception, table: str) -> OncelakeError:
    short = _in_short(error)
    if "NoSuchTable" in short or "NoSuchNamespace" in short or "_NOT_FOUND" in short:
        return TableMissing(f"table {table} does not exist; oncelake run PIPELINE.yaml makes it")
    return CatalogUnreachable(f"the catalog did not answer for {table}: {short}")
