"""What every benchmark stands on: a broker with a topic of articles, and one Spark session.

All of it lies in one temporary folder, and none of it is left afterwards.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from rich.console import Console

from oncelake.local.kafka import LocalKafka
from oncelake.meter import Meter
from oncelake.samples import articles, producer
from oncelake.session import open_session
from oncelake.spec import (
    CatalogSpec,
    DecodeSpec,
    LimitsSpec,
    PipelineSpec,
    SourceSpec,
    SparkSpec,
    TableSpec,
)

TOPIC = "articles.raw.v1"
PARTITIONS = 6
CATALOG, NAMESPACE = "bench", "news"
# Spark keeps a query's Kafka clients, with all they have fetched, for five minutes after it ends.
# Here one query follows another: some hundred megabytes of each would still fill the heap.
SETTINGS = {
    f"spark.kafka.consumer.{cache}.{key}": value
    for cache in ("cache", "fetchedData.cache")
    for key, value in (("timeout", "5s"), ("evictorThreadRunInterval", "1s"))
}


@dataclass(frozen=True, slots=True)
class Load:
    """How many records the topic holds, and how many offsets a batch may read of it.

    `duplicates`: the share of them that are later versions of an article.
    """

    rows: int
    batch: int
    duplicates: float = 0.0

    @property
    def articles(self) -> int:
        return articles.Load(self.rows, self.duplicates).expected().articles


@dataclass(frozen=True, slots=True)
class Stack:
    """`spec` is of the whole stack; `fresh` gives one with a table and checkpoint of its own."""

    spark: SparkSession
    spec: PipelineSpec
    folder: Path
    load: Load

    def fresh(self, name: str, partition_by: tuple[str, ...] = ()) -> PipelineSpec:
        table = TableSpec(f"{CATALOG}.{NAMESPACE}.{name}", partition_by=partition_by)
        checkpoint = str(self.folder / "checkpoints" / name)
        return replace(self.spec, name=name, table=table, checkpoint=checkpoint)

    def remove(self, spec: PipelineSpec) -> None:
        """Drop a run's tables with their files, and its checkpoint."""
        for table in (spec.table.name, spec.table.quarantine):
            self.spark.sql(f"DROP TABLE IF EXISTS {table} PURGE")
        shutil.rmtree(spec.checkpoint, ignore_errors=True)

    def collect_garbage(self) -> None:
        """What one run leaves behind is not to be cleared away in the next one's time."""
        self.spark._jvm.System.gc()  # type: ignore[union-attr]

    def cpu_seconds(self) -> float:
        """Processor time so far, of the session's JVM and this process together."""
        gateway = self.spark.sparkContext._gateway
        assert gateway is not None
        processes = (psutil.Process(), psutil.Process(gateway.proc.pid))
        return sum(sum(process.cpu_times()[:2]) for process in processes)

    def worker_bytes(self) -> int:
        """Resident memory of the largest of Spark's Python workers."""
        gateway = self.spark.sparkContext._gateway
        assert gateway is not None
        below = psutil.Process(gateway.proc.pid).children(recursive=True)
        return max((process.memory_info().rss for process in below), default=0)

    def used_heap(self) -> int:
        """Bytes of live objects in the driver's JVM."""
        # The first collection lets Spark's cleaner drop what the second can then free.
        self.collect_garbage()
        self.collect_garbage()
        runtime = self.spark._jvm.Runtime.getRuntime()  # type: ignore[union-attr]
        return int(runtime.totalMemory() - runtime.freeMemory())


@contextmanager
def stack(load: Load, out: Console) -> Iterator[Stack]:
    with TemporaryDirectory(prefix="oncelake-bench-") as name:
        folder = Path(name)
        with LocalKafka(folder / "kafka") as kafka:
            fill(kafka.bootstrap, load, out)
            spec = _spec(kafka.bootstrap, folder, load.batch)
            spark = open_session(spec)
            try:
                yield Stack(spark, spec, folder, load)
            finally:
                # A signal to the whole group has ended the JVM too: then nothing is left to stop,
                # and its complaint must not hide why we end.
                with suppress(Py4JError):
                    spark.stop()


def fill(bootstrap: str, load: Load, out: Console) -> None:
    producer.ensure_topic(bootstrap, TOPIC, PARTITIONS)
    with Meter(out, "articles produced", load.rows) as meter:
        target = producer.Target(bootstrap, TOPIC)
        events = articles.events(articles.Load(load.rows, load.duplicates))
        producer.produce(events, target, meter.at)


def _spec(bootstrap: str, folder: Path, batch: int) -> PipelineSpec:
    schema = articles.SCHEMA_FILE
    return PipelineSpec(
        name="bench",
        source=SourceSpec(bootstrap, TOPIC),
        decode=DecodeSpec("avro", schema, schema.read_text()),
        table=TableSpec(f"{CATALOG}.{NAMESPACE}.articles"),
        limits=LimitsSpec(max_offsets=batch),
        checkpoint=str(folder / "checkpoints" / "bench"),
        catalog=CatalogSpec("jdbc", f"jdbc:sqlite:{folder}/catalog.db", f"{folder}/warehouse"),
        spark=SparkSpec(settings=SETTINGS),
        log_level="ERROR",
    )
