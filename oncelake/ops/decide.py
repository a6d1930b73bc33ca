"""Carry out what a person has decided about progress: see `amend` for what there is to decide."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from oncelake import amend, ledger, owner, source
from oncelake.amend import Change
from oncelake.checkpoint import Checkpoint
from oncelake.commit import Committer, Look, OnStep
from oncelake.lake import Folder, LakeTable
from oncelake.model import Progress, Ranges, Span, Stamp, non_empty, show_ranges, spans_to_json
from oncelake.spec import PipelineSpec


@dataclass(frozen=True, slots=True)
class Decided:
    """What was decided, or with a dry run would be; `aside`: what the checkpoint was renamed to."""

    decision: str
    table: str
    done: bool
    stamp: Stamp
    before: Progress
    after: Progress
    aside: str | None = None

    @property
    def lost(self) -> Ranges:
        """The offsets that the table is without from here on."""
        return self.stamp.ranges

    @property
    def due_again(self) -> Ranges:
        ends = self.before.positions.items()
        return non_empty({tp: Span(self.after.next_offset(tp), end) for tp, (_, end) in ends})

    @property
    def epochs(self) -> Mapping[str, str]:
        return {
            topic: number
            for topic, number in self.after.origin.topic_ids.items()
            if topic not in self.before.origin.topic_ids
        }

    def to_json(self) -> Mapping[str, Any]:
        return {
            "table": self.table,
            "decision": self.decision,
            "done": self.done,
            "lost": spans_to_json(self.lost),
            "due_again": spans_to_json(self.due_again),
            "epochs": dict(self.epochs),
            "generation": self.after.generation,
            "positions": spans_to_json(self.after.positions),
            "aside": self.aside,
        }

    def in_words(self) -> str:
        dry = "" if self.done else ". This was a dry run: nothing was changed"
        told = {
            "accept-gap": f"{show_ranges(self.lost)}: lost to this table, and accepted",
            "accept-rollback": f"{show_ranges(self.lost)}: rolled back, and accepted",
            "rewrite": f"{show_ranges(self.due_again)}: the next run writes them again from Kafka",
            "rebase": ", ".join(f"{topic} (id {i})" for topic, i in self.epochs.items())
            + ": the next run begins with it, at its first offset",
        }
        return f"{self.table}: {told[self.decision]}{dry}"


def decide(spark: SparkSession, spec: PipelineSpec, decision: str, dry_run: bool,
           on_step: OnStep = lambda when, step: None) -> Decided:  # fmt: skip
    """Work it out, and unless it is a dry run set the checkpoint aside and commit it.

    In this order: a checkpoint that is set aside can always be done without, but what it knows of
    offsets may mean something else afterwards.
    """
    folder = Folder(spark, spec.checkpoint)
    owner.require_own(folder, spec.name)
    main = LakeTable(spark, spec.table.name)
    sides = {fate: LakeTable(spark, name) for fate, name in spec.sides.items()}
    change, look = _change(spec, decision, main, sides)
    view = look(main, spec.name)
    stamp, after = change(view, str(uuid.uuid4()))
    before = ledger.claimed(view)
    if dry_run:
        return Decided(decision, main.name, False, stamp, before, after)
    logs = Checkpoint(folder)
    aside = None if logs.empty else logs.set_aside()
    committer = Committer(spec.name, main, sides, on_step, look)
    after = committer.amend(change)
    committer.finish()
    return Decided(decision, main.name, True, stamp, before, after, aside)


def _change(spec: PipelineSpec, decision: str, main: LakeTable,
            sides: Mapping[str, LakeTable]) -> tuple[Change, Look]:  # fmt: skip
    if decision == "accept-rollback":
        return amend.accept_rollback(main, sides), ledger.look_unquestioned
    topics = source.describe_topic(spec.source)
    if decision == "rewrite":
        rewriting = amend.rewrite(main, sides)
        held = amend.while_held(rewriting, main, topics.origin, topics.offsets)
        return held, ledger.look_unquestioned
    if decision == "rebase":
        return amend.rebase(topics.origin, topics.starts("earliest")), ledger.look
    return amend.accept_gap(topics.origin, topics.offsets), ledger.look
