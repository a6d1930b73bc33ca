"""The columns of an article, of what is found out about it, and of the enriched table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyspark.sql.types import StructType

Columns = Mapping[str, str]

ARTICLE: Columns = {
    "id": "string",
    "title": "string",
    "body": "string",
    "source": "string",
    "url": "string",
    "published_at": "timestamp",
}
COORDINATES: Columns = {"kafka_partition": "int", "kafka_offset": "bigint"}
FOUND_OUT: Columns = {
    "sentiment_score": "float",
    "sentiment_label": "string",
    "entities": "array<string>",
    "keywords": "array<string>",
}
CONTENT: Columns = {**ARTICLE, **FOUND_OUT}
"""What a version is: a row whose content is that of the row which is there is no new one."""
ENRICHED: Columns = {**CONTENT, "processed_at": "timestamp", "version": "int"}


def in_sql(columns: Columns) -> str:
    """As the column list of a CREATE TABLE."""
    return ", ".join(f"{name} {kind}" for name, kind in columns.items())


def lacking(schema: StructType, columns: Columns) -> Iterator[str]:
    """In words, each of the columns that `schema` has not, or has of another type."""
    kinds = {field.name: field.dataType.simpleString() for field in schema.fields}
    for name, kind in columns.items():
        if name not in kinds:
            yield f"{name} is missing"
        elif kinds[name] != kind:
            yield f"{name} is {kinds[name]} and not {kind}"
