"""A batch's ranges are read from Spark's offset log, as Spark 4.1 writes it."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from oncelake.errors import CheckpointUnusable
from oncelake.model import Span, TopicPartition
from oncelake.source import OffsetLog

METADATA = '{"batchWatermarkMs":0,"batchTimestampMs":1,"conf":{}}'


def _log(folder: Path, **entries: str) -> OffsetLog:
    for name, text in entries.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return OffsetLog(cast(SparkSession, None), str(folder))


def _entry(offsets: str) -> str:
    return f"v1\n{METADATA}\n{offsets}"


def test_the_first_batch_begins_where_the_source_began(tmp_path: Path) -> None:
    log = _log(tmp_path, sources__0__0='\0v1\n{"t":{"0":7}}', offsets__0=_entry('{"t":{"0":9}}'))
    assert log.ranges(0) == {TopicPartition("t", 0): Span(7, 9)}


def test_a_batch_begins_where_the_one_before_it_ended(tmp_path: Path) -> None:
    log = _log(
        tmp_path,
        offsets__4=_entry('{"t":{"0":9,"1":3}}'),
        offsets__5=_entry('{"t":{"0":12,"1":3,"2":5}}'),
    )
    assert log.ranges(5) == {
        TopicPartition("t", 0): Span(9, 12),
        TopicPartition("t", 1): Span(3, 3),
        TopicPartition("t", 2): Span(0, 5),
    }


@pytest.mark.parametrize(
    "text",
    ["", "v1\n", "garbage", _entry("not json"), _entry('{"t":[1]}'), _entry('{"t":{"0":1}}\n{}')],
    ids=["empty", "cut", "garbage", "no JSON", "no offsets", "two sources"],
)
def test_an_entry_that_names_no_offsets_is_refused(tmp_path: Path, text: str) -> None:
    log = _log(tmp_path, sources__0__0='\0v1\n{"t":{"0":7}}', offsets__0=text)
    with pytest.raises(CheckpointUnusable, match="move the checkpoint"):
        log.ranges(0)


def test_a_missing_entry_is_refused_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(CheckpointUnusable, match="offsets/3"):
        _log(tmp_path).ranges(3)
