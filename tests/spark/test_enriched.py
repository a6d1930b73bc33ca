"""The enriched table: whatever happens between and during runs, it is as a dictionary would be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from oncelake.commit import Step
from oncelake.errors import Fenced
from oncelake.model import Counts, non_empty
from tests.spark.enriching import PARTITIONS, Newsdesk, Sent


@pytest.fixture(params=["append", "upsert"])
def desk(spark: SparkSession, request: pytest.FixtureRequest) -> Newsdesk:
    """A raw table of every version, or of the latest ones."""
    return Newsdesk(spark, request.param)


@pytest.fixture
def versions(spark: SparkSession) -> Newsdesk:
    """A raw table of every version."""
    return Newsdesk(spark, "append")


@pytest.mark.faults
def test_runs_leave_of_each_article_the_newest(desk: Newsdesk, warehouse: Path) -> None:
    desk.send(Sent(0, "a", 1), Sent(0, "a", 3, "Third"), Sent(1, "a", 2, "Second"), Sent(1, "b", 1))
    assert desk.run().counts.inserted == 2
    desk.assert_as_wanted(warehouse)
    desk.send(Sent(0, "a", 4, "Fourth"), Sent(1, "b", 0, "Late"), Sent(1, "c", 2, body=None))
    counts = desk.run().counts
    assert (counts.written, counts.inserted, counts.updated) == (2, 1, 1)
    desk.assert_as_wanted(warehouse)
    assert [(r["id"], r["version"]) for r in desk.contents(warehouse)] == [
        ("a", 2), ("b", 1), ("c", 1),
    ]  # fmt: skip


def test_what_became_of_each_row_is_counted(versions: Newsdesk, warehouse: Path) -> None:
    versions.send(Sent(0, "a", 1), Sent(0, "a", 2), Sent(0, None, 1), Sent(1, "b", 1))
    assert versions.run().counts == Counts(read=4, written=2, superseded=1, filtered=1, inserted=2)
    same, older, newer = Sent(0, "a", 2), Sent(1, "a", 1, "Older"), Sent(1, "b", 1, "Further on")
    versions.send(same, older, newer, Sent(1, None, 1))
    assert versions.run().counts == Counts(read=4, written=1, superseded=2, filtered=1, updated=1)
    versions.send(Sent(0, "c", 1), Sent(0, None, 1))
    assert versions.run().counts == Counts(read=2, written=1, filtered=1, inserted=1)
    versions.assert_as_wanted(warehouse)


@pytest.mark.faults
def test_twice_is_once(versions: Newsdesk, warehouse: Path) -> None:
    versions.send(Sent(0, "a", 1), Sent(1, "b", 1))
    versions.run()
    versions.send(Sent(0, "a", 2, "Later"))
    versions.run()
    before = versions.digest(warehouse), versions.snapshots(versions.enriched)
    again = versions.run()
    assert (again.ranges, again.counts) == ({}, Counts())
    assert (versions.digest(warehouse), versions.snapshots(versions.enriched)) == before


@pytest.mark.faults
def test_the_same_message_again_is_no_version(versions: Newsdesk, warehouse: Path) -> None:
    versions.send(Sent(0, "a", 1), Sent(0, "b", None))
    versions.run()
    before = versions.digest(warehouse)
    versions.send(Sent(0, "a", 1), Sent(1, "a", 1), Sent(1, "b", None))
    assert versions.run().counts == Counts(read=3, superseded=3)
    assert versions.digest(warehouse) == before


@pytest.mark.faults
def test_of_equal_times_the_one_further_on_in_kafka_stays(
    versions: Newsdesk, warehouse: Path
) -> None:
    """As in the raw table; and so that it does not matter in how many runs they were read."""
    versions.send(Sent(1, "a", 5, "Second partition"), Sent(0, "b", 5, "First partition"))
    versions.run()
    versions.send(Sent(0, "a", 5, "First partition"), Sent(1, "b", 5, "Second partition"))
    versions.run()
    versions.assert_as_wanted(warehouse)
    before = versions.digest(warehouse)
    versions.forget()
    versions.run()
    assert versions.digest(warehouse) == before


@pytest.mark.faults
def test_progress_names_the_snapshot_and_the_offsets(versions: Newsdesk) -> None:
    versions.send(Sent(0, "a", 1), Sent(0, "b", 1))
    result = versions.run()
    assert result.snapshot == versions.snapshots(versions.raw)[-1]
    assert versions.progress().read_to == result.snapshot
    assert non_empty(versions.progress().positions) == result.ranges


@pytest.mark.faults
@pytest.mark.parametrize(
    "maintained", [Newsdesk.compact, Newsdesk.expire], ids=lambda f: f.__name__
)
def test_a_raw_table_compacted_or_expired_between_runs(
    desk: Newsdesk, warehouse: Path, maintained: Callable[[Newsdesk, str], None]
) -> None:
    desk.send(Sent(0, "a", 1), Sent(1, "b", 1))
    desk.run()
    read_to = desk.progress().read_to
    desk.send(Sent(0, "a", 2, "Later"), Sent(0, "c", 1))
    maintained(desk, desk.raw)
    assert (read_to in desk.snapshots(desk.raw)) == (maintained is Newsdesk.compact)
    assert desk.run().counts.read == 2, "only what is new is read"
    desk.assert_as_wanted(warehouse)
    before = desk.digest(warehouse)
    maintained(desk, desk.raw)
    desk.run()
    assert desk.digest(warehouse) == before


@pytest.mark.faults
@pytest.mark.parametrize("expired", [False, True], ids=["kept", "expired"])
def test_articles_that_came_out_of_quarantine_later_are_merged(
    versions: Newsdesk, warehouse: Path, expired: bool
) -> None:
    """Their offsets are before what was read to: without a look at replays they would be missed."""
    versions.send(Sent(0, "a", 1), Sent(1, "b", 1), Sent(1, "c", 1))
    versions.hold_back(1, 0)
    versions.run()
    assert [row["id"] for row in versions.contents(warehouse)] == ["a", "c"]
    versions.replay(1, 0)
    versions.send(Sent(0, "a", 2, "Later"))
    if expired:
        versions.expire(versions.raw)
    counts = versions.run().counts
    assert (counts.read, counts.replayed, counts.inserted) == (1, 3, 1)
    versions.assert_as_wanted(warehouse)
    before = versions.digest(warehouse), versions.snapshots(versions.enriched)
    assert versions.run().counts == Counts()
    assert (versions.digest(warehouse), versions.snapshots(versions.enriched)) == before


@pytest.mark.faults
def test_deleted_progress_changes_nothing(desk: Newsdesk, warehouse: Path) -> None:
    desk.send(Sent(0, "a", 1), Sent(1, "b", 1), Sent(1, "c", None))
    desk.run()
    desk.send(Sent(0, "a", 2, "Later"), Sent(1, "b", 0, "Late"))
    desk.run()
    before = desk.digest(warehouse)
    desk.forget()
    counts = desk.run().counts
    assert (counts.written, counts.read) == (0, counts.superseded)
    assert counts.read >= 3, "everything is read again"
    assert desk.digest(warehouse) == before
    desk.send(Sent(0, "c", 3))
    desk.run()
    desk.assert_as_wanted(warehouse)


class Killed(BaseException):
    """Nothing after it runs."""


@pytest.mark.faults
@pytest.mark.parametrize("step", [Step.CLAIM, Step.STAGE, Step.PUBLISH])
def test_killed_and_run_again(versions: Newsdesk, warehouse: Path, step: Step) -> None:
    def die(when: str, at: Step) -> None:
        if (when, at) == ("after", step):
            raise Killed

    versions.send(Sent(0, "a", 1), Sent(1, "b", 1))
    versions.run()
    versions.send(Sent(0, "a", 2, "Later"), Sent(1, "c", 1))
    with pytest.raises(Killed):
        versions.run(die)
    versions.run()
    versions.assert_as_wanted(warehouse)


@pytest.mark.faults
def test_of_two_runs_at_once_one_is_fenced(versions: Newsdesk, warehouse: Path) -> None:
    def overtake(when: str, step: Step) -> None:
        if (when, step) == ("before", Step.PUBLISH):
            versions.run()

    versions.send(Sent(0, "a", 1), Sent(1, "b", 1))
    with pytest.raises(Fenced):
        versions.run(overtake)
    versions.assert_as_wanted(warehouse)


@pytest.mark.faults
def test_an_enriched_table_compacted_while_a_run_writes(
    versions: Newsdesk, warehouse: Path
) -> None:
    once = [True]

    def compact(when: str, step: Step) -> None:
        if (when, step) == ("before", Step.PUBLISH) and once:
            once.clear()
            versions.compact(versions.enriched)

    versions.send(Sent(0, "a", 1), Sent(0, "b", 1))
    versions.run()
    versions.send(Sent(0, "a", 2, "Later"))
    versions.run(compact)
    assert not once
    versions.assert_as_wanted(warehouse)


@pytest.mark.faults
def test_an_article_that_somebody_else_doubled_is_one_again(
    versions: Newsdesk, warehouse: Path
) -> None:
    versions.send(Sent(0, "a", 1))
    versions.run()
    versions.spark.sql(f"INSERT INTO {versions.enriched} SELECT * FROM {versions.enriched}")
    versions.send(Sent(0, "a", 2, "Later"))
    counts = versions.run().counts
    assert (counts.written, counts.updated, counts.removed) == (1, 1, 1)
    versions.assert_as_wanted(warehouse)


articles = st.builds(
    Sent,
    st.integers(0, PARTITIONS - 1),
    st.sampled_from(["a", "b", "c", None]),
    st.one_of(st.none(), st.integers(0, 2)),
    st.sampled_from(["One", "Two words"]),
)
between = st.sampled_from(["nothing", "compact", "expire", "forget", "compact enriched"])


@pytest.mark.faults
@pytest.mark.parametrize("mode", ["append", "upsert"])
@settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a try takes seconds: no shrinking
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(rounds=st.lists(st.tuples(st.lists(articles, max_size=6), between), min_size=2, max_size=5))
def test_any_sequence_leaves_what_a_dictionary_would_hold(
    spark: SparkSession, warehouse: Path, mode: str, rounds: list[tuple[list[Sent], str]]
) -> None:
    desk = Newsdesk(spark, mode)
    acts: dict[str, Callable[[], None]] = {
        "nothing": lambda: None,
        "compact": lambda: desk.compact(desk.raw),
        "expire": lambda: desk.expire(desk.raw),
        "forget": desk.forget,
        "compact enriched": lambda: desk.compact(desk.enriched),
    }
    desk.send(Sent(0, "a", 1))
    desk.run()
    for sent, act in rounds:
        acts[act]()
        desk.send(*sent)
        desk.run()
        desk.assert_as_wanted(warehouse)
