"""What most verbs are given: a spec, and whether to answer a person or a program."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from oncelake.errors import OncelakeError
from oncelake.spec import PipelineSpec, read_spec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PLACEHOLDER = "PIPELINE.yaml"
"""The spec in errors of modules that do not know its file."""


def add(verb: argparse.ArgumentParser, answer: str = "one JSON document on stdout") -> None:
    verb.add_argument("spec", type=Path, help="the pipeline's spec, e.g. pipeline.yaml")
    verb.add_argument("--json", action="store_true", help=answer)


def spec_of(args: argparse.Namespace) -> PipelineSpec:
    """The spec by its file and the environment; what is odd about it is said."""
    reading = read_spec(args.spec, os.environ)
    warn(reading.warnings)
    return reading.spec


def warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def say(words: str) -> None:
    """What is being done, for whoever waits: beside the answer, which is on stdout."""
    print(f"{words} ...", file=sys.stderr, flush=True)


@contextmanager
def session(spec: PipelineSpec) -> Iterator[SparkSession]:
    """Spark for as long as a verb takes."""
    # Spark takes a second to import: a wrong word should not wait for it.
    from oncelake.lake import until_stopped
    from oncelake.session import open_session

    with until_stopped(open_session(spec)) as spark:
        yield spark


def name_spec(error: OncelakeError, args: argparse.Namespace) -> None:
    """What is to be typed next can be pasted: with the spec's own name in it."""
    spec = getattr(args, "spec", None) or getattr(args, "file", None)
    if spec is not None:
        error.args = (str(error).replace(PLACEHOLDER, shlex.quote(str(spec))),)
