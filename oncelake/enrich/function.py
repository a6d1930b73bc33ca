"""The function that enriches: found by its name, and held to what it must give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.errors import PythonException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType

from oncelake.enrich.schema import ARTICLE, CONTENT, FOUND_OUT, in_sql, lacking
from oncelake.errors import TerminalError
from oncelake.functions import function_at

Enrich = Callable[[DataFrame], DataFrame]
DEFAULT = "oncelake.enrich.default:enrich"
SCORE = "sentiment_score"


@dataclass(frozen=True, slots=True)
class Enricher:
    """DataFrame of articles → the same articles with what was found out; `name` is its address."""

    name: str
    function: Enrich

    def __call__(self, articles: DataFrame) -> DataFrame:
        """The articles with their new columns, of the enriched table's types."""
        try:
            given = self.function(articles.select(*ARTICLE))
        except Exception as error:
            raise self.failed(error) from error
        if not isinstance(given, DataFrame):
            raise self._unfit(f"gave {type(given).__name__} and not a DataFrame")
        scores = [f.dataType for f in given.schema.fields if f.name == SCORE]
        # A score is often worked out as a double: as a float it is stored, and compared.
        if len(scores) == 1 and isinstance(scores[0], NumericType):
            given = given.withColumn(SCORE, F.col(SCORE).cast("float"))
        problems = [*lacking(given.schema, CONTENT)]
        if problems:
            raise self._unfit(f"does not give what is needed: {', '.join(problems)}")
        return given.select(*CONTENT)

    def require_each_once(self, articles: int, rows: int, ids: int) -> None:
        """It may neither lose an article nor double one."""
        if not articles == rows == ids:
            raise self._unfit(f"was given {articles} articles and gave {rows} rows with {ids} ids")

    def failed(self, error: Exception) -> TerminalError:
        # Of a Python traceback the last line tells, of an error of Spark's the first.
        told = str(error).split("JVM stacktrace:")[0].strip().splitlines() or [""]
        short = told[-1 if isinstance(error, PythonException) else 0].rstrip(".")
        return self._unfit(f"failed: {type(error).__name__}: {short}")

    def _unfit(self, what: str) -> TerminalError:
        return TerminalError(
            f"ENRICH={self.name} {what}. Nothing was written. It is given a DataFrame of "
            f"{', '.join(ARTICLE)}, and gives back each row with the columns {in_sql(FOUND_OUT)}"
        )


def load(name: str) -> Enricher:
    """The function at `module:function`."""
    return Enricher(name, function_at(name, "ENRICH=", "Put the folder it is in on PYTHONPATH"))
