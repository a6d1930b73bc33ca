"""One Iceberg table: load, stage, publish, look back."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from oncelake.errors import TableUnfit, to_type
from oncelake.lake.bounds import greatest, require_bounds
from oncelake.lake.deletes import NO_DELETES, Deletes, Positions, data_files, write_vectors
from oncelake.lake.java import (
    ICEBERG,
    JAVA_ERRORS,
    JavaObject,
    in_short,
    java_class,
    missing,
    translated,
)
from oncelake.lake.publish import (
    Ancestor,
    Publication,
    ancestor_of,
    as_dict,
    commit,
    json_mapper,
)
from oncelake.lake.revise import GONE, TOUCHED, revised
from oncelake.model import Pending, Stamp

# Without retries Iceberg deletes the manifest list of a commit that landed but was reported lost.
FEWEST_COMMIT_RETRIES = 4
FORMAT_WITH_VECTORS = 3
# A file counts as at least so much where files are dealt out to tasks. A few columns of a
# micro-batch's small ones are read in a moment: by Iceberg's 4 MiB a task would get too few.
SLIM_OPEN_COST = 1024 * 1024
# And so much makes a task. By Iceberg's 128 MiB a table would be three tasks where two cores wait.
SLIM_SPLIT = 32 * 1024 * 1024
STAGING_OPTIONS = {"fanout-enabled": "true", "distribution-mode": "none"}


class Unanswered(Exception):
    """A commit that was not confirmed: it may have landed all the same. Only the table knows."""


@dataclass(frozen=True, slots=True)
class Staged:
    """Data files that are written and belong to no snapshot yet.

    `base`: the snapshot that they were worked out against, where they fit no other; `replaced` are
    files of it that hold the same rows, and more.
    """

    files: tuple[JavaObject, ...] = ()
    deletes: Deletes = NO_DELETES
    base: int | None = None
    replaced: tuple[JavaObject, ...] = ()

    @property
    def rows(self) -> int:
        return sum(int(file.recordCount()) for file in self.files)


class Stamped(NamedTuple):
    """A snapshot of ours: where its list of manifests is, and when it was made by our clock."""

    manifest_list: str
    committed_at: datetime


class LakeTable:
    """One Iceberg table, always read afresh: a cached view could hide another driver."""

    def __init__(self, spark: SparkSession, name: str) -> None:
        self.name = name
        self._spark = spark
        self._jvm: JavaObject = spark._jvm
        self._table = self._load()
        self._cache = self._table_cache()
        rewrites: JavaObject = self._jvm.org.apache.iceberg.spark.FileRewriteCoordinator  # type: ignore[union-attr]
        self._coordinator = rewrites.get()
        self._require_fit()

    def refresh(self) -> None:
        try:
            self._table.refresh()
            gone = self._table.operations().current() is None
        except JAVA_ERRORS as error:
            raise translated(error, self.name) from error
        # A JDBC catalog says so once; asked again it has nothing to tell.
        if gone:
            raise missing(self.name)

    def require_vectors(self) -> None:
        """Refuse a table whose format has no deletion vectors."""
        version = int(self._table.operations().current().formatVersion())
        if version < FORMAT_WITH_VECTORS:
            raise TableUnfit(
                f"{self.name} has format version {version}, and upserts need deletion vectors, "
                f"which its readers must know. Type: "
                + self._setting("format-version", FORMAT_WITH_VECTORS)
            )

    def properties(self) -> dict[str, str]:
        return as_dict(self._jvm, self._table.properties())

    def columns(self) -> list[str]:
        """As the table was when it was last refreshed; in one call, since each batch asks."""
        text = str(self._jvm.org.apache.iceberg.SchemaParser.toJson(self._table.schema()))
        return [str(column["name"]) for column in json.loads(text)["fields"]]

    def head(self) -> int | None:
        snapshot = self._table.currentSnapshot()
        return None if snapshot is None else int(snapshot.snapshotId())

    def ancestors(self) -> Iterator[Ancestor]:
        """Main's snapshots from the newest back to the oldest that is not expired."""
        snapshot = self._table.currentSnapshot()
        while snapshot is not None:
            yield ancestor_of(snapshot)
            parent = snapshot.parentId()
            snapshot = None if parent is None else self._table.snapshot(parent)

    @property
    def java(self) -> JavaObject:
        """Iceberg's own table, for the rest of this package."""
        return self._table

    def newest_stamped(self, pipeline: str) -> Stamped | None:
        """The newest snapshot on main that a pipeline has made, if it is not expired."""
        snapshot = self._table.currentSnapshot()
        while snapshot is not None:
            text = ancestor_of(snapshot).stamp
            if text is not None and Stamp.from_text(text).pipeline == pipeline:
                at = datetime.fromtimestamp(int(snapshot.timestampMillis()) / 1000, UTC)
                return Stamped(str(snapshot.manifestListLocation()), at)
            parent = snapshot.parentId()
            snapshot = None if parent is None else self._table.snapshot(parent)
        return None

    def stamps(self) -> Iterator[Ancestor]:
        """Every stamped snapshot in the metadata, on main or not."""
        for snapshot in self._table.snapshots():
            found = ancestor_of(snapshot)
            if found.stamp is not None:
                yield found

    def at(self, snapshot: int, spark: SparkSession) -> DataFrame:
        """Its rows as they stood then, for a query of few columns in this session."""
        table = spark.read.format("iceberg").option("versionAsOf", snapshot)
        slim = {"file-open-cost": SLIM_OPEN_COST, "split-size": SLIM_SPLIT}
        return table.options(**slim).load(self.name)

    def empty_at(self, snapshot: int) -> bool:
        """Whether it had no row then, also none that is gone since."""
        return str(self._table.snapshot(snapshot).summary().get("total-records")) == "0"

    def require_bounds(self, column: str) -> None:
        """Refuse a table whose files do not tell the greatest value of a column."""
        require_bounds(self._jvm, self._table, self.name, column)

    def greatest(self, column: str, staged: Staged) -> int | None:
        """The greatest time among staged rows, in microseconds; None where there are no rows."""
        return greatest(self._jvm, self._table, staged.files, column)

    def stage(self, rows: DataFrame) -> Staged:
        """Write data files that no snapshot refers to: invisible until published."""
        key = str(uuid.uuid4())
        coordinator = self._coordinator
        self._cache.add(key, self._table)
        try:
            rows.write.format("iceberg").mode("append").options(**STAGING_OPTIONS).save(key)
            # As an array: py4j ends a walk over a set by an exception, dear to translate.
            return Staged(tuple(coordinator.fetchNewFiles(self._table, key).toArray()))
        finally:
            coordinator.clearRewrite(self._table, key)
            self._cache.remove(key)

    def stage_revised(self, pending: Pending) -> Staged:
        """Write anew, as it is to be, each file that holds rows which are to change or go."""
        head = self.head()
        if head is None:
            return Staged()
        # A snapshot has the columns of its time: those that came since are null in its rows.
        there, now = self.at(head, self._spark), self._spark.table(self.name).schema
        since = [
            F.lit(None).cast(f.dataType).alias(f.name) for f in now if f.name not in there.columns
        ]
        rows = revised(there.select("*", "_file", *since), pending)
        touched = [row[0] for row in rows.filter(TOUCHED).select("_file").distinct().collect()]
        if not touched:
            return Staged(base=head)
        # Not by `isin`: Iceberg would try to look at files by it, and warn that it cannot.
        named = F.array_contains(F.array(*map(F.lit, touched)), F.col("_file"))
        kept = rows.filter(named & ~F.col(GONE))
        staged = self.stage(kept.select(*now.names))
        replaced = data_files(self._spark, self._table, head, touched)
        return replace(staged, base=head, replaced=replaced)

    def stage_deletes(self, snapshot: int, gone: Positions) -> Deletes:
        """Write vectors for the positions that are gone from files of this snapshot."""
        return write_vectors(self._spark, self._table, snapshot, gone)

    def publish(self, publication: Publication) -> None:
        """Commit once, guarded at every retry; Unanswered unless it is confirmed."""
        try:
            commit(self._spark, self._table, publication)
        except JAVA_ERRORS as error:
            raise Unanswered(in_short(error)) from error

    def files_to_text(self, files: Sequence[JavaObject]) -> tuple[str, ...]:
        parser = self._jvm.org.apache.iceberg.ContentFileParser
        specs = self._table.specs()
        return tuple(str(parser.toJson(file, specs.get(file.specId()))) for file in files)

    def files_from_text(self, texts: Sequence[str]) -> tuple[JavaObject, ...]:
        parser = self._jvm.org.apache.iceberg.ContentFileParser
        mapper = json_mapper(self._jvm)
        return tuple(parser.fromJson(mapper.readTree(text), self._table.specs()) for text in texts)

    def absent(self, files: Sequence[JavaObject]) -> list[str]:
        """Those that are no longer where they were written."""
        io, places = self._table.io(), [str(file.location()) for file in files]
        try:
            return [place for place in places if not io.newInputFile(place).exists()]
        except JAVA_ERRORS as error:
            raise Unanswered(in_short(error)) from error

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
                "type: " + self._setting("commit.retry.num-retries", FEWEST_COMMIT_RETRIES)
            )

    def _setting(self, key: str, value: object) -> str:
        return to_type(f"ALTER TABLE {self.name} SET TBLPROPERTIES ('{key}'='{value}')")

    def _table_cache(self) -> JavaObject:
        """SparkTableCache.get(), by reflection: an instance get(String) hides it from py4j."""
        gateway = self._spark.sparkContext._gateway
        assert gateway is not None
        cache_class = java_class(self._spark, ICEBERG + "spark.SparkTableCache")
        none = gateway.new_array(self._jvm.java.lang.Class, 0)
        return cache_class.getMethod("get", none).invoke(
            None, gateway.new_array(self._jvm.java.lang.Object, 0)
        )
