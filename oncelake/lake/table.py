"""One Iceberg table: load, stage, publish, look back."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession

from oncelake.errors import TableUnfit
from oncelake.lake.deletes import NO_DELETES, Deletes, Positions, write_vectors
from oncelake.lake.java import ICEBERG, JAVA_ERRORS, JavaObject, in_short, java_class, translated
from oncelake.model import STAMP_KEY

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
    """Data files that are written and belong to no snapshot yet.

    `base`: the snapshot that they were worked out against, where they fit no other.
    """

    files: tuple[JavaObject, ...] = ()
    deletes: Deletes = NO_DELETES
    base: int | None = None

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
    deletes: Deletes = NO_DELETES
    base: int | None = None


class LakeTable:
    """One Iceberg table, always read afresh: a cached view could hide another driver."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.name = name
        self._spark = spark
        self._jvm: JavaObject = spark._jvm
        self._table = self._load()
        self._cache = self._table_cache()
        self._require_fit()

    def refresh(self) -> None:
        try:
            self._table.refresh()
        except JAVA_ERRORS as error:
            raise translated(error, self.name) from error

    def properties(self) -> dict[str, str]:
        return _as_dict(self._jvm, self._table.properties())

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
        coordinator = self._jvm.org.apache.iceberg.spark.FileRewriteCoordinator.get()
        self._cache.add(key, self._table)
        try:
            rows.write.format("iceberg").mode("append").options(**STAGING_OPTIONS).save(key)
            # As an array: py4j ends a walk over a set by an exception, which takes 20 ms.
            return Staged(tuple(coordinator.fetchNewFiles(self._table, key).toArray()))
        finally:
            coordinator.clearRewrite(self._table, key)
            self._cache.remove(key)

    def stage_deletes(self, snapshot: int, gone: Positions) -> Deletes:
        """Write vectors for the positions that are gone from files of this snapshot."""
        return write_vectors(self._jvm, self._table, snapshot, gone)

    def publish(self, publication: Publication) -> None:
        """Commit once, guarded at every retry; Unanswered unless it is confirmed."""
        try:
            self._commit(publication)
        except JAVA_ERRORS as error:
            raise Unanswered(in_short(error)) from error

    def _commit(self, publication: Publication) -> None:
        ensure_callback_server_started(self._spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
        transaction = self._table.newTransaction()
        validator = _Validator(self._jvm, transaction, publication.guard)
        try:
            # A row delta checks for conflicts before it asks the guard, and would take a commit of
            # ours that had landed for one: an empty append goes first and asks.
            if publication.deletes.added:
                _guarded(transaction.newAppend(), validator).commit()
                _delta(transaction.newRowDelta(), publication).commit()
            else:
                _appended(_guarded(transaction.newAppend(), validator), publication).commit()
            # Last, so that the guard sees the properties of the refreshed base.
            _set(transaction.updateProperties(), publication.properties).commit()
            transaction.commitTransaction()
        finally:
            validator.let_go()

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
            raise translated(error, self.name) from error
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
        cache_class = java_class(self._spark, ICEBERG + "spark.SparkTableCache")
        none = gateway.new_array(self._jvm.java.lang.Class, 0)
        return cache_class.getMethod("get", none).invoke(
            None, gateway.new_array(self._jvm.java.lang.Object, 0)
        )


def _guarded(append: JavaObject, validator: _Validator) -> JavaObject:
    append.validateWith(validator)
    return append


def _appended(append: JavaObject, publication: Publication) -> JavaObject:
    for file in publication.files:
        append.appendFile(file)
    return append.set(STAMP_KEY, publication.stamp)


def _delta(delta: JavaObject, publication: Publication) -> JavaObject:
    for file in publication.files:
        delta.addRows(file)
    for vector in publication.deletes.added:
        delta.addDeletes(vector)
    for vector in publication.deletes.replaced:
        delta.removeDeletes(vector)
    delta.validateFromSnapshot(publication.base)
    delta.validateDeletedFiles()
    return delta.set(STAMP_KEY, publication.stamp)


def _set(update: JavaObject, properties: Mapping[str, str]) -> JavaObject:
    for key, value in properties.items():
        update.set(key, value)
    return update


class _Validator:
    """Runs a guard inside Iceberg's commit, on the refreshed base, at every retry."""

    def __init__(self, jvm: JavaObject, transaction: JavaObject, guard: Guard) -> None:
        self._jvm = jvm
        self._transaction = transaction
        self._guard = guard

    def validate(self, ancestors: JavaObject) -> bool:
        base = _as_dict(self._jvm, self._transaction.table().properties())
        return self._guard(base, _each_ancestor(ancestors.iterator()))

    def let_go(self) -> None:
        """Break the cycle through py4j, which would keep a table's metadata for each commit."""
        self._transaction = None

    def errorMessage(self) -> str:
        return "oncelake: progress is not what this commit was placed on"

    class Java:
        implements = [ICEBERG + "SnapshotAncestryValidator"]  # noqa: RUF012 (py4j's form)


def _as_dict(jvm: JavaObject, properties: JavaObject) -> dict[str, str]:
    """In one call to the JVM: reading a map through py4j takes several for each entry."""
    text = jvm.org.apache.iceberg.util.JsonUtil.mapper().writeValueAsString(properties)
    return dict(json.loads(str(text)))


def _each_ancestor(iterator: JavaObject) -> Iterator[Ancestor]:
    while iterator.hasNext():
        yield _ancestor(iterator.next())


def _ancestor(snapshot: JavaObject) -> Ancestor:
    return Ancestor(int(snapshot.snapshotId()), snapshot.summary().get(STAMP_KEY))
