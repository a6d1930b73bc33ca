"""Merge the new articles of the raw table into the enriched one: run it as often as you like.

    python jobs/spark/upsert_enriched.py
    spark-submit … jobs/spark/upsert_enriched.py

RAW_TABLE, ENRICHED_TABLE   which tables (demo.news.articles_raw, demo.news.articles_enriched)
ENRICH                      module:function that enriches (oncelake.enrich.default:enrich)
PIPELINE_SPEC               whose catalog and Spark settings to use: articles_raw.yaml beside this
                            file or, under spark-submit, as Spark is set up
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from oncelake.enrich.job import main

if __name__ == "__main__":
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # which spark-submit sets
        os.environ.setdefault("PIPELINE_SPEC", str(Path(__file__).with_name("articles_raw.yaml")))
    sys.exit(main())
