"""What a person is shown of an error that came from Java."""

from __future__ import annotations

from oncelake.lake import without_stack

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
