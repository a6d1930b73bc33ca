"""A small job that loads the classes a pipeline needs: `python -m oncelake.local.warmup OPTION`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.avro.functions import from_avro, to_avro

from oncelake.local import classes

SCHEMA = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'


def main(option: str) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        spark = _session(Path(scratch), option)
        spark.sql("CREATE NAMESPACE demo.n")
        spark.sql("CREATE TABLE demo.n.t (id bigint, at timestamp) USING iceberg")
        rows = spark.range(10).selectExpr("struct(id) AS r").select(to_avro("r").alias("bytes"))
        decoded = rows.select(from_avro("bytes", SCHEMA).alias("r"))
        decoded.selectExpr("r.id", "current_timestamp() AS at").writeTo("demo.n.t").append()
        spark.sql("SELECT id, max(at) FROM demo.n.t WHERE id > 3 GROUP BY id").collect()
        _stream(spark.readStream.table("demo.n.t"), Path(scratch))
        spark.stop()


def _session(scratch: Path, option: str) -> SparkSession:
    catalog = "spark.sql.catalog.demo"
    settings = {
        "spark.driver.extraClassPath": classes.class_path(),
        "spark.driver.extraJavaOptions": f"{option} -Djava.io.tmpdir={scratch}",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        catalog: "org.apache.iceberg.spark.SparkCatalog",
        f"{catalog}.type": "jdbc",
        f"{catalog}.uri": f"jdbc:sqlite:{scratch}/catalog.db",
        f"{catalog}.warehouse": f"{scratch}/warehouse",
        f"{catalog}.jdbc.schema-version": "V1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
    }
    builder = SparkSession.builder.master("local[1]").appName("oncelake warm-up")
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _stream(rows: DataFrame, scratch: Path) -> None:
    def count(batch: DataFrame, _: int) -> None:
        batch.count()

    query = rows.writeStream.foreachBatch(count).option("checkpointLocation", f"{scratch}/chk")
    query.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
