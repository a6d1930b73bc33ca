"""From Kafka's bytes to rows that the sinks take: decode, transform, judge by the rules."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from oncelake import lake, rules, transform
from oncelake.decode import REASON, RECORD, Decoder, TextCheck
from oncelake.errors import SpecError
from oncelake.rules import MICROS, TOMBSTONE, EventTime
from oncelake.sinks.intake import Due
from oncelake.spec import PipelineSpec
from oncelake.spec.avro import RESERVED
from oncelake.transform import Transform

KAFKA_COLUMNS = (
    "topic string, partition int, offset bigint, timestamp timestamp, key binary, value binary, "
    "headers array<struct<key: string, value: binary>>"
)


@dataclass(frozen=True, slots=True)
class Reading:
    """How a spec's records are read; `record` are the columns that come of them."""

    decoder: Decoder
    is_utf8: TextCheck
    function: Transform | None
    record: StructType
    key: tuple[str, ...]
    event: EventTime | None
    tombstones: bool

    @classmethod
    def of(cls, spark: SparkSession, spec: PipelineSpec) -> Reading:
        """Says what is wrong with the spec's columns before anything is read."""
        is_utf8 = lake.utf8_check(spark)
        decoder = Decoder(spec.decode, is_utf8)
        nothing = decoder.decode(spark.createDataFrame([], KAFKA_COLUMNS))
        function, record = None, nothing.select(f"{RECORD}.*").schema
        if spec.transform:
            function = transform.load(spark, spec.transform, spec.folder)
            record = transform.schema_after(function, nothing)
        _require_columns(spec, record)
        tombstones = spec.deletes == "tombstone"
        return cls(decoder, is_utf8, function, record, spec.key, _event_time(spec), tombstones)

    def due(self, rows: DataFrame, watermark: int | None) -> Due:
        """Rows of Kafka, decoded, and how they are judged by a watermark."""
        decoded = self.decoder.decode(rows)
        if self.tombstones:
            decoded = rules.admit_tombstones(decoded, self.is_utf8)
        return Due(
            decoded,
            lambda read: self._judged(read, watermark),
            left_out=F.isnotnull(REASON) if self.function else None,
            one_an_offset=self.function is None,
        )

    def _judged(self, rows: DataFrame, watermark: int | None) -> DataFrame:
        if self.function is not None:
            rows = self._transformed(rows, self.function)
        times = [] if self.event is None else rules.time_can_be(self.event)
        rows = rules.require(rows, [*rules.key_is_there(self.key), *times])
        return rows if self.event is None else rules.mark_late(rows, self.event, watermark)

    def _transformed(self, rows: DataFrame, function: Transform) -> DataFrame:
        """Tombstones have no record to transform, and pass it by."""
        if not self.tombstones:
            return transform.apply(function, rows)
        made = transform.apply(function, rows.filter(~F.col(TOMBSTONE)))
        made = made.withColumn(TOMBSTONE, F.lit(False))
        passing = rows.filter(TOMBSTONE).withColumn(
            RECORD, F.lit(None).cast(made.schema[RECORD].dataType)
        )
        return made.unionByName(passing.select(*made.columns))


def _event_time(spec: PipelineSpec) -> EventTime | None:
    mark = spec.watermark
    if mark is None:
        return None
    return EventTime(
        mark.column, round(mark.delay_seconds * MICROS), round(mark.skew_seconds * MICROS)
    )


def _require_columns(spec: PipelineSpec, record: StructType) -> None:
    """What the spec names must be there: after a transform that is known only now."""
    kinds = {field.name: field.dataType.simpleString() for field in record.fields}
    if taken := sorted(name for name in kinds if name.lower() in RESERVED):
        raise SpecError(f"transform: it makes a column {taken[0]}, which the table adds itself")
    named = {"key": spec.key, "order": spec.order}
    times = {
        "watermark.column": spec.watermark.column if spec.watermark else "",
        "horizon": spec.horizon.column if spec.horizon else "",
    }
    for where, columns in named.items():
        for column in columns:
            if column not in kinds:
                raise SpecError(f"{where}: {column} is no column of the rows: {', '.join(kinds)}")
    for where, column in times.items():
        if column and kinds.get(column) != "timestamp":
            raise SpecError(
                f"{where}: {column} must be a column of the type timestamp, and is "
                f"{kinds.get(column, 'not there')}"
            )
    if spec.deletes == "tombstone" and [kinds[name] for name in spec.key] != ["string"]:
        raise SpecError("deletes: tombstone needs a key of one string")
    if spec.deletes == "tombstone" and spec.order and kinds[spec.order[0]] != "timestamp":
        raise SpecError("deletes: tombstone needs an order that begins with a timestamp, or none")
