"""What exactly-once adds to a commit: ours and a plain one by turns, each of as many files.

A whole job's time varies by far more from round to round than a commit takes: so this is timed by
itself. Ours looks at the table, places the batch, publishes with stamp, progress and guard, and
settles. A plain one refreshes the table, as ours does, and appends.
"""

from __future__ import annotations

import time
from statistics import median

from bench.stack import TOPIC, Stack
from oncelake import lake, layout
from oncelake.commit import Committer, Staging
from oncelake.lake import LakeTable, Staged
from oncelake.model import Counts, Origin, Span, TopicPartition

PAIRS, WARM_UPS, FILES = 40, 10, 6
PARTITION = TopicPartition(TOPIC, 0)


def commit_milliseconds(ground: Stack) -> dict[str, float]:
    """The medians of both, and of what a pair differs by."""
    ours, plain = (_table(ground, name) for name in ("commits_ours", "commits_plain"))
    committer = Committer("commits", ours, {})
    committer.claim(Origin("bench", {TOPIC: "bench"}), {PARTITION: 0})
    pairs = []
    for number in range(WARM_UPS + PAIRS):
        files = [
            table.stage(ground.spark.range(FILES).repartition(FILES)) for table in (ours, plain)
        ]
        taken = _ours(committer, files[0], number), _plain(plain, files[1])
        pairs.append(taken)
    counted = pairs[WARM_UPS:]
    return {
        "ours": round(median(mine for mine, _ in counted), 1),
        "plain": round(median(theirs for _, theirs in counted), 1),
        "difference": round(median(mine - theirs for mine, theirs in counted), 1),
    }


def _table(ground: Stack, name: str) -> LakeTable:
    full = ground.fresh(name).table.name
    lake.create_table(ground.spark, full, "id bigint", (), layout.TABLE_PROPERTIES)
    return LakeTable(ground.spark, full)


def _ours(committer: Committer, staged: Staged, number: int) -> float:
    counts = Counts(read=staged.rows, written=staged.rows)
    span = Span(number * staged.rows, (number + 1) * staged.rows)
    began = time.perf_counter()
    committer.commit({PARTITION: span}, lambda placement: Staging(staged, counts, {}))
    return 1000 * (time.perf_counter() - began)


def _plain(table: LakeTable, staged: Staged) -> float:
    began = time.perf_counter()
    table.refresh()
    append = table._table.newAppend()
    for file in staged.files:
        append.appendFile(file)
    append.commit()
    return 1000 * (time.perf_counter() - began)
