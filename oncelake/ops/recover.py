"""Weigh a pipeline's checkpoint against its table, and set it aside where it cannot be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from oncelake import ledger, source
from oncelake.checkpoint import Checkpoint, Offsets
from oncelake.follow import following
from oncelake.lake import Folder, LakeTable, rename_table, table_exists
from oncelake.model import Progress, TopicPartition
from oncelake.owner import another_owner
from oncelake.spec import PipelineSpec


@dataclass(frozen=True, slots=True)
class Recovery:
    """`aside`: what the checkpoint was renamed to, where it was. `sides`: to what side tables whose
    main table is gone were renamed, or of a dry run would be."""

    table: str
    checkpoint: str
    progress: Progress | None
    resumes: Offsets
    fault: str | None = None
    aside: str | None = None
    sides: Mapping[str, str] = field(default_factory=dict)
    dry_run: bool = False

    @property
    def partitions(self) -> list[tuple[TopicPartition, int, int | None]]:
        """Where the table ends, and where the checkpoint would go on, if it says."""
        positions = self.progress.positions if self.progress else {}
        return [(tp, span.end, self.resumes.get(tp)) for tp, span in sorted(positions.items())]

    def to_json(self) -> Mapping[str, Any]:
        return {
            "table": self.table,
            "checkpoint": self.checkpoint,
            "claimed": self.progress is not None,
            "usable": self.fault is None,
            "fault": self.fault,
            "aside": self.aside,
            "sides": dict(self.sides),
            "partitions": [
                {"topic": tp.topic, "partition": tp.partition, "table": table, "checkpoint": begins}
                for tp, table, begins in self.partitions
            ],
        }


def recover(spark: SparkSession, spec: PipelineSpec, dry_run: bool) -> Recovery:
    """What a run does at its start, and that of another pipeline or topic too; a dry run changes
    nothing."""
    held = source.describe_topic(spec.source).offsets
    folder = Folder(spark, spec.checkpoint)
    logs = Checkpoint(folder)
    found = logs.look()
    there = table_exists(spark, spec.table.name)
    progress = ledger.look(LakeTable(spark, spec.table.name), spec.name).progress if there else None
    if other := another_owner(folder, spec.name):
        fault: str | None = f"it is of pipeline {other}"
    elif other := found.of_another(spec.source.topic):
        fault = f"it is of topic {other}"
    elif there and progress is None:
        fault = None
    elif progress is None:
        fault = f"its table {spec.table.name} does not exist" if found.resumes else None
    else:
        fault = found.fault(progress, held)
    # First, since without its checkpoint nothing tells any more that the table is gone.
    sides = {} if there else _set_sides_aside(spark, spec, dry_run)
    aside = logs.set_aside() if fault and not dry_run else None
    return Recovery(
        spec.table.name, spec.checkpoint, progress, found.resumes, fault, aside, sides, dry_run
    )


def _set_sides_aside(spark: SparkSession, spec: PipelineSpec, dry_run: bool) -> dict[str, str]:
    """What a table that is gone has put aside would follow the new one no further."""
    now = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    found = following(spark, spec.sides.values(), spec.name)
    for name in () if dry_run else found:
        rename_table(spark, name, f"{name}_aside_{now}")
    return {name: f"{name}_aside_{now}" for name in found}
