"""Merge the new articles of the raw table into the enriched one: run it as often as you like.

    PIPELINE_SPEC=pipeline.yaml python jobs/spark/upsert_enriched.py
    spark-submit jobs/spark/upsert_enriched.py

RAW_TABLE, ENRICHED_TABLE   which tables (demo.news.articles_raw, demo.news.articles_enriched)
ENRICH                      module:function that enriches (oncelake.enrich.default:enrich)
PIPELINE_SPEC               whose catalog and Spark settings to use; without it, Spark's own
"""

from __future__ import annotations

import sys

from oncelake.enrich.job import main

if __name__ == "__main__":
    sys.exit(main())
