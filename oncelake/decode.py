"""Bytes to columns: what decodes becomes a record, the rest a reason, and no row is dropped."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from oncelake import planner
from oncelake.spec import DecodeSpec

RECORD = "record"
REASON = "reason"
TextCheck = Callable[[Column], Column]


class Decoder:
    """Made once: each part of its expressions is a call into the JVM, too dear for every batch."""

    def __init__(self, spec: DecodeSpec, is_utf8: TextCheck = F.is_valid_utf8) -> None:
        envelope = from_avro(F.col("value"), _in_an_envelope(spec.schema), {"mode": "PERMISSIVE"})
        self._record = envelope["record"].alias(RECORD)
        # Spark's type and not the schema: there a type may stand by its name, or in a union.
        nothing = SparkSession.active().range(0).select(F.lit(b"").alias("value"))
        fields = nothing.select(self._record).select(f"{RECORD}.*").schema.fields
        texts = [field for field in fields if _has_text(field.dataType)]
        name = json.loads(spec.schema)["name"]
        self._reason = _reason(name, texts, is_utf8).alias(REASON)

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


def _reason(name: str, texts: Sequence[StructField], is_utf8: TextCheck) -> Column:
    """Why a value gave no good record, or null.

    Without its first part Spark would push a filter on the reason below the decoding, and decode
    a record anew for every part of the reason.
    """
    reason = (
        F.when(planner.never(), F.lit("never"))
        .when(F.col("value").isNull(), F.lit("value is null"))
        .when(F.col(RECORD).isNull(), F.lit(f"not an Avro {name}: its bytes do not fit the schema"))
    )
    for field in texts:
        alone = isinstance(field.dataType, StringType)
        said = f"{field.name} {'is' if alone else 'holds text that is'} not valid UTF-8"
        value = F.col(RECORD)[field.name]
        reason = reason.when(_broken(value, field.dataType, is_utf8), F.lit(said))
    return reason.otherwise(F.lit(None).cast("string"))


def _has_text(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return any(_has_text(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return _has_text(kind.elementType)
    if isinstance(kind, MapType):
        return _has_text(kind.keyType) or _has_text(kind.valueType)
    return isinstance(kind, StringType)


def _broken(value: Column, kind: DataType, is_utf8: TextCheck) -> Column:
    """Whether text in it is no UTF-8: bytes that make a table other engines cannot read.

    Where nothing is broken and something is null, it is null, which is no reason.
    """

    def among(values: Column, kind: DataType) -> Column:
        if not _has_text(kind):
            return F.lit(False)
        return F.exists(values, lambda each: _broken(each, kind, is_utf8))

    if isinstance(kind, StructType):
        texts = [field for field in kind.fields if _has_text(field.dataType)]
        return reduce(or_, (_broken(value[f.name], f.dataType, is_utf8) for f in texts))
    if isinstance(kind, ArrayType):
        return among(value, kind.elementType)
    if isinstance(kind, MapType):
        keys = among(F.map_keys(value), kind.keyType)
        return keys | among(F.map_values(value), kind.valueType)
    return ~is_utf8(value)
