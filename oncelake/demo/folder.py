"""The folder of a demo: made fresh, and only what a demo made is ever removed."""

from __future__ import annotations

import json
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

from oncelake.errors import TerminalError
from oncelake.local.kafka import LocalKafka
from oncelake.samples.articles import SCHEMA_FILE

MARKER = ".made-by-oncelake-demo"
CATALOG, NAMESPACE, TABLE = "demo", "news", "articles_raw"
TOPIC = "articles.raw.v1"


class FolderTaken(TerminalError):
    pass


@dataclass(frozen=True, slots=True)
class DemoFolder:
    """Where each thing of a demo is."""

    path: Path

    @property
    def spec(self) -> Path:
        return self.path / "pipeline.yaml"

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @property
    def catalog(self) -> Path:
        return self.path / "catalog.db"

    @property
    def warehouse(self) -> Path:
        return self.path / "warehouse"

    @property
    def stack(self) -> Path:
        return self.path / "kafka"

    @property
    def log(self) -> Path:
        return self.path / "run.log"

    @property
    def audit_log(self) -> Path:
        return self.path / "audit.log"

    def make_fresh(self) -> None:
        """An empty folder with our marker; refuses one that holds what no demo made."""
        if self.path.is_dir() and any(self.path.iterdir()):
            if not (self.path / MARKER).exists():
                raise FolderTaken(
                    f"{self.path} holds files that no demo made, so the demo does not replace it. "
                    "Type: oncelake demo --dir with another folder"
                )
            # A demo that was killed may have left its broker running.
            LocalKafka(self.stack).stop()
            self._remove()
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / MARKER).write_text("`oncelake demo` replaces this folder at each run.\n")

    def _remove(self) -> None:
        """Under another name: a demo that is ended meanwhile leaves no half of a folder in the way
        of the next, nor does a program that still writes there. What is left the next removes."""
        self.path.rename(self.path.with_name(f"{self.path.name}.removed-{uuid.uuid4().hex[:8]}"))
        for former in self.path.parent.glob(f"{self.path.name}.removed-*"):
            shutil.rmtree(former, ignore_errors=True)

    def write_spec(self, bootstrap: str, max_offsets: int) -> None:
        shutil.copyfile(SCHEMA_FILE, self.path / SCHEMA_FILE.name)
        self.spec.write_text(self._spec(bootstrap, max_offsets))

    def spark_knows(self, batch: int) -> bool:
        """Whether Spark's own log has the batch as done."""
        return (self.checkpoint / "commits" / str(batch)).exists()

    def delete_checkpoint(self) -> None:
        shutil.rmtree(self.checkpoint)

    def _spec(self, bootstrap: str, max_offsets: int) -> str:
        # A JSON string is a YAML string too, whatever the path holds.
        catalog, warehouse = (json.dumps(text) for text in (
            f"jdbc:sqlite:{self.catalog}", str(self.warehouse)))  # fmt: skip
        return f"""\
pipeline: articles
source:
  bootstrap: {bootstrap}
  topic: {TOPIC}
decode:
  format: avro
  schema: {SCHEMA_FILE.name}
table:
  name: {CATALOG}.{NAMESPACE}.{TABLE}
  partition_by: [days(published_at)]
trigger: 0 seconds
limits:
  max_offsets: {max_offsets}
checkpoint: {json.dumps(str(self.checkpoint))}
catalog:
  type: jdbc
  uri: {catalog}
  warehouse: {warehouse}
spark:
  settings:
    # Each run of the demo lives for seconds: the JVM's second compiler would not pay for itself.
    spark.driver.extraJavaOptions: -XX:TieredStopAtLevel=1
"""
