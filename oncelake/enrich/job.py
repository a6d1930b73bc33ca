"""One run: what the raw table has and the enriched one has not, as one commit; or nothing."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from oncelake import lake, layout, ledger
from oncelake.commit import Committer, OnStep
from oncelake.enrich import function, raw
from oncelake.enrich.merge import Merge
from oncelake.enrich.schema import ENRICHED, in_sql, lacking
from oncelake.errors import EXIT_CODES, SourceChanged, SpecError, TableUnfit, exit_code_of
from oncelake.lake import LakeTable, until_stopped
from oncelake.model import Counts, Json, Progress, Ranges, spans_to_json
from oncelake.refusals import progress_key, refuse_changed_source
from oncelake.session import open_session
from oncelake.spec import read_spec

PIPELINE = "articles_enriched"


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says. Without a spec, Spark's own settings name the catalog."""

    raw: str = "demo.news.articles_raw"
    enriched: str = "demo.news.articles_enriched"
    enrich: str = function.DEFAULT
    spec: Path | None = None

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Settings:
        names = {"raw": "RAW_TABLE", "enriched": "ENRICHED_TABLE", "enrich": "ENRICH"}
        given = {field: environ[name] for field, name in names.items() if environ.get(name)}
        spec = environ.get("PIPELINE_SPEC")
        settings = cls(**given, spec=Path(spec) if spec else None)
        for field in ("raw", "enriched"):
            if getattr(settings, field).count(".") < 2:
                raise SpecError(f"{names[field]} must name a table as catalog.namespace.table")
        if settings.raw == settings.enriched:
            raise SpecError(f"RAW_TABLE and ENRICHED_TABLE are both {settings.raw}")
        return settings


@dataclass(frozen=True, slots=True)
class Result:
    """What a run did. `snapshot` is the raw table's that it has read."""

    settings: Settings
    snapshot: int
    ranges: Ranges
    counts: Counts

    def to_text(self) -> str:
        source, counts = f"{self.settings.raw} at snapshot {self.snapshot}", self.counts
        if counts == Counts():
            return f"{self.settings.enriched}: nothing new in {source}"
        fates = {
            "new": counts.inserted,
            "changed": counts.updated,
            "older or the same": counts.superseded,
            "without an id": counts.filtered,
        }
        told = " + ".join(f"{n:,} {words}" for words, n in fates.items() if n) or "none"
        again = f" + {counts.replayed:,} again" if counts.replayed else ""
        return f"{self.settings.enriched}: read {counts.read:,}{again} = {told}, from {source}"

    def to_json(self) -> Json:
        return {
            "table": self.settings.enriched,
            "raw": self.settings.raw,
            "snapshot": self.snapshot,
            "ranges": spans_to_json(self.ranges),
            "counts": self.counts.to_json(),
        }


def run(spark: SparkSession, settings: Settings,
        on_step: OnStep = lambda when, step: None) -> Result:  # fmt: skip
    """Merge what is new; without anything new, no commit is made."""
    enricher = function.load(settings.enrich)
    _require_catalogs(spark, settings)
    lake.require_iceberg(spark)
    source = LakeTable(spark, settings.raw)
    articles = raw.look(source)
    # Tried on no row: a function that does not fit is refused before anything is written.
    enricher(articles.rows(spark, {}))
    main = _enriched_table(spark, settings.enriched)
    before = _progress(main, articles)
    replayed = before is not None and raw.replayed_since(source, before.read_to)
    if not articles.due(before) and not replayed:
        return Result(settings, articles.snapshot, {}, Counts())
    committer = Committer(PIPELINE, main, {}, on_step, ledger.look_or_begin_anew)
    starts = {tp: span.start for tp, span in articles.positions.items()}
    progress = committer.claim(articles.origin, starts)
    merge = Merge(spark, articles, enricher, main)
    counts = Counts()
    if replayed:
        # First, since it is the snapshot that progress has read to that tells of replays.
        counts = committer.replay(merge.again(articles.read_before(progress))).counts
    outcome = committer.commit(articles.due(progress), merge.stage)
    return Result(settings, articles.snapshot, outcome.ranges, counts + outcome.counts)


def _progress(main: LakeTable, articles: raw.RawArticles) -> Progress | None:
    """Where the enriched table stands; None where it is new, or its progress was deleted."""
    progress = ledger.look_or_begin_anew(main, PIPELINE).progress
    if progress is not None:
        try:
            refuse_changed_source(progress.origin, articles.origin)
        except SourceChanged as error:
            raise SourceChanged(
                f"{error}. Or, if they are the same articles, have them all read again: ALTER "
                f"TABLE {main.name} UNSET TBLPROPERTIES ('{progress_key(PIPELINE)}')"
            ) from error
    return progress


def _enriched_table(spark: SparkSession, name: str) -> LakeTable:
    # Without partitions: each run adds articles of about one time, by which files are then told.
    properties = {**layout.TABLE_PROPERTIES, **layout.MODE_PROPERTIES["upsert"]}
    lake.create_table(spark, name, in_sql(ENRICHED), (), properties)
    table = LakeTable(spark, name)
    table.require_vectors()
    schema = spark.table(name).schema
    problems = [*lacking(schema, ENRICHED)]
    problems += [f"{each} is one too many" for each in schema.names if each not in ENRICHED]
    if problems:
        raise TableUnfit(
            f"{name} is no table of enriched articles: {', '.join(problems)}. Set ENRICHED_TABLE "
            f"to another, or make it yourself with the columns {in_sql(ENRICHED)}"
        )
    return table


def _require_catalogs(spark: SparkSession, settings: Settings) -> None:
    for table in (settings.raw, settings.enriched):
        catalog = table.split(".")[0]
        if spark.conf.get(f"spark.sql.catalog.{catalog}", None) is None:
            raise SpecError(
                f"no catalog {catalog} is configured for {table}. Set PIPELINE_SPEC to a "
                "pipeline.yaml whose table is in it, or give spark-submit "
                f"--conf spark.sql.catalog.{catalog}=org.apache.iceberg.spark.SparkCatalog and "
                "what belongs to it"
            )


def main(argv: Sequence[str] | None = None) -> int:
    """The command: its settings from the environment, one line on stdout, an exit code."""
    codes = "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())
    words = argparse.ArgumentParser(
        description="Merge what is new in the raw table into the enriched one, then end. Set by "
        "RAW_TABLE, ENRICHED_TABLE, ENRICH (module:function) and PIPELINE_SPEC.",
        epilog=f"exit codes:\n{codes}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    words.add_argument("--json", action="store_true", help="one JSON document on stdout")
    args = words.parse_args(argv)
    return exit_code_of(lambda: _told(args.json))


def _told(as_json: bool) -> int:
    result = _run_in_session(Settings.of(os.environ))
    print(json.dumps(result.to_json()) if as_json else result.to_text())
    return 0


def _run_in_session(settings: Settings) -> Result:
    # Before Spark takes its seconds to start: a wrong address is said at once.
    function.load(settings.enrich)
    if settings.spec is None:
        spark = SparkSession.builder.appName(f"oncelake {PIPELINE}").getOrCreate()
    else:
        reading = read_spec(settings.spec, os.environ)
        for warning in reading.warnings:
            print(f"warning: {warning}", file=sys.stderr)
        spark = open_session(reading.spec)
    with until_stopped(spark):
        return run(spark, settings)
