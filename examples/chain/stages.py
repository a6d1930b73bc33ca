"""The two stages as processes that can be killed, and the folder in which they live."""

from __future__ import annotations

import shutil
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from examples.chain import GOOD_TOPIC, LAKE_TOPIC, RAW_TOPIC
from examples.chain.check import Where
from oncelake.demo.run import PipelineRun
from oncelake.demo.tally import Event, line_of
from oncelake.samples.articles import SCHEMA_FILE

CATALOG, TABLE = "demo", "news.articles_raw"
SPEC = f"""\
pipeline: articles
source:
  bootstrap: {{bootstrap}}
  topic: {RAW_TOPIC}
decode:
  format: avro
  schema: {SCHEMA_FILE.name}
table:
  name: {CATALOG}.{TABLE}
  partition_by: [days(published_at)]
sinks:
  - kafka: {{{{topic: {GOOD_TOPIC}, key: id}}}}
trigger: 0 seconds
limits:
  max_offsets: {{max_offsets}}
checkpoint: checkpoint
catalog: {{{{type: jdbc, uri: 'jdbc:sqlite:catalog.db', warehouse: warehouse}}}}
spark:
  settings:
    # Each run lives for seconds: the JVM's second compiler would not pay for itself.
    spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1
    spark.sql.shuffle.partitions: 2
"""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Folder:
    """Where each thing of a chain is."""

    path: Path

    @property
    def spec(self) -> Path:
        return self.path / "pipeline.yaml"

    @property
    def schema(self) -> Path:
        return self.path / SCHEMA_FILE.name

    @property
    def catalog(self) -> Path:
        return self.path / "catalog.db"

    @property
    def kafka(self) -> Path:
        return self.path / "kafka"

    def where(self, bootstrap: str) -> Where:
        """What is to be checked in the end."""
        topics = (RAW_TOPIC, GOOD_TOPIC, LAKE_TOPIC)
        return Where(bootstrap, *topics, self.schema, self.catalog, (CATALOG, TABLE))

    def write_spec(self, bootstrap: str, max_offsets: int) -> None:
        shutil.copyfile(SCHEMA_FILE, self.schema)
        self.spec.write_text(SPEC.format(bootstrap=bootstrap, max_offsets=max_offsets))


@dataclass(frozen=True, slots=True)
class Stage:
    """A program that is given the spec; `--once` has it end when all is done. `batch` is what it
    says of each batch, `checkpoint` where Spark logs them."""

    name: str
    program: tuple[str, ...]
    batch: str
    checkpoint: str

    def run_to_the_end(self, folder: Folder, say: Say) -> None:
        """Do all that is there to do; anything but a good end raises."""
        with self._run(folder, "--once") as run:
            for event in run.events():
                _show(event, say)
            if code := run.ended():
                raise run.failed(f"ended with exit code {code}")

    def run_and_kill(self, folder: Folder, seconds: float, say: Say) -> bool:
        """Let it run, and kill -9 so long after the first batch that is new: most of what it
        does from then on, it does in the midst of another. Whether it was there, by Spark's logs.
        """
        with self._run(folder) as run:
            # The moment is meant to be arbitrary: nothing is waited for.
            kill = threading.Timer(seconds, run.kill)
            try:
                for event in run.events():
                    _show(event, say)
                    if kill.ident is None and self._is_new(event):
                        kill.start()
            finally:
                kill.cancel()
            if (code := run.ended()) != -signal.SIGKILL:
                raise run.failed(f"ended by itself with exit code {code}")
        logs = folder.path / self.checkpoint
        return _last(logs / "offsets") > _last(logs / "commits")

    def _is_new(self, event: Event) -> bool:
        """A replay that the table refuses is not: the other stage would get nothing of it."""
        return event["event"] == self.batch and event.get("outcome") != "skipped"

    def _run(self, folder: Folder, *words: str) -> PipelineRun:
        return PipelineRun(folder.spec, folder.path / f"{self.name}.log", self.program, words)


PIPELINE = Stage("pipeline", ("oncelake", "run"), "batch", "checkpoint")
FROM_LAKE = Stage("from_lake", ("examples.chain.from_lake",), "forwarded", "checkpoint_lake")


def _last(log: Path) -> int:
    """The newest batch that a log of Spark's knows."""
    names = (entry.name for entry in log.iterdir()) if log.is_dir() else ()
    return max((int(name) for name in names if name.isdigit()), default=-1)


def _show(event: Event, say: Say) -> None:
    if event["event"] == "sent":
        before = event["rows"] - event["fresh"]
        told = f"batch {event['batch']} into {event['topic']}: {event['fresh']:,} rows sent"
        say(f"{told}, {before:,} were there" if before else told)
    elif event["event"] == "forwarded":
        told = f"batch {event['batch']} into {event['topic']}"
        say(f"{told}: {event['rows']:,} rows of the table")
    elif event["event"] == "took_over":
        say(f"took over {event['topic']}")
    elif line := line_of(event):
        say(line)
