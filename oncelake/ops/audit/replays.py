"""Rows of the quarantine that were taken later: they lie in ranges of stamps that do not count
them. Pure.

Which of the quarantined rows of a stamp were taken, its stamp cannot say; those of the replays say
how many were in all. So no account may have more rows than it wrote and quarantined, and all
together just as many more as the replays wrote.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oncelake.ops.audit.accounts import Account
from oncelake.ops.audit.chain import Sealed
from oncelake.ops.audit.evidence import NOTHING
from oncelake.ops.audit.rows import Expectation

ANY = -1
"""A place in the history before every other: whatever took rows away may have taken these."""


def expected_in_main(accounts: Sequence[Account], sealed: Sequence[Sealed]
                     ) -> Iterator[Expectation]:  # fmt: skip
    replays = [each for each in sealed if each.stamp.kind == "replay"]
    left = sum(each.stamp.counts.written for each in replays)
    for account in accounts:
        counts, found = account.counts, account.main.coordinates
        more = max(0, min(left, found - counts.written, counts.quarantined))
        left -= more
        yield Expectation(account.name, account.index, counts.written + more, account.main,
                          replaced=counts.updated + counts.removed)  # fmt: skip
    if left:
        yield Expectation("the replays", ANY, left, NOTHING)
    for each in replays:
        counts = each.stamp.counts
        replaced = counts.updated + counts.removed
        yield Expectation(str(each), each.index, 0, NOTHING, replaced=replaced)
