"""oncelake recover: what a person decides where a run has stopped and said so."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from oncelake.cli import Verbs, given

if TYPE_CHECKING:
    from oncelake.ops.decide import Decided
    from oncelake.ops.recover import Recovery


DECISIONS = {
    "accept-gap": "go on without offsets that Kafka has removed before they were read",
    "rebase": "go on with a topic, or a cluster, that was made anew, beside the former rows",
    "rewrite": "after a rollback of the table: write again from Kafka what it lost",
    "accept-rollback": "after a rollback of the table: go on without what it lost",
}


def add(verbs: Verbs) -> None:
    verb = verbs.add_parser(
        "recover",
        help="go on where a run has stopped and a person must decide",
        description="Without a decision: compares Spark's checkpoint with the table, as a run does "
        "at its start. One that is damaged, of another topic, ahead of the table or behind the "
        "topic is renamed, never deleted; the next run begins where the table ends. A decision is "
        "recorded in the table, and fences every run that is still going.",
    )
    given.add(verb)
    decisions = verb.add_mutually_exclusive_group()
    for decision, what in DECISIONS.items():
        decisions.add_argument(
            f"--{decision}", dest="decision", action="store_const", const=decision, help=what
        )
    verb.add_argument("--dry-run", action="store_true", help="only say what would be done")
    verb.set_defaults(handler=run)


def run(args: argparse.Namespace) -> int:
    from oncelake.ops.decide import decide
    from oncelake.ops.recover import recover

    spec = given.spec_of(args)
    with given.session(spec) as spark:
        if args.decision:
            decided = decide(spark, spec, args.decision, args.dry_run)
            facts, show = decided.to_json(), partial(_show_decided, decided)
        else:
            found = recover(spark, spec, args.dry_run)
            facts, show = found.to_json(), partial(_show, found)
    if args.json:
        print(json.dumps(facts))
    else:
        show(Console())
    return 0


def _show_decided(decided: Decided, console: Console) -> None:
    console.print(escape(decided.in_words()), soft_wrap=True)
    if decided.aside:
        console.print(escape(f"the checkpoint is set aside as {decided.aside}"), soft_wrap=True)


def _show(found: Recovery, console: Console) -> None:
    if found.progress is None and found.fault is None and not found.sides:
        console.print(f"{found.table}: no run has claimed it yet, so there is nothing to recover")
        return
    if found.progress is not None:
        table = Table(title=f"{found.table} and its checkpoint")
        for column in ("topic", "partition", "the table ends at", "Spark would go on at"):
            table.add_column(column, justify="right")
        for tp, ends, begins in found.partitions:
            table.add_row(
                tp.topic, str(tp.partition), str(ends), "–" if begins is None else str(begins)
            )
        console.print(table)
    for sentence in _sentences(found):
        console.print(escape(sentence), soft_wrap=True)


def _sentences(found: Recovery) -> Iterator[str]:
    for name, aside in found.sides.items():
        be = "would be" if found.dry_run else "is"
        yield f"{name} holds rows of the table that is gone: it {be} renamed to {aside}"
    if found.fault is None:
        there = "can be used" if found.resumes else "holds nothing yet"
        yield f"the checkpoint {found.checkpoint} {there}: nothing to do"
        return
    begins = "begins where the table ends"
    if found.progress is None:
        begins = "fills a new table from the topic's beginning, or what Kafka still holds of it"
    what = f"the checkpoint {found.checkpoint} cannot be used: {found.fault}. "
    if found.dry_run:
        yield f"{what}It would be set aside; the next run then {begins}"
    else:
        yield f"{what}It is set aside as {found.aside}; the next run {begins}"
