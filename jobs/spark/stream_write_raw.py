"""Articles from Kafka into the raw table: of each the latest version, exactly once.

    python jobs/spark/stream_write_raw.py           or: spark-submit … (see README.md)

KAFKA_BOOTSTRAP_SERVERS, KAFKA_TOPIC, ICEBERG_TABLE and CHECKPOINT_LOCATION set what they say; all
else is in articles_raw.yaml beside this file. Words after the name go to `oncelake run`: --once.
"""

from __future__ import annotations

import sys
from pathlib import Path

from oncelake.cli import main

SPEC = Path(__file__).with_name("articles_raw.yaml")

if __name__ == "__main__":
    sys.exit(main(["run", str(SPEC), *sys.argv[1:]]))
