"""Everything that can go wrong, as one tree: the branch says what to do next.

OncelakeError
├── TransientError          the same call may succeed later: retry with back-off
│   ├── KafkaUnreachable
│   ├── CatalogUnreachable
│   └── SparkDied           Spark's JVM ended under us
├── TerminalError           a person has to change something first
│   ├── SpecError           the spec is wrong: file, line and nearest name
│   ├── TableMissing
│   ├── TableUnfit          a table, catalog or Iceberg version we cannot be exact on
│   ├── TopicMissing
│   ├── SourceChanged       another cluster or topic under the same name
│   ├── CheckpointUnusable
│   ├── RolledBack          main no longer holds the commit that progress names
│   ├── TooLarge            a row that the topic does not take
│   └── Unaccounted         a batch whose counts do not add up, even when counted again
├── Fenced                  a newer run owns the pipeline: stop, touch nothing
├── Gap                     offsets are missing between the table and the batch
└── CommitUnknown           the commit may or may not have landed and cannot be looked up

Each class carries the exit code of the command that ends with it.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from typing import ClassVar


class OncelakeError(Exception):
    """What happened, where, and what to type next."""

    exit_code: ClassVar[int] = 1


class TransientError(OncelakeError):
    exit_code: ClassVar[int] = 8


class KafkaUnreachable(TransientError):
    pass


class CatalogUnreachable(TransientError):
    pass


class SparkDied(TransientError):
    exit_code: ClassVar[int] = 1


class TerminalError(OncelakeError):
    pass


class SpecError(TerminalError):
    exit_code: ClassVar[int] = 2


class TableMissing(TerminalError):
    pass


class TableUnfit(TerminalError):
    pass


class TopicMissing(TerminalError):
    pass


class SourceChanged(TerminalError):
    exit_code: ClassVar[int] = 9


class CheckpointUnusable(TerminalError):
    pass


class RolledBack(TerminalError):
    exit_code: ClassVar[int] = 10


class TooLarge(TerminalError):
    pass


class Unaccounted(TerminalError):
    exit_code: ClassVar[int] = 11


class Fenced(OncelakeError):
    exit_code: ClassVar[int] = 5


class Gap(OncelakeError):
    exit_code: ClassVar[int] = 6


class CommitUnknown(OncelakeError):
    exit_code: ClassVar[int] = 7


EXIT_CODES: dict[int, str] = {
    0: "done; for audit: clean",
    1: "stopped by an error that a person has to mend; for demo: FAIL",
    2: "the command line or the spec is wrong",
    3: "audit: explained (foreign rows, deletes or accepted gaps, each named); local: stopped",
    4: "audit: violated (rows lost, doubled or unaccounted for)",
    5: "fenced: a newer run owns the pipeline",
    6: "gap: offsets are missing between the table and the topic",
    7: "unknown: a commit may have landed and cannot be looked up",
    8: "Kafka or the catalog could not be reached",
    9: "the topic or the cluster is not the one the table was filled from",
    10: "the table was rolled back behind its progress",
    11: "a batch's counts do not add up",
    130: "stopped at once by a second Ctrl+C",
}


def to_type(statement: str) -> str:
    """A statement as a command that a shell takes as it is; the verb puts the spec's name in."""
    harmless = not set(statement) & set('"$`\\!')
    quoted = f'"{statement}"' if harmless else shlex.quote(statement)
    return f"oncelake sql PIPELINE.yaml {quoted}"


def exit_code_of(command: Callable[[], int]) -> int:
    """Run a command of a person's: an error of ours is a line and its exit code, no stack."""
    try:
        return command()
    except OncelakeError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        return 130
