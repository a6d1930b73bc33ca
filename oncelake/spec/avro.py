"""The Avro schema of a spec: checked before Spark starts, and reduced to the table's columns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import fastavro
from fastavro.schema import SchemaParseException

from oncelake.spec.problems import Refused

# Columns the table has besides those of the schema.
ADDED_COLUMNS: Mapping[str, str] = {
    "kafka_partition": "int",
    "kafka_offset": "long",
    "processed_at": "timestamp",
}
# And one that it gets where its topic was made anew (see layout.name_topics).
RESERVED = (*ADDED_COLUMNS, "kafka_topic")

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LOGICAL = {
    "date": "date",
    "decimal": "decimal",
    "timestamp-millis": "timestamp",
    "timestamp-micros": "timestamp",
    "local-timestamp-millis": "timestamp",
    "local-timestamp-micros": "timestamp",
}
_COMPLEX = {"record": "nested", "array": "nested", "map": "nested", "enum": "string"}
_COMPLEX["fixed"] = "bytes"


def columns(text: str) -> dict[str, str]:
    """The table's columns by name, each with its kind; Refused if the schema is unfit."""
    parsed = _parse(_json(text))
    if not isinstance(parsed, dict) or parsed.get("type") != "record":
        raise Refused("must be an Avro record: its fields become the columns")
    _check_types(parsed, ())
    kinds = {field["name"]: _kind(field["type"]) for field in parsed["fields"]}
    if taken := sorted(name for name in kinds if name.lower() in RESERVED):
        raise Refused(f"has the field {taken[0]}, which the table adds itself: rename it")
    return {**kinds, **ADDED_COLUMNS}


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise Refused(f"is not JSON: line {error.lineno}: {error.msg}") from None
    except (ValueError, RecursionError):
        raise Refused("is not JSON that can be read") from None


def _parse(schema: Any) -> Any:
    """The schema with full names; fastavro's own checks raise errors of many kinds."""
    try:
        return fastavro.parse_schema(schema)
    except SchemaParseException as error:
        raise Refused(f"is not an Avro schema: {error}") from None
    except fastavro.schema.UnknownType as error:
        raise Refused(f"is not an Avro schema: unknown type {error.name!r}") from None
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, RecursionError) as error:
        raise Refused(f"is not an Avro schema ({type(error).__name__}: {error})") from None


def _check_types(schema: Any, above: tuple[str, ...]) -> None:
    """Names that columns can have, no record inside itself: Spark has no such type."""
    if isinstance(schema, list):
        for branch in schema:
            _check_types(branch, above)
    elif isinstance(schema, str):
        if schema in above:
            raise Refused(f"has the record {schema} inside itself, which no table can hold")
    elif schema.get("type") == "record":
        _check_record(schema, above)
    else:
        _check_types(schema.get("items", schema.get("values", "null")), above)


def _check_record(schema: dict[str, Any], above: tuple[str, ...]) -> None:
    if not schema["fields"]:
        raise Refused(f"has no fields in the record {schema['name']}")
    seen: set[str] = set()
    for field in schema["fields"]:
        name = field["name"]
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise Refused(f"has the field {name!r}: letters, digits and _ only")
        if name.lower() in seen:
            raise Refused(f"has the field {name} twice (upper and lower case are the same)")
        seen.add(name.lower())
        _check_types(field["type"], (*above, schema["name"]))


def _kind(schema: Any) -> str:
    """What a column of this type can be partitioned by."""
    if isinstance(schema, list):
        kinds = {_kind(branch) for branch in schema if branch != "null"}
        return kinds.pop() if len(kinds) == 1 else "nested"
    if isinstance(schema, dict):
        return _LOGICAL.get(schema.get("logicalType", "")) or _kind(schema["type"])
    # A named type of an earlier field: a record at worst, so not to be partitioned by.
    plain = ("boolean", "int", "long", "float", "double", "bytes", "string")
    return schema if schema in plain else _COMPLEX.get(schema, "nested")
