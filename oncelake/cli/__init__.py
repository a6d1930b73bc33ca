"""The command line: words to calls. Each verb lives in a module of its own."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from oncelake.errors import EXIT_CODES, OncelakeError, exit_code_of

if TYPE_CHECKING:
    Verbs = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Verbs = argparse._SubParsersAction

VERB_MODULES = (
    "spec",
    "run",
    "status",
    "audit",
    "recover",
    "replay",
    "maintain",
    "sql",
    "conf",
    "produce",
    "local",
    "demo",
)


def parser() -> argparse.ArgumentParser:
    codes = "\n".join(f"  {code:>3}  {meaning}" for code, meaning in EXIT_CODES.items())
    root = argparse.ArgumentParser(
        prog="oncelake",
        description="Kafka into Iceberg, exactly once, with proof.",
        epilog=f"exit codes:\n{codes}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs: Verbs = root.add_subparsers(metavar="verb", required=True)
    for name in VERB_MODULES:
        importlib.import_module(f"oncelake.cli.{name}").add(verbs)
    return root


def main(argv: Sequence[str] | None = None) -> int:
    words = sys.argv[1:] if argv is None else argv
    # argparse takes an optional word for missing once an option stands where it might: last, then.
    args = parser().parse_args(sorted(words, key=lambda word: word == "--json"))
    return exit_code_of(lambda: _handled(args))


def _handled(args: argparse.Namespace) -> int:
    from oncelake.cli.given import name_spec

    try:
        return int(args.handler(args))
    except OncelakeError as error:
        name_spec(error, args)
        raise
