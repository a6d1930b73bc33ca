"""What can be said of an article without a model: by word lists, capitals and counting.

Built of Spark's own functions, so that rows do not leave the JVM, and of nothing that is random or
depends on the order of rows: the same article always gives the same. English only, and no match
for a model: set ENRICH to a function of your own for that.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

POSITIVE = """
    achieve achievement advance agree agreement award benefit best better boost breakthrough
    brilliant celebrate champion confident cure delight excellent gain gains good great grow growth
    happy healthy heal hope improve improved improvement innovation joy peace praise prize profit
    progress prosper proud recover recovery relief rescue rescued rise safe solution strong succeed
    success successful support surge thrive triumph victory welcome win winner wins won
"""
NEGATIVE = """
    abuse accident anger attack bad ban bankrupt bankruptcy collapse conflict corrupt corruption
    crash crime crisis damage danger dead death debt decline defeat deficit delay destroy die died
    disaster drought drop emergency fail failed failure fall fear fell fire flood fraud harm hurt
    inflation injured kill killed lawsuit layoff layoffs lose loss losses lost murder outage panic
    plunge poor poverty protest recession reject risk scandal shortage sick strike suffer terror
    threat tragedy unrest victim violence war warn warning weak worse worst
"""
COMMON = """
    about above according across added after again against almost along already although always
    among another around asked because become becomes before began begin being below between beyond
    called cannot comes could during early either enough every everyone everything first further
    given going having himself herself however including inside instead itself known later least
    likely makes making many maybe might minutes month months more moreover never nothing often
    other others ought outside people perhaps quite rather really right since several shall should
    since something sometimes still taken than that their theirs them themselves then there
    therefore these they thing things think third those though three through throughout today
    together toward towards under until using usually wants weeks where whether which while whole
    whose within without would years yesterday yours
"""
CLEAR = 0.2
"""A score as far from 0 as this has a side."""
ENTITIES, KEYWORDS = 10, 5

# Bounded throughout: a page of line ends or of capitals must not take the square of its length.
_NAME = r"\p{Lu}[\p{L}\p{N}&'’-]{0,38}[\p{L}\p{N}]"
_RUN = rf"{_NAME}(?: {_NAME}){{0,5}}"
# A sentence begins with a capital whatever the word: a run that begins there is not captured.
_SENTENCE = r"(?:^|\n\s{0,9}|[.!?…][\"'”’)\]]{0,3}\s{1,9})[\"'“‘(\[]{0,3}"
_NAMES = rf"{_SENTENCE}{_RUN}|({_RUN})"
_KEYWORD = r"^\p{L}{5,40}$"
_REPEATED = r"(\S+)(?: \1(?!\S))*"


def enrich(articles: DataFrame) -> DataFrame:
    # A step for each thing that is used more than once: Spark works it out once then.
    text = F.concat_ws("\n", "title", "body")
    words = articles.withColumn("words", F.split(F.lower(text), r"[^\p{L}\p{N}]+"))
    good, bad = (F.size(F.filter("words", _among(kind))) for kind in (POSITIVE, NEGATIVE))
    counted = words.withColumn("good", good).withColumn("bad", bad)
    return counted.withColumn("score", _score(F.col("good"), F.col("bad"))).select(
        *articles.columns,
        F.col("score").cast("float").alias("sentiment_score"),
        _label(F.col("score")).alias("sentiment_label"),
        _entities(text).alias("entities"),
        _keywords(F.col("words")).alias("keywords"),
    )


def _score(good: Column, bad: Column) -> Column:
    """From -1 to 1: what the good words have over the bad ones, of all that are either."""
    return F.when(good + bad > 0, (good - bad) / (good + bad)).otherwise(F.lit(0.0))


def _label(score: Column) -> Column:
    sides = F.when(score >= CLEAR, "positive").when(score <= -CLEAR, "negative")
    return sides.otherwise("neutral")


def _among(listed: str) -> Callable[[Column], Column]:
    return lambda word: word.isin(*listed.split())


def _entities(text: Column) -> Column:
    """Words with capitals, those next to each other as one, in the order they are met."""
    runs = F.regexp_extract_all(text, F.lit(_NAMES), F.lit(1))
    names = F.transform(runs, lambda run: F.regexp_replace(run, "['’]s$", ""))
    return F.slice(F.array_distinct(F.filter(names, lambda name: name != "")), 1, ENTITIES)


def _keywords(words: Column) -> Column:
    """The most frequent longer words; of equally frequent ones the first by the alphabet.

    Sorted and joined, a word stands beside itself: one pass of a regular expression counts all.
    """

    def telling(word: Column) -> Column:
        return word.rlike(_KEYWORD) & ~_among(COMMON)(word)

    def counted(repeated: Column) -> Column:
        times = F.size(F.split(repeated, " "))
        return F.struct((-times).alias("rank"), F.substring_index(repeated, " ", 1).alias("word"))

    joined = F.array_join(F.array_sort(F.filter(words, telling)), " ")
    ranked = F.transform(F.regexp_extract_all(joined, F.lit(_REPEATED), F.lit(0)), counted)
    return F.slice(F.array_sort(ranked), 1, KEYWORDS).getField("word")
