"""Change rows that a table has: which of its rows go, or are marked, and what is written instead.

A revision looks at all rows of a snapshot; only the files that hold rows it touches are written
anew. It can be worked out again on any later snapshot, with the same outcome.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from oncelake.model import FAILED, Mark, Pending, Ranges, kafka_name
from oncelake.planner import local_rows
from oncelake.source import TOPIC, within

OUTCOME, REPLAY = "outcome", "replay"
"""The columns of a mark: what became of a row, and the sequence of the commit that decided it."""
MARKS = {OUTCOME: "string", REPLAY: "bigint"}
TOUCHED, GONE = "_touched", "_gone"


def revised(rows: DataFrame, pending: Pending) -> DataFrame:
    """The rows as they are to be; TOUCHED says which of them differ, GONE which are to go."""
    nothing = F.lit(False)
    rows = rows.withColumns({TOUCHED: nothing, GONE: nothing})
    if pending.without:
        gone = F.coalesce(_inside(rows, pending.without), nothing)
        rows = rows.withColumns({TOUCHED: gone, GONE: gone})
    if pending.unmarked and REPLAY in rows.columns:
        void = F.coalesce(F.col(REPLAY).isin(*pending.unmarked), nothing)
        rows = _with_marks(rows, void, _null(OUTCOME), _null(REPLAY))
    if pending.marks:
        rows = _marked(rows, pending.marks, pending.sequence)
    return rows


def _inside(rows: DataFrame, ranges: Ranges) -> Column:
    topic = None
    if TOPIC in rows.columns:
        # Rows from before their topic was made anew name none.
        topic = F.coalesce(TOPIC, F.lit(kafka_name(min(ranges).topic)))
    return within(ranges, F.col("kafka_partition"), F.col("kafka_offset"), topic)


def _marked(rows: DataFrame, marks: Sequence[Mark], sequence: int) -> DataFrame:
    listed = [(*mark.tp, *mark.span, mark.outcome) for mark in marks]
    fields = "m_topic string, m_partition int, m_start bigint, m_end bigint, m_outcome string"
    spans = local_rows(rows.sparkSession, listed, fields)
    offset = F.col("kafka_offset")
    found = (
        (F.col(TOPIC) == F.col("m_topic"))
        & (F.col("kafka_partition") == F.col("m_partition"))
        & (offset >= F.col("m_start"))
        & (offset < F.col("m_end"))
        & open_to_replay()
    )
    joined = rows.join(F.broadcast(spans), found, "left")
    told = F.isnotnull("m_outcome")
    marked = _with_marks(joined, told, F.col("m_outcome"), F.lit(sequence).cast("bigint"))
    return marked.drop(*(field.split()[0] for field in fields.split(", ")))


def _with_marks(rows: DataFrame, where: Column, outcome: Column, replay: Column) -> DataFrame:
    return rows.withColumns(
        {
            TOUCHED: F.col(TOUCHED) | where,
            OUTCOME: F.when(where, outcome).otherwise(F.col(OUTCOME)),
            REPLAY: F.when(where, replay).otherwise(F.col(REPLAY)),
        }
    )


def open_to_replay() -> Column:
    """Whether a row in quarantine was not taken yet."""
    return F.isnull(OUTCOME) | (F.col(OUTCOME) == FAILED)


def _null(column: str) -> Column:
    return F.lit(None).cast(MARKS[column])
