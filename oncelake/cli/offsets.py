"""oncelake check --offsets: read these offsets as a run would, and write nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from oncelake.cli import given
from oncelake.errors import SpecError, TerminalError
from oncelake.model import (
    Ranges,
    TopicPartition,
    kafka_name,
    non_empty,
    show_ranges,
    spans_from_json,
)
from oncelake.spec import PipelineSpec

if TYPE_CHECKING:
    from oncelake.ops.trial import Trial

HELP = "read these offsets as a run would, writing nothing: as the error of a batch names them"
EXAMPLE = '{"articles.raw.v1": {"0": [500, 900]}}'


def run(spec: PipelineSpec, text: str, as_json: bool) -> int:
    from oncelake.ops.trial import trial

    ranges = parse(text)
    with given.session(spec) as spark:
        found = trial(spark, spec, ranges)
    print(json.dumps(found.to_json()) if as_json else in_words(found))
    return 0 if found.fails is None else TerminalError.exit_code


def parse(text: str) -> Ranges:
    try:
        ranges = non_empty(spans_from_json(json.loads(text)))
    except (ValueError, TypeError, AttributeError) as error:
        raise SpecError(f"--offsets: must be like {EXAMPLE}, from the first to before the last: "
                        f"{error}") from error  # fmt: skip
    if not ranges:
        raise SpecError(f"--offsets: names no offset; it must be like {EXAMPLE}")
    # A topic that was made anew has another name in the ledger, and so in errors, than in Kafka.
    return {TopicPartition(kafka_name(tp.topic), tp.partition): ranges[tp] for tp in ranges}


def in_words(found: Trial) -> str:
    if found.fails is not None:
        return f"FAIL  {show_ranges(found.fails)} by itself fails: {found.why}"
    reasons = sorted((found.reasons or {}).items())
    lines = [f"ok    read {found.read:,}: {found.good:,} good", *(
        f"      {rows:,} for quarantine: {reason}" for reason, rows in reasons
    )]  # fmt: skip
    return "\n".join(lines)
