"""Make tables: plain SQL, in the catalog's own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from oncelake.lake.java import JAVA_ERRORS, translated


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
    made = (
        f"CREATE NAMESPACE IF NOT EXISTS {'.'.join([catalog, *namespace])}",
        f"CREATE TABLE IF NOT EXISTS {name} ({columns}) USING iceberg"
        f"{partitioned}{with_properties}",
    )
    for statement in made:
        _run(spark, statement, name)


def table_exists(spark: SparkSession, name: str) -> bool:
    try:
        return spark.catalog.tableExists(name)
    except JAVA_ERRORS as error:
        raise translated(error, name) from error


def add_column(spark: SparkSession, name: str, column: str, kind: str) -> None:
    """Add a column where it is missing; it is null in the rows that are there."""
    if column not in spark.table(name).columns:
        _run(spark, f"ALTER TABLE {name} ADD COLUMN {column} {kind}", name)


def rename_table(spark: SparkSession, name: str, to: str) -> None:
    """Within its catalog, all its rows with it."""
    try:
        # The new name is told without the catalog, which would be taken for a namespace.
        spark.sql(f"ALTER TABLE {name} RENAME TO {to.split('.', 1)[1]}")
    except JAVA_ERRORS as error:
        raise translated(error, name) from error


def _run(spark: SparkSession, statement: str, name: str) -> None:
    """Twice, since another run may make the same at this instant: catalogs look, and make then."""
    try:
        spark.sql(statement)
    except JAVA_ERRORS:
        try:
            spark.sql(statement)
        except JAVA_ERRORS as error:
            raise translated(error, name) from error


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
