"""The function that enriches: what it must give, and what the one that is built in does give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from oncelake.enrich import job
from oncelake.enrich.default import enrich
from oncelake.enrich.function import DEFAULT
from oncelake.errors import TerminalError
from tests.spark.enriching import Newsdesk, Sent, letters


@pytest.fixture
def versions(spark: SparkSession) -> Newsdesk:
    return Newsdesk(spark, "append")


@pytest.mark.faults
def test_another_function_and_deleted_progress_enrich_all_anew(
    versions: Newsdesk, warehouse: Path
) -> None:
    versions.send(Sent(0, "a", 1, "Growth is good"), Sent(0, "b", 1))
    versions.run()
    versions.forget()
    default = replace(versions.settings, enrich=DEFAULT)
    assert job.run(versions.spark, default).counts.updated == 2
    rows = versions.contents(warehouse)
    assert [(row["sentiment_label"], row["version"]) for row in rows] == [
        ("positive", 2), ("neutral", 2),
    ]  # fmt: skip


def no_columns(articles: DataFrame) -> DataFrame:
    return articles


def wrong_type(articles: DataFrame) -> DataFrame:
    return letters(articles).withColumn("entities", F.lit("a, b"))


def no_frame(articles: DataFrame) -> None:
    return None


def raising(articles: DataFrame) -> DataFrame:
    return articles.select("no_such_column")


def losing(articles: DataFrame) -> DataFrame:
    return letters(articles).filter("id <> 'a'")


def doubling(articles: DataFrame) -> DataFrame:
    return letters(articles.union(articles))


def breaking(articles: DataFrame) -> DataFrame:
    score = F.udf(lambda title: 1 / title.count("A"), "float")
    return letters(articles).withColumn("sentiment_score", score("title"))


@pytest.mark.faults
@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("no_columns", "sentiment_score is missing, sentiment_label is missing"),
        ("wrong_type", r"entities is string and not array<string>"),
        ("no_frame", "gave NoneType and not a DataFrame"),
        ("raising", "no_such_column"),
        ("losing", "was given 2 articles and gave 1 rows with 1 ids"),
        ("doubling", "was given 2 articles and gave 4 rows with 2 ids"),
        ("breaking", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_function_that_does_not_fit_writes_nothing(
    versions: Newsdesk, function: str, says: str, warehouse: Path
) -> None:
    versions.send(Sent(0, "a", 1, "no capital"), Sent(0, "b", 1))
    unfit = replace(versions.settings, enrich=f"{__name__}:{function}")
    with pytest.raises(TerminalError, match=rf"ENRICH={__name__}:{function} .*{says}") as caught:
        job.run(versions.spark, unfit)
    assert "sentiment_score float" in str(caught.value)
    # What can be seen without a row is seen before there is anything.
    made = versions.spark.catalog.tableExists(versions.enriched)
    assert made == (function in {"losing", "doubling", "breaking"})
    assert not made or versions.contents(warehouse) == []
    if function == "losing":
        # After any of them the default does as if nothing had been.
        versions.run()
        versions.assert_as_wanted(warehouse)


def _enriched(spark: SparkSession, title: str | None, body: str | None, times: int = 1) -> Row:
    # Repeated by Spark, row by row: it would show a long literal in every step of planning.
    often = (F.col("id") + times).cast("int")
    articles = spark.range(1).select(
        F.lit(title).alias("title"), F.repeat(F.lit(body), often).alias("body")
    )
    return enrich(articles).collect()[0]


@pytest.mark.parametrize(
    ("body", "score", "label"),
    [
        ("A GREAT success, after one loss.", 1 / 3, "positive"),
        ("A crash! One loss after another.", -1.0, "negative"),
        ("A success and a loss: successfulness counts not.", 0.0, "neutral"),
        ("", 0.0, "neutral"),
        (None, 0.0, "neutral"),
    ],
)
def test_sentiment_is_the_good_words_less_the_bad_ones(
    spark: SparkSession, body: str | None, score: float, label: str
) -> None:
    row = _enriched(spark, None, body)
    assert row["sentiment_score"] == pytest.approx(score)
    assert row["sentiment_label"] == label


@pytest.mark.parametrize(
    ("title", "body", "entities"),
    [
        ("Talks in New York", "They met Ada Lovelace. Then", ["New York", "Ada Lovelace"]),
        ("Paris calls", "“Berlin answers.” London does (in Rome)! Oslo not", ["Rome"]),
        (None, "for Ada, Grace's cat and Ada again; I said É. Zürich-Nord", ["Ada", "Grace"]),
        (None, " ".join(f"x C{n}" for n in range(10, 30)), [f"C{n}" for n in range(10, 20)]),
        (None, None, []),
    ],
)
def test_entities_are_capitalised_within_a_sentence(
    spark: SparkSession, title: str | None, body: str | None, entities: list[str]
) -> None:
    assert _enriched(spark, title, body)["entities"] == entities


def test_keywords_are_the_most_frequent_long_words_then_by_the_alphabet(
    spark: SparkSession,
) -> None:
    body = "Zebra, zebra; apple apples? would Would WOULD four 12345 übung mango kiwis lemon"
    keywords = _enriched(spark, "apple", body)["keywords"]
    assert keywords == ["apple", "zebra", "apples", "kiwis", "lemon"]
    assert _enriched(spark, None, None)["keywords"] == []


@pytest.mark.faults
@pytest.mark.parametrize("text", ["mango ", "MANGO ", "Mango. ", "x Mango ", "M&", "\n", ". "])
def test_a_strange_article_does_not_break_it(spark: SparkSession, text: str) -> None:
    row = _enriched(spark, None, text, times=100_000)
    assert len(row["keywords"]) <= 1
    assert len(row["entities"]) <= 10
