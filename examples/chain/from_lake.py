"""An Iceberg table as a stream, into a Kafka topic: each row once, however often this is killed.

    python -m examples.chain.from_lake pipeline.yaml --once

The table is the one that the spec names. With --json it tells a JSON event a line.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

import oncelake
from examples.chain import LAKE_TOPIC
from oncelake.errors import exit_code_of
from oncelake.spec import read_spec

FILES = "streaming-max-files-per-micro-batch"


class Told(StreamingQueryListener):
    """A line for each batch that Spark has logged as done."""

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """It is told by `main`, once the sink has taken over."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        done = event.progress
        tell("forwarded", batch=done.batchId, rows=done.numInputRows, topic=LAKE_TOPIC)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing new in the table."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """It is told by `main`."""


def tell(name: str, **facts: object) -> None:
    print(json.dumps({"event": name, **facts}), flush=True)


def main() -> int:
    words = argparse.ArgumentParser(prog="examples.chain.from_lake", description=__doc__)
    words.add_argument("spec", type=Path, help="the spec of the pipeline that fills the table")
    words.add_argument("--json", action="store_true", help="one JSON event a line")
    words.add_argument("--once", action="store_true", help="send what is there now, then stop")
    args = words.parse_args()
    spec = read_spec(args.spec, {}).spec
    spark = oncelake.spark(args.spec)
    if args.json:
        spark.streams.addListener(Told())
    checkpoint = str(args.spec.absolute().parent / "checkpoint_lake")
    bootstrap = spec.source.bootstrap
    # Without --once it is about to be killed: with many small batches that finds one begun.
    files = "8" if args.once else "1"
    stream = spark.readStream.format("iceberg").option(FILES, files).load(spec.table.name)
    query = oncelake.write(stream, kafka=LAKE_TOPIC, key="id", bootstrap=bootstrap,
                           checkpoint=checkpoint, once=args.once)  # fmt: skip
    if args.json:
        tell("took_over", topic=LAKE_TOPIC)
    query.wait()
    # Its end delivers what listeners have yet to be told.
    spark.stop()
    if args.json:
        tell("stopped", reason="all that was there is sent")
    return 0


if __name__ == "__main__":
    sys.exit(exit_code_of(main))
