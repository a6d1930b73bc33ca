"""Keep a pipeline's tables small and quick on demand, also while it runs."""

from __future__ import annotations

from collections.abc import Iterator

from pyspark.sql import SparkSession

from oncelake import layout
from oncelake.lake import LakeTable
from oncelake.maintain import Upkeep
from oncelake.spec import PipelineSpec


def maintain(spark: SparkSession, spec: PipelineSpec, dry_run: bool) -> Iterator[Upkeep]:
    main = LakeTable(spark, spec.table.name)
    sides = {fate: LakeTable(spark, name) for fate, name in spec.sides.items()}
    maintenance = layout.maintenance(spark, spec, layout.Tables(main, sides))
    return maintenance.dry_run() if dry_run else maintenance.run()
