"""The raw table as a source: one snapshot of it, and the offsets that it is filled with up to it.

Rows of the raw table come and go by other hands too (a later version replaces an earlier one,
compaction moves them to other files), but with each the progress of its pipeline says in the same
commit which offsets the table is done with. Rows and progress of one snapshot therefore fit.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from oncelake import ledger, source
from oncelake.enrich.schema import ARTICLE, COORDINATES, lacking
from oncelake.errors import TableUnfit
from oncelake.lake import LakeTable
from oncelake.model import Origin, Progress, Ranges, Span, Stamp, non_empty
from oncelake.refusals import progress_key
from oncelake.source import TOPIC


@dataclass(frozen=True, slots=True)
class RawArticles:
    """The raw table at one snapshot; `positions` are the offsets of which it has all rows."""

    table: str
    snapshot: int
    origin: Origin
    positions: Ranges

    def due(self, progress: Progress | None) -> Ranges:
        """What a reader that stands at `progress` has not read yet."""
        if progress is None:
            return non_empty(self.positions)
        # A partition that was added since begins at 0, and not where the raw table first met it:
        # to the reader there is nothing before that either.
        return non_empty(
            {tp: Span(progress.next_offset(tp), span.end) for tp, span in self.positions.items()}
        )

    def read_before(self, progress: Progress) -> Ranges:
        """What a reader that stands at `progress` has read."""
        return non_empty(
            {tp: Span(span.start, progress.next_offset(tp)) for tp, span in self.positions.items()}
        )

    def rows(self, spark: SparkSession, ranges: Ranges) -> DataFrame:
        """The rows of these offsets. Files without any are not read: Iceberg knows their bounds.

        Where several topics were written to the table, and it does not say of a row which one it
        came from, rows of another one may be among them. They change nothing.
        """
        table = spark.read.format("iceberg").option("versionAsOf", self.snapshot).load(self.table)
        problems = [*lacking(table.schema, {**ARTICLE, **COORDINATES})]
        if problems:
            raise TableUnfit(
                f"{self.table} is no table of articles: {', '.join(problems)}. Set RAW_TABLE to "
                "the table that stream_write_raw.py writes"
            )
        places = F.col("kafka_partition"), F.col("kafka_offset"), self._topic(table)
        return table.filter(source.within(ranges, *places))

    def _topic(self, table: DataFrame) -> Column | None:
        """Which topic a row is from, if the table says. Rows from before a topic was made anew
        name none."""
        if TOPIC not in table.columns:
            return None
        made_anew = list(self.origin.epochs.names)
        return F.coalesce(TOPIC, *(F.lit(name) for name in made_anew))


def look(table: LakeTable) -> RawArticles:
    """The raw table as it is now: snapshot and progress by one and the same reading."""
    table.refresh()
    snapshot = table.head()
    filled = [progress for progress in ledger.pipelines(table) if progress.positions]
    if snapshot is None or not filled:
        raise TableUnfit(
            f"{table.name} was not filled by a pipeline of oncelake: no property "
            f"{progress_key('…')} says which offsets it holds. Write it by "
            "`oncelake run`, or set RAW_TABLE to a table that was"
        )
    clusters = sorted({progress.origin.cluster_id for progress in filled})
    if len(clusters) > 1:
        raise TableUnfit(
            f"{table.name} is filled from the Kafka clusters {', '.join(clusters)}: an offset does "
            "not tell which of them a row is from. Give each cluster a raw table of its own"
        )
    topic_ids = {name: number for p in filled for name, number in p.origin.topic_ids.items()}
    positions = {tp: span for progress in filled for tp, span in progress.positions.items()}
    return RawArticles(table.name, snapshot, Origin(clusters[0], topic_ids), positions)


def replayed_since(table: LakeTable, snapshot: int | None) -> bool:
    """Whether rows of offsets that were dealt with have come out of quarantine after `snapshot`.

    Where that was expired it cannot be told: then they have, if any ever did.
    """
    if not any(progress.totals.replayed for progress in ledger.pipelines(table)):
        return False
    for ancestor in table.ancestors():
        if ancestor.snapshot_id == snapshot:
            return False
        if ancestor.stamp is not None and Stamp.from_text(ancestor.stamp).kind == "replay":
            return True
    return True
