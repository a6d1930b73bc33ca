"""oncelake sql: plain SQL in a session that has the spec's catalog."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, TextIO

from rich.box import ASCII2
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from oncelake.cli import Verbs, given
from oncelake.cli.audit import console
from oncelake.errors import TerminalError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUOTES = "'\"`"
SHOWN = 100
"""How many rows are printed for a person; for a program all are."""


def add(verbs: Verbs) -> None:
    verb = verbs.add_parser(
        "sql",
        help="ask the tables in plain SQL",
        description="Runs one query, or, where none is given, each that is typed, up to its ';'.",
    )
    given.add(verb, "one JSON object a row")
    verb.add_argument("query", nargs="?", help="e.g. 'SELECT count(*) FROM demo.news.articles_raw'")
    verb.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    with given.session(given.spec_of(args)) as spark:
        asked = [args.query] if args.query else statements(_lines(sys.stdin))
        answered = [_answer(spark, each, args.json, alone=bool(args.query)) for each in asked]
    # A person who types has seen it, and tried again.
    return 0 if all(answered) or sys.stdin.isatty() else TerminalError.exit_code


def statements(lines: Iterable[str]) -> Iterator[str]:
    """What stands before each ';' that is not within quotes; the last needs none."""
    held, quote = "", ""
    for line in lines:
        for letter in f"{line}\n":
            if letter == ";" and not quote:
                if held.strip():
                    yield held.strip()
                held = ""
                continue
            if quote:
                quote = "" if letter == quote else quote
            elif letter in QUOTES:
                quote = letter
            held += letter
    if held.strip():
        yield held.strip()


def _lines(source: TextIO) -> Iterator[str]:
    if source.isatty():
        print("SQL, each up to its ';'; Ctrl+D ends", file=sys.stderr)
    for line in source:
        yield line.rstrip("\n")


def _answer(spark: SparkSession, statement: str, as_json: bool, alone: bool) -> bool:
    """Whether it could be answered; a query that stands `alone` raises."""
    from oncelake import lake

    try:
        rows = spark.sql(statement)
        if as_json:
            for text in rows.toJSON().collect():
                print(text)
        else:
            _show(rows)
    except lake.JAVA_ERRORS as error:
        reason = lake.in_short(error).rstrip(";")
        if alone:
            raise TerminalError(f"the query failed: {reason}") from error
        print(json.dumps({"error": reason}) if as_json else f"error: {reason}", file=sys.stderr)
        return False
    return True


def _show(rows: DataFrame) -> None:
    if not rows.columns:
        return
    # As text, in the session's zone: Python would show times in this machine's.
    numbered = rows.toDF(*(f"c{number}" for number in range(len(rows.columns))))
    texts = [numbered[name].cast("string") for name in numbered.columns]
    found = numbered.select(*texts).limit(SHOWN + 1).collect()
    table = Table(*(escape(name) for name in rows.columns), box=ASCII2)
    for row in found[:SHOWN]:
        table.add_row(*(Text("NULL" if value is None else value) for value in row))
    console().print(table)
    more = f"more than {SHOWN} rows: --json gives all"
    print(more if len(found) > SHOWN else f"{len(found)} row{'s' * (len(found) != 1)}")
