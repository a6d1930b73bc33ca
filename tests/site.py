"""A pipeline of its own on the shared broker: a topic, a catalog, a spec, and the proof."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Self

import psutil
from pyspark.sql import SparkSession

from oncelake import events, pipeline
from oncelake.commit import OnStep
from oncelake.demo.run import PipelineRun
from oncelake.demo.tally import Event
from oncelake.local.kafka import LocalKafka, create_topic
from oncelake.ops.audit import Names, Report, audit
from oncelake.samples import articles
from oncelake.samples.producer import Target, produce
from oncelake.spec import read_spec
from tests import oracle

PARTITIONS = 3
_numbers = itertools.count(1)

SPEC = """\
pipeline: articles
source:
  bootstrap: {bootstrap}
  topic: {topic}
decode:
  format: avro
  schema: article.avsc
table:
  name: {catalog}.news.articles
  partition_by: [days(published_at)]
trigger: 0 seconds
limits:
  max_offsets: {max_offsets}
checkpoint: checkpoint
catalog: {catalog_settings}
spark:
  master: local[2]
  settings:
    # A JVM that lives for seconds gets nothing back for the second compiler's work.
    spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1
    spark.sql.shuffle.partitions: 2
"""
JDBC = "{type: jdbc, uri: 'jdbc:sqlite:catalog.db', warehouse: warehouse}"
UPSERT = """\
mode: upsert
key: id
order: published_at
"""


@dataclass(frozen=True)
class Site:
    """Where one test's pipeline lives. `rest`: where its catalog is asked, if that is a server."""

    folder: Path
    bootstrap: str
    topic: str
    catalog: str
    upsert: bool = False
    rest: str = ""

    @classmethod
    def make(cls, kafka: LocalKafka, folder: Path, max_offsets: int = 1000,
             upsert: bool = False, more: str = "", rest: str = "") -> Self:  # fmt: skip
        """`more` are further lines of its spec."""
        number = next(_numbers)
        site = cls(folder, kafka.bootstrap, f"faults.{number}", f"faults{number}", upsert, rest)
        create_topic(site.bootstrap, site.topic, partitions=PARTITIONS)
        schema = resources.files("oncelake.samples").joinpath("article.avsc").read_text()
        (folder / "article.avsc").write_text(schema)
        text = SPEC.format(
            bootstrap=site.bootstrap,
            topic=site.topic,
            catalog=site.catalog,
            max_offsets=max_offsets,
            catalog_settings=f"{{type: rest, uri: '{rest}'}}" if rest else JDBC,
        )
        site.spec.write_text(text + (UPSERT if upsert else "") + more)
        return site

    @property
    def spec(self) -> Path:
        return self.folder / "pipeline.yaml"

    @property
    def table(self) -> str:
        return f"{self.catalog}.news.articles"

    @property
    def quarantine(self) -> str:
        return f"{self.table}_quarantine"

    @property
    def key(self) -> tuple[str, ...]:
        return ("id",) if self.upsert else ()

    def produce(self, count: int, seed: int = 1) -> None:
        load = articles.Load(count=count, corrupt=0.01, duplicates=0.02, late=0.01, seed=seed)
        produce(articles.events(load), Target(self.bootstrap, self.topic))

    @property
    def checkpoint(self) -> Path:
        return self.folder / "checkpoint"

    def run_here(self, spark: SparkSession, max_offsets: int | None = None,
                 on_step: OnStep = lambda when, step: None,
                 tell: events.Tell = lambda event: None) -> list[events.Event]:  # fmt: skip
        """One run to the end in this process, on the shared session."""
        self.use_catalog(spark)
        environ = {"ONCELAKE_LIMITS_MAX_OFFSETS": str(max_offsets)} if max_offsets else {}
        spec = read_spec(self.spec, environ).spec
        told: list[events.Event] = []

        def hear(event: events.Event) -> None:
            told.append(event)
            tell(event)

        running = pipeline.Running(spec.checkpoint, once=True, tell=hear, on_step=on_step)
        pipeline.start(spark, spec, running).wait()
        return told

    def run(self, *words: str, program: tuple[str, ...] = ("oncelake", "run")) -> PipelineRun:
        return PipelineRun(self.spec, self.folder / "run.log", program=program, words=words)

    def run_to_the_end(self) -> list[Event]:
        """What `oncelake run --once` says, and it must say it with exit code 0."""
        with self.run("--once") as run:
            told = list(run.events())
            assert run.ended() == 0, run.failed("failed")
        return told

    def run_halted(self, point: str, occurrence: int, *words: str) -> None:
        """Run up to a point of the protocol, then kill -9 from outside, JVM and all."""
        program, halt = ("tests.faults.driver",), ("--halt", point, "--occurrence", str(occurrence))
        with self.run(*halt, *words, program=program) as run:
            wait_for(run, "halted")
            kill(run)

    def use_catalog(self, spark: SparkSession) -> None:
        prefix = f"spark.sql.catalog.{self.catalog}"
        jdbc = {
            "type": "jdbc",
            "uri": f"jdbc:sqlite:{self.folder}/catalog.db",
            "warehouse": f"{self.folder}/warehouse",
            "jdbc.schema-version": "V1",
        }
        spark.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
        settings = {"type": "rest", "uri": self.rest} if self.rest else jdbc
        for key, value in (settings | {"cache-enabled": "false"}).items():
            spark.conf.set(f"{prefix}.{key}", value)

    def audit(self, spark: SparkSession) -> Report:
        self.use_catalog(spark)
        kafka = {"bootstrap.servers": self.bootstrap}
        sides = {"quarantined": self.quarantine}
        return audit(spark, Names(self.table, "articles", sides, self.key), kafka)

    def assert_exactly_once(self, spark: SparkSession) -> None:
        """Our audit and an oracle that shares nothing with us must both agree."""
        report = self.audit(spark)
        assert report.verdict == "clean", report
        oracle.assert_exactly_once(self.expected(), self.contents())

    def assert_nothing_twice(self, when: str) -> None:
        """Whatever is there so far, as the oracle reads it."""
        held = self.contents()
        assert held.rows == len(held.good) + len(held.bad), f"a record twice {when}"
        keys = {article.id for article in held.good}
        assert not self.upsert or len(keys) == len(held.good), f"a key twice {when}"

    def expected(self) -> oracle.Contents:
        """Every record or, of an upsert, of each article the latest version."""
        schema = oracle.read_schema(self.folder / "article.avsc")
        every = oracle.expected(self.bootstrap, self.topic, schema)
        return oracle.latest(every) if self.upsert else every

    def contents(self) -> oracle.Contents:
        name = oracle.OF_THE_SERVER if self.rest else self.catalog
        return oracle.actual(self.folder / "catalog.db", name, self.table, self.quarantine)


def wait_for(run: PipelineRun, name: str, times: int = 1) -> Event:
    """The event `name` at its n-th occurrence; a run that ends before it is a failure."""
    for event in run.events():
        if event["event"] == name:
            times -= 1
            if times == 0:
                return event
    raise run.failed(f"ended before {name!r}")


def kill(run: PipelineRun) -> None:
    """kill -9 to the whole group, and make sure that the JVM was in it and is gone."""
    family = psutil.Process(run.pid).children(recursive=True)
    assert any("java" in process.name() for process in family), "no JVM to kill"
    run.kill()
    # A JVM's memory takes the kernel a moment to give back.
    _, alive = psutil.wait_procs(family, timeout=30)
    assert not alive, f"outlived kill -9: {alive}"
