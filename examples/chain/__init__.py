"""Two chains on one machine, killed at random: Kafka → Spark → Kafka, and Kafka → Iceberg → Kafka.

`from_lake` is what to copy; `stages` are the processes, `story` is when each is killed. `check`
reads what came out with clients that share nothing with oncelake, and `compare` is pure: PASS or
FAIL.
"""

RAW_TOPIC, GOOD_TOPIC, LAKE_TOPIC = "articles.raw.v1", "articles.good.v1", "articles.lake.v1"
