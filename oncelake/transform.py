"""A user's own step between decoding and the rules: SQL, or a function on DataFrames.

It is given the decoded rows, each with its place in Kafka in the column `kafka`, which it must
keep. It may change columns and leave rows out; those are counted. Of one record it makes at most
one row. It must be deterministic: a batch is read more than once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from oncelake.decode import REASON, RECORD
from oncelake.errors import SpecError
from oncelake.functions import function_beside, is_address

Transform = Callable[[DataFrame], DataFrame]
VIEW = "rows"
KAFKA = "kafka"
PLACE = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")


def load(spark: SparkSession, text: str, folder: Path) -> Transform:
    """`module:function`, looked for in the spec's folder too, or SQL."""
    if not is_address(text):
        return _sql(text)
    function = function_beside(folder, text, "transform: ")
    _send_along(spark, sys.modules[text.partition(":")[0]].__file__, folder)
    return _checked(text, function)


def apply(transform: Transform, decoded: DataFrame) -> DataFrame:
    """The good rows, transformed, in the form that the rules take."""
    good = decoded.filter(F.isnull(REASON))
    given = good.select(f"{RECORD}.*", F.struct(*PLACE).alias(KAFKA))
    made = transform(given)
    if KAFKA not in made.columns:
        raise SpecError(
            f"transform: it gives {', '.join(made.columns)} and not the column {KAFKA}, which "
            f"tells where a row is from: select {KAFKA} too"
        )
    columns = [F.col(f"`{name}`") for name in made.columns if name != KAFKA]
    no_reason = F.lit(None).cast("string").alias(REASON)
    return made.select(f"{KAFKA}.*", F.struct(*columns).alias(RECORD), no_reason)


def schema_after(transform: Transform, decoded: DataFrame) -> StructType:
    """What it makes of the columns; says what is wrong with it before anything is read."""
    if KAFKA in decoded.select(f"{RECORD}.*").columns:
        raise SpecError(f"transform: the schema has a field {KAFKA}, which is not to be told apart")
    try:
        made = apply(transform, decoded)
        kept = _kinds(made) == _kinds(decoded)
    except SpecError:
        raise
    except Exception as error:  # a user's function may raise anything
        reason = (str(error) or repr(error)).splitlines()[0]
        raise SpecError(
            f"transform: {reason} It is given {VIEW} with the schema's fields and {KAFKA}, which "
            "it must keep"
        ) from error
    if not kept:
        raise SpecError(f"transform: it must keep the column {KAFKA} as it is given")
    return made.select(f"{RECORD}.*").schema


def _kinds(rows: DataFrame) -> list[str]:
    return [field.dataType.simpleString() for field in rows.select(*PLACE).schema.fields]


def _sql(text: str) -> Transform:
    def run(rows: DataFrame) -> DataFrame:
        rows.createOrReplaceTempView(VIEW)
        return rows.sparkSession.sql(text)

    return run


def _checked(text: str, function: Transform) -> Transform:
    def run(rows: DataFrame) -> DataFrame:
        made = function(rows)
        if not isinstance(made, DataFrame):
            raise SpecError(f"transform: {text} gave a {type(made).__name__}, no DataFrame")
        return made

    return run


def _send_along(spark: SparkSession, file: str | None, folder: Path) -> None:
    """Its own functions run in workers, which know nothing of the spec's folder."""
    if file is not None and Path(file).parent == folder:
        spark.sparkContext.addPyFile(file)
