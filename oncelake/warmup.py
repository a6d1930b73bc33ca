"""Runs that load the classes a pipeline needs: `python -m oncelake.warmup OPTION`.

They are real ones, of an append and of an upsert, from a broker of their own: what they load is
what every later run will.
"""

from __future__ import annotations

import signal
import sys
import tempfile
from importlib import resources
from pathlib import Path

from oncelake import pipeline
from oncelake.local.kafka import LocalKafka, create_topic
from oncelake.samples import articles
from oncelake.samples.producer import Target, produce
from oncelake.session import open_session
from oncelake.spec import PipelineSpec, read_spec

TOPIC = "articles"
ARTICLES = articles.Load(count=200, corrupt=0.05, duplicates=0.05)
SPEC = """\
pipeline: warm-up
source: {{bootstrap: '{bootstrap}', topic: {topic}}}
decode: {{format: avro, schema: article.avsc}}
table: {{name: demo.news.{name}}}
checkpoint: checkpoint-{name}
catalog: {{type: jdbc, uri: 'jdbc:sqlite:catalog.db', warehouse: warehouse}}
spark:
  master: local[1]
  settings:
    spark.driver.extraJavaOptions: '{option}'
    spark.sql.shuffle.partitions: 1
"""
UPSERT = """\
mode: upsert
key: id
order: published_at
"""


def main(option: str) -> None:
    with tempfile.TemporaryDirectory() as scratch, LocalKafka(Path(scratch)) as kafka:
        create_topic(kafka.bootstrap, TOPIC, partitions=2)
        produce(articles.events(ARTICLES), Target(kafka.bootstrap, TOPIC))
        scratch_option = f'{option} -Djava.io.tmpdir="{scratch}"'
        specs = [
            _spec(Path(scratch), kafka.bootstrap, scratch_option, name, more)
            for name, more in (("appended", ""), ("upserted", UPSERT))
        ]
        spark = open_session(specs[0])
        for spec in specs:
            pipeline.start(spark, spec, pipeline.Running(spec.checkpoint, once=True)).wait()
        spark.stop()


def _spec(folder: Path, bootstrap: str, option: str, name: str, more: str) -> PipelineSpec:
    schema = resources.files("oncelake.samples").joinpath("article.avsc").read_text()
    (folder / "article.avsc").write_text(schema)
    text = SPEC.format(bootstrap=bootstrap, topic=TOPIC, name=name, option=option)
    path = folder / f"{name}.yaml"
    path.write_text(text + more)
    return read_spec(path, {}).spec


if __name__ == "__main__":
    # Where it takes too long it is told to end: the broker is to be stopped then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    main(*sys.argv[1:])
