"""The tables of a pipeline are made as the spec says."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StringType, StructField, StructType

from oncelake import layout
from oncelake.errors import TableUnfit
from oncelake.reading import Reading
from tests.advice import advised
from tests.spark.records import Records

ASKED = {
    "write.parquet.compression-codec": "zstd",
    "write.metadata.metrics.column.title": "counts",
    "write.parquet.bloom-filter-enabled.column.id": "true",
}


def test_the_specs_properties_win_and_those_of_a_column_are_for_the_main_table(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    """The quarantine has no such columns: Iceberg would not make it."""
    spec = Records(spark, warehouse, tmp_path).spec
    name = f"{spec.table.name}_asked"
    asked = replace(spec.table, name=name, quarantine=f"{name}_aside", properties=ASKED)
    spec = replace(spec, table=asked)
    tables = layout.make_tables(spark, spec, Reading.of(spark, spec).record)
    quarantine = tables.sides["quarantined"].properties()
    assert tables.main.properties().items() >= {**layout.TABLE_PROPERTIES, **ASKED}.items() - {
        ("format-version", "2")
    }
    assert quarantine["write.parquet.compression-codec"] == "zstd"
    assert not [key for key in quarantine if ".column." in key]


def test_a_table_that_lacks_a_column_of_the_rows_is_refused_with_what_to_type(
    spark: SparkSession, warehouse: Path, tmp_path: Path
) -> None:
    spec = Records(spark, warehouse, tmp_path).spec
    record = Reading.of(spark, spec).record
    more = StructType([*record.fields, StructField("mood", StringType())])
    with pytest.raises(TableUnfit, match="has no column mood") as refused:
        layout.make_tables(spark, spec, more)
    spark.sql(advised(refused.value))
    layout.make_tables(spark, spec, more)
