"""One conditional commit: files, vectors, stamp and properties, or none of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from oncelake.lake.deletes import NO_DELETES, Deletes
from oncelake.lake.java import ICEBERG, JavaObject
from oncelake.model import STAMP_KEY


class Ancestor(NamedTuple):
    """A snapshot on main, newest first, with our stamp's text where it has one."""

    snapshot_id: int
    stamp: str | None


Guard: TypeAlias = Callable[[Mapping[str, str], Iterator[Ancestor]], bool]


@dataclass(frozen=True, slots=True)
class Publication:
    """What is to become visible at once. `base`: the snapshot that the vectors are made for;
    `replaced`: files that go when the others come."""

    stamp: str
    properties: Mapping[str, str]
    guard: Guard
    files: Sequence[JavaObject] = field(default=())
    deletes: Deletes = NO_DELETES
    base: int | None = None
    replaced: Sequence[JavaObject] = field(default=())


def commit(spark: SparkSession, table: JavaObject, publication: Publication) -> None:
    """Guarded at every retry, on the base that is then current."""
    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
    transaction = table.newTransaction()
    validator = _Validator(spark._jvm, transaction, publication.guard)
    try:
        # A row delta checks for conflicts before it asks a guard, and would take a commit of ours
        # that had landed for one: an empty append goes first and asks. So with replaced files.
        if publication.deletes.added:
            _guarded(transaction.newAppend(), validator).commit()
            _delta(transaction.newRowDelta(), publication).commit()
        elif publication.replaced:
            _guarded(transaction.newAppend(), validator).commit()
            _overwrite(transaction.newOverwrite(), publication).commit()
        else:
            _appended(_guarded(transaction.newAppend(), validator), publication).commit()
        # Last, so that the guard sees the properties of the refreshed base.
        _set(transaction.updateProperties(), publication.properties).commit()
        transaction.commitTransaction()
    finally:
        validator.let_go()


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


def _overwrite(overwrite: JavaObject, publication: Publication) -> JavaObject:
    for file in publication.files:
        overwrite.addFile(file)
    for file in publication.replaced:
        overwrite.deleteFile(file)
    return overwrite.set(STAMP_KEY, publication.stamp)


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
        base = as_dict(self._jvm, self._transaction.table().properties())
        return self._guard(base, _each_ancestor(ancestors.iterator()))

    def let_go(self) -> None:
        """Break the cycle through py4j, which would keep a table's metadata for each commit."""
        self._transaction = None

    def errorMessage(self) -> str:
        return "oncelake: progress is not what this commit was placed on"

    class Java:
        implements = [ICEBERG + "SnapshotAncestryValidator"]  # noqa: RUF012 (py4j's form)


def as_dict(jvm: JavaObject, properties: JavaObject) -> dict[str, str]:
    """In one call to the JVM: reading a map through py4j takes several for each entry."""
    return dict(json.loads(str(json_mapper(jvm).writeValueAsString(properties))))


@lru_cache(maxsize=4)
def json_mapper(jvm: JavaObject) -> JavaObject:
    """Iceberg's own, once: py4j asks Java for each part of a name."""
    return jvm.org.apache.iceberg.util.JsonUtil.mapper()


def _each_ancestor(iterator: JavaObject) -> Iterator[Ancestor]:
    while iterator.hasNext():
        yield ancestor_of(iterator.next())


def ancestor_of(snapshot: JavaObject) -> Ancestor:
    return Ancestor(int(snapshot.snapshotId()), snapshot.summary().get(STAMP_KEY))
