"""Maintenance beside a run: what Iceberg refuses since somebody has committed is tried again.

When that happens is for two processes to say; here a session says it on demand.
"""

from __future__ import annotations

from typing import Any, cast

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import Row, SparkSession

from oncelake.errors import OncelakeError
from oncelake.lake import upkeep

OVERTAKEN = "org.apache.iceberg.exceptions.ValidationException: Deleted manifest could not be found"


class Session:
    """Refuses what it is told to, then answers."""

    def __init__(self, *refusals: str) -> None:
        self._refusals = list(refusals)
        self.asked = 0

    def sql(self, text: str) -> Session:
        assert "CALL demo.system.rewrite_manifests(table => 'demo.news.t')" in text
        self.asked += 1
        if self._refusals:
            raise Py4JError(self._refusals.pop(0))
        return self

    def collect(self) -> list[Row]:
        return [Row(rewritten_manifests_count=4)]


def _rewritten(session: Any) -> int:
    return upkeep.rewrite_manifests(cast(SparkSession, session), "demo.news.t")


def test_where_somebody_has_committed_it_is_tried_again() -> None:
    session = Session(OVERTAKEN, "CALL failed: org.apache.iceberg.exceptions.CommitFailedException")
    assert (_rewritten(session), session.asked) == (4, 3)


@pytest.mark.parametrize("refusals", [(OVERTAKEN,) * 3, ("the disk is full",)])
def test_not_for_ever_and_nothing_else(refusals: tuple[str, ...]) -> None:
    session = Session(*refusals)
    with pytest.raises(OncelakeError):
        _rewritten(session)
    assert session.asked == len(refusals)
