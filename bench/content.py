"""What a table holds, in one value that does not depend on the order of rows or files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from oncelake.errors import TerminalError

# The only column in which two runs on the same topic may differ.
WALL_CLOCK = "processed_at"


class ContentDiffers(TerminalError):
    """Two sides left tables that are not the same: then their speeds mean nothing."""


class Content(NamedTuple):
    """Rows, and two digests over all their columns, coordinates included."""

    rows: int
    total: int
    parity: int


def content(spark: SparkSession, table: str) -> Content:
    return content_of(spark.table(table))


def content_of(rows: DataFrame) -> Content:
    hashed = F.xxhash64(*(F.col(name) for name in sorted(rows.columns) if name != WALL_CLOCK))
    total = F.coalesce(F.sum(hashed.cast("decimal(38,0)")), F.lit(0))
    parity = F.coalesce(F.bit_xor(hashed), F.lit(0))
    found = rows.agg(F.count("*"), total, parity).collect()[0]
    return Content(int(found[0]), int(found[1]), int(found[2]))


def require_equal(seen: Mapping[str, Content], articles: int) -> None:
    """Every side's table, each of as many articles as the topic has, and all the same ones."""
    listed = "; ".join(f"{name}: {found}" for name, found in seen.items())
    if len(set(seen.values())) != 1 or next(iter(seen.values())).rows != articles:
        raise ContentDiffers(
            f"the topic holds {articles:,} articles, and the tables do not agree with it and "
            f"each other: {listed}. No figure of this run counts: find the side that is wrong first"
        )
