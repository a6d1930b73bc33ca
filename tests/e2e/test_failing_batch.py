"""A batch that fails is tried again, and then told with its offsets and how to see it fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from oncelake.cli.offsets import in_words, parse
from oncelake.commit import Step
from oncelake.errors import TerminalError
from oncelake.events import Event
from oncelake.local.kafka import LocalKafka
from oncelake.model import offsets_in
from oncelake.ops.trial import trial
from oncelake.query import RETRY_SECONDS
from oncelake.samples import articles
from oncelake.spec import read_spec
from tests.site import Site

DIVIDING = "transform: SELECT *, 1 / (unix_micros(published_at) - {}) AS x FROM rows\n"


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oncelake.query.RETRY_SECONDS", (0.0,) * len(RETRY_SECONDS))


def retries(told: list[Event]) -> list[int]:
    return [event.facts["failures"] for event in told if event.name == "retrying"]


def test_a_transform_that_fails_is_told_with_the_record_it_fails_by(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Only the first article was published at that very moment."""
    site = Site.make(kafka, tmp_path, more=DIVIDING.format(articles.BASE_MICROS))
    site.produce(100)
    told: list[Event] = []
    named = r"batch 0 \(faults\.\d+\[0\] \[0, \d+\), .*failed 4 times.*DIVIDE_BY"
    with pytest.raises(TerminalError, match=named) as failure:
        site.run_here(spark, tell=told.append)
    assert retries(told) == [1, 2, 3]
    assert spark.table(site.table).count() == 0
    (logged,) = [record for record in caplog.records if record.name == "oncelake.query"]
    assert "Traceback" in logged.getMessage()
    assert "DIVIDE_BY_ZERO" in logged.getMessage()
    offsets = re.search(r"--offsets '(.*?)'", str(failure.value))
    assert offsets is not None
    found = trial(spark, read_spec(site.spec, {}).spec, parse(offsets[1]))
    assert found.fails is not None
    assert offsets_in(found.fails) == 1
    assert "DIVIDE_BY_ZERO" in in_words(found)
    site.spec.write_text(site.spec.read_text().replace("1 / (", "1 / (1 + "))
    mended = trial(spark, read_spec(site.spec, {}).spec, parse(offsets[1]))
    assert mended.fails is None
    assert (mended.read, mended.good, mended.reasons) == (100, 99, {})
    assert "read 100: 99 good" in in_words(mended)


def test_what_passes_at_a_later_try_is_no_error(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    site = Site.make(kafka, tmp_path)
    site.produce(100)
    left = [1, 2, 3]

    def lost_executor(when: str, step: Step) -> None:
        if (when, step) == ("after", Step.STAGE) and left:
            left.pop()
            raise RuntimeError("an executor was lost")

    told = site.run_here(spark, on_step=lost_executor)
    assert retries(told) == [1, 2, 3]
    site.assert_exactly_once(spark)


def strict(rows: DataFrame) -> DataFrame:
    """A transform with a Python function that cannot take one of the articles."""

    # Without types: Spark would take them for those of columns of Arrow.
    def checked(micros):  # type: ignore[no-untyped-def]
        if micros == articles.BASE_MICROS:
            raise ValueError("the first one")
        return micros

    return rows.withColumn("x", F.udf(checked, "long")(F.expr("unix_micros(published_at)")))


@pytest.mark.faults
def test_the_record_that_a_python_function_fails_by_is_found(
    kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    site = Site.make(kafka, tmp_path, more=f"transform: {__name__}:strict\n")
    site.produce(100)
    told: list[Event] = []
    with pytest.raises(
        TerminalError, match=r"ValueError: the first one \(\S+, line \d+, in chec"
    ) as e:
        site.run_here(spark, tell=told.append)
    assert "Traceback" not in str(e.value)
    assert all("ValueError" in event.facts["why"] for event in told if event.name == "retrying")
    offsets = re.search(r"--offsets '(.*?)'", str(e.value))
    assert offsets is not None
    found = trial(spark, read_spec(site.spec, {}).spec, parse(offsets[1]))
    assert found.fails is not None
    assert offsets_in(found.fails) == 1
    assert "ValueError: the first one" in in_words(found)
