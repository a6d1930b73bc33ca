"""What a person is shown of an error that came from Java."""

from __future__ import annotations

import shlex

from oncelake.errors import to_type
from oncelake.lake import in_short, without_stack

TOLD = """\
An error occurred while calling o1.save.
: org.apache.spark.SparkException: Job aborted.
\tat org.apache.spark.sql.Writer.run(Writer.scala:12)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: java.io.IOException: No space left on device
\t... 39 more
  File "transform.py", line 3, in halve
ZeroDivisionError: division by zero
"""


def test_the_words_stay_and_the_stack_of_java_goes() -> None:
    assert without_stack(RuntimeError(TOLD)).splitlines() == [
        "An error occurred while calling o1.save.",
        ": org.apache.spark.SparkException: Job aborted.",
        "Caused by: java.io.IOException: No space left on device",
        '  File "transform.py", line 3, in halve',
        "ZeroDivisionError: division by zero",
    ]


IN_PYTHON = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/home/ann/jobs/cleaning.py", line 12, in strict
    raise ValueError(f"bad id {id}")
ValueError: bad id 7
"""


def test_of_an_error_in_a_users_function_it_is_said_what_was_raised_and_where() -> None:
    told = "ValueError: bad id 7 (cleaning.py, line 12, in strict)"
    assert in_short(RuntimeError(IN_PYTHON)) == told
    assert without_stack(RuntimeError(IN_PYTHON)) == told


def test_an_error_without_words_is_told_by_its_kind() -> None:
    assert in_short(RuntimeError()) == "RuntimeError"


def test_of_an_address_the_password_is_left_out() -> None:
    told = "Failed to connect: jdbc:postgresql://db:5432/lake?user=u&password=s3cr3t"
    assert in_short(RuntimeError(told)).endswith("lake?user=u&password=***")
    lines = without_stack(RuntimeError(f"{told}\nat http://u:s3cr3t@db, said the catalog"))
    assert "s3cr3t" not in lines
    assert lines.endswith("said the catalog")


def test_a_statement_to_type_reaches_the_verb_whole() -> None:
    for statement in (
        "ALTER TABLE demo.news.a SET TBLPROPERTIES ('format-version'='3')",
        "ALTER TABLE demo.news.a ADD COLUMNS (`body` string)",
        "ALTER TABLE demo.news.a ADD COLUMNS (`it's $HOME` string)",
    ):
        assert shlex.split(to_type(statement)) == ["oncelake", "sql", "PIPELINE.yaml", statement]
