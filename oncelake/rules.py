"""Rules for decoded rows: what a row must have to be taken, and which of a key's rows is newest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from oncelake import decode


@dataclass(frozen=True, slots=True)
class Versions:
    """Rows of one `key` are versions of one thing; the greatest by `order` is its newest.

    Where `order` says nothing, Kafka's coordinates do: of two versions with equal order the one of
    the greater partition, then of the greater offset. So any two rows compare, always alike. Nulls
    are less than anything.
    """

    key: tuple[str, ...]
    order: tuple[str, ...]

    def rank(self, of: Sequence[Column], partition: Column, offset: Column) -> Column:
        """What rows are compared by; `of` are their order columns."""
        ordered = (column.alias(f"o{number}") for number, column in enumerate(of))
        return F.struct(*ordered, partition.alias("partition"), offset.alias("offset"))


def require_key(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """A row without its key is no version of anything: it gets a reason."""
    reason = F.col(decode.REASON)
    for name in key:
        missing = F.when(F.col(decode.RECORD)[name].isNull(), F.lit(f"key {name} is null"))
        reason = F.coalesce(reason, missing)
    return rows.withColumn(decode.REASON, reason)
