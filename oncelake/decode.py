"""Bytes to columns: what decodes becomes a record, the rest a reason, and no row is dropped."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

from oncelake import planner
from oncelake.spec import DecodeSpec

RECORD = "record"
REASON = "reason"
TextCheck = Callable[[Column], Column]


class Decoder:
    """Made once: each part of its expressions is a call into the JVM, too dear for every batch."""

    def __init__(self, spec: DecodeSpec, is_utf8: TextCheck = F.is_valid_utf8) -> None:
        envelope = from_avro(F.col("value"), _in_an_envelope(spec.schema), {"mode": "PERMISSIVE"})
        schema = json.loads(spec.schema)
        self._record = envelope["record"].alias(RECORD)
        self._reason = _reason(schema["name"], _strings(schema), is_utf8).alias(REASON)

    def decode(self, rows: DataFrame) -> DataFrame:
        """Kafka's columns, plus `record` and, where that could not be had, `reason`."""
        return rows.select("*", self._record).select("*", self._reason)


def _in_an_envelope(schema: str) -> str:
    """A record of one field has the same bytes as the field.

    Spark answers a failed decoding with a record of nulls, which a record of optional fields
    could also be; inside an envelope the failure is a null record and cannot be mistaken.
    """
    fields = [{"name": "record", "type": json.loads(schema)}]
    return json.dumps({"type": "record", "name": "OncelakeEnvelope", "fields": fields})


def _reason(name: str, strings: list[str], is_utf8: TextCheck) -> Column:
    """Why a value gave no good record, or null.

    Without its first part Spark would push a filter on the reason below the decoding, and decode
    a record anew for every part of the reason.
    """
    reason = (
        F.when(planner.never(), F.lit("never"))
        .when(F.col("value").isNull(), F.lit("value is null"))
        .when(F.col(RECORD).isNull(), F.lit(f"not an Avro {name}: its bytes do not fit the schema"))
    )
    for field in strings:
        valid = is_utf8(F.col(RECORD)[field])  # of a null: null, which is no reason
        reason = reason.when(~valid, F.lit(f"{field} is not valid UTF-8"))
    return reason.otherwise(F.lit(None).cast("string"))


def _strings(schema: dict[str, Any]) -> list[str]:
    """Top-level string fields: bytes that are no UTF-8 make a table other engines cannot read."""
    return [field["name"] for field in schema["fields"] if _is_string(field["type"])]


def _is_string(kind: Any) -> bool:
    if isinstance(kind, list):
        return any(_is_string(branch) for branch in kind)
    return kind == "string" or (isinstance(kind, dict) and kind.get("type") == "string")
