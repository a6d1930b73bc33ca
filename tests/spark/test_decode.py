"""Text anywhere in a record must be UTF-8: other engines could not read the table otherwise."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from oncelake import lake
from oncelake.decode import REASON, RECORD, Decoder
from oncelake.spec import DecodeSpec

PERSON = {
    "type": "record", "name": "Person", "fields": [
        {"name": "name", "type": ["null", "string"]},
        {"name": "born", "type": "int"},
    ],
}  # fmt: skip
SCHEMA = {
    "type": "record", "name": "Article", "namespace": "news", "fields": [
        {"name": "id", "type": "string"},
        {"name": "author", "type": PERSON},
        {"name": "editor", "type": ["null", "Person"]},
        {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}},
        {"name": "others", "type": {"type": "array", "items": "news.Person"}},
        {"name": "words", "type": {"type": "map", "values": {"type": "array", "items": "string"}}},
        {"name": "length", "type": ["null", "long", "string"]},
        {"name": "sizes", "type": {"type": "map", "values": "int"}},
        {"name": "pages", "type": {"type": "array", "items": "int"}},
    ],
}  # fmt: skip
BAD = "<BAD>"
NOBODY = {"name": None, "born": 1}
GOOD: dict[str, Any] = {
    "id": "a", "author": {"name": "é", "born": 1}, "editor": None, "tags": ["b", None],
    "others": [NOBODY], "words": {"c": ["d", "😀"]}, "length": 5, "sizes": {"e": 1}, "pages": [1],
}  # fmt: skip
PLACES = [
    ("id", BAD),
    ("author", {"name": BAD, "born": 1}),
    ("editor", {"name": BAD, "born": 1}),
    ("tags", ["a", None, BAD]),
    ("others", [NOBODY, {"name": BAD, "born": 1}]),
    ("words", {"a": ["b"], BAD: []}),
    ("words", {"a": ["b"], "c": ["d", BAD]}),
    ("length", BAD),
    ("sizes", {"a": 1, BAD: 2}),
]


def _bytes(record: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(SCHEMA), record)
    return out.getvalue().replace(BAD.encode(), b"<\xff\xfe\xfd>")


@pytest.fixture(scope="module")
def decoder(spark: SparkSession) -> Decoder:
    spec = DecodeSpec("avro", Path("article.avsc"), json.dumps(SCHEMA), "")
    return Decoder(spec, lake.utf8_check(spark))


def test_text_that_is_no_utf8_is_found_wherever_it_is(
    spark: SparkSession, decoder: Decoder
) -> None:
    values = [(_bytes({**GOOD, field: value}),) for field, value in PLACES]
    rows = decoder.decode(spark.createDataFrame(values, "value binary").coalesce(1))
    assert [row[0] for row in rows.select(REASON).collect()] == [
        f"{field} {'is' if field == 'id' else 'holds text that is'} not valid UTF-8"
        for field, _ in PLACES
    ]


def test_good_text_empty_and_null_is_taken(spark: SparkSession, decoder: Decoder) -> None:
    empty = {**GOOD, "tags": [], "others": [], "words": {}, "sizes": {}, "length": None}
    named = {**GOOD, "editor": NOBODY, "length": "long"}
    values = [(_bytes(record),) for record in (GOOD, empty, named)]
    rows = decoder.decode(spark.createDataFrame(values, "value binary"))
    assert [row[0] for row in rows.select(REASON).collect()] == [None] * 3
    assert rows.select(f"{RECORD}.author.name").first() == ("é",)


def test_it_is_decoded_once_though_it_is_looked_through(
    spark: SparkSession, decoder: Decoder
) -> None:
    rows = spark.createDataFrame([(b"x",)], "value binary").repartition(1)
    good = decoder.decode(rows).filter(F.isnull(REASON)).select(f"{RECORD}.*")
    plan = str(good._jdf.queryExecution().executedPlan().toString())
    assert plan.count("from_avro(") == 1
