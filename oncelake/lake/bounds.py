"""The greatest value of a column, as the files that were written tell it themselves."""

from __future__ import annotations

from collections.abc import Sequence

from oncelake.errors import TableUnfit, to_type
from oncelake.lake.java import JavaObject

WHOLE = ("full", "truncate(")


def require_bounds(jvm: JavaObject, table: JavaObject, name: str, column: str) -> None:
    """Refuse a table that keeps no bounds of a column in its files' metrics."""
    mode = str(jvm.org.apache.iceberg.MetricsConfig.forTable(table).columnMode(column).toString())
    if not mode.startswith(WHOLE):
        raise TableUnfit(
            f"{name} keeps no bounds of the column {column} (metrics: {mode}), by which the "
            "watermark moves. Type: "
            + to_type(
                f"ALTER TABLE {name} SET TBLPROPERTIES "
                f"('write.metadata.metrics.column.{column}'='full')"
            )
        )


def greatest(jvm: JavaObject, table: JavaObject, files: Sequence[JavaObject],
             column: str) -> int | None:  # fmt: skip
    """Of a column of times, in microseconds; a time is never cut short in the bounds."""
    field = table.schema().findField(column)
    values = []
    for file in files:
        bound = file.upperBounds().get(field.fieldId())
        if bound is None:
            raise TableUnfit(
                f"the file {file.location()} has rows, but no bound of the column {column}: the "
                "watermark cannot be told. Nothing was committed"
            )
        conversions = jvm.org.apache.iceberg.types.Conversions
        values.append(int(conversions.fromByteBuffer(field.type(), bound)))
    return max(values, default=None)
