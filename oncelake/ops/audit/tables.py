"""Read what Iceberg records of a table: properties and snapshots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from oncelake.errors import CatalogUnreachable
from oncelake.ops.audit.evidence import History, Snapshot

READS = 5


@dataclass(frozen=True, slots=True)
class TableState:
    """A table at one moment: its properties, and the history of the head it had with them."""

    history: History
    properties: Mapping[str, str]


def quoted(name: str, *more: str) -> str:
    return ".".join(f"`{part}`" for part in (*name.split("."), *more))


def read_table(spark: SparkSession, name: str) -> TableState | None:
    """The state of a table, or None where there is none.

    Properties and head come in one answer, so they belong together. Snapshots are read after it:
    a running pipeline only adds to them, and those it adds are none of this head's ancestors.
    """
    if not spark.catalog.tableExists(name):
        return None
    for _ in range(READS):
        properties, head = _standing(spark, name)
        snapshots = _snapshots(spark, name)
        if head is None or head in snapshots:
            ancestors = _ancestors(snapshots, head)
            known = {each.snapshot_id for each in ancestors}
            others = tuple(s for i, s in snapshots.items() if i not in known)
            return TableState(History(name, True, ancestors, others), properties)
    raise CatalogUnreachable(
        f"{name}: its head was expired each of {READS} times it was read; audit again when the "
        "maintenance that is running has ended"
    )


def _standing(spark: SparkSession, name: str) -> tuple[dict[str, str], int | None]:
    """Properties and head, from Iceberg itself. Spark's SHOW TBLPROPERTIES blots out every value
    with `url`, `token` or the like in it, and progress holds names of topics and random ids."""
    jvm: Any = spark._jvm
    table = jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)
    # In one object that never changes: a run of the same session may move the table meanwhile.
    metadata = table.operations().refresh()
    head = metadata.currentSnapshot()
    return dict(metadata.properties()), None if head is None else int(head.snapshotId())


def _snapshots(spark: SparkSession, name: str) -> dict[int, Snapshot]:
    rows = spark.sql(
        "SELECT snapshot_id, parent_id, operation, summary, unix_millis(committed_at) AS millis "
        f"FROM {quoted(name, 'snapshots')}"
    ).collect()
    return {
        row.snapshot_id: Snapshot(
            snapshot_id=row.snapshot_id,
            parent_id=row.parent_id,
            operation=row.operation or "",
            summary=row.summary or {},
            committed_at=datetime.fromtimestamp(row.millis / 1000, UTC),
        )
        for row in rows
    }


def _ancestors(snapshots: Mapping[int, Snapshot], head: int | None) -> tuple[Snapshot, ...]:
    """From the head back to the first snapshot, or to where history was expired; oldest first."""
    found, at = [], head
    while at is not None and at in snapshots:
        found.append(snapshots[at])
        at = snapshots[at].parent_id
    return tuple(reversed(found))
