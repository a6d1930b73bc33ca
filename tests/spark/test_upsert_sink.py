"""Upserts by sequences of events: the table is what a dictionary would hold."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from oncelake import lake
from oncelake.commit import Step
from oncelake.errors import TableUnfit
from oncelake.lake import LakeTable, Publication, Unanswered
from oncelake.ledger import View, guard
from oncelake.model import Counts
from tests.advice import advised
from tests.spark.upserts import PARTITIONS, Event, Upserts


def test_what_became_of_each_row_is_counted(spark: SparkSession) -> None:
    site = Upserts(spark)
    site.send([Event(0, "a", 1), Event(0, "a", 2), Event(0, None, 1), Event(1, "b", 1)])
    assert site.write_all().counts == Counts(
        read=4, written=2, superseded=1, quarantined=1, inserted=2
    )
    site.send([Event(0, "a", 1), Event(1, "b", 2), Event(1, "c", None)])
    assert site.write_all().counts == Counts(read=3, written=2, superseded=1, inserted=1, updated=1)
    assert site.table() == site.expected()
    assert site.bad() == 1


def test_a_batch_of_bad_rows_alone(spark: SparkSession) -> None:
    site = Upserts(spark)
    site.send([Event(0, None, 1)])
    assert site.write_all().counts == Counts(read=1, quarantined=1)
    assert site.table() == []


def test_a_batch_that_wins_nothing(spark: SparkSession) -> None:
    site = Upserts(spark)
    site.send([Event(1, "a", 5)])
    site.write_all()
    site.send([Event(0, "a", 5), Event(0, "a", None)])
    assert site.write_all().counts == Counts(read=2, superseded=2)
    assert site.table() == site.expected()


def test_a_key_that_somebody_else_doubled_is_one_again(spark: SparkSession) -> None:
    site = Upserts(spark)
    site.send([Event(0, "a", 1)])
    site.write_all()
    spark.sql(f"INSERT INTO {site.name} VALUES ('a', 2, NULL, NULL)")
    site.send([Event(1, "a", 3)])
    counts = site.write_all().counts
    assert (counts.written, counts.updated, counts.removed) == (1, 1, 1)
    assert site.table() == site.expected()


@pytest.mark.parametrize("part", ["stage", "stage_deletes"])
def test_neither_rows_nor_vectors_are_committed_where_the_others_fail(
    spark: SparkSession, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are written beside each other."""
    site = Upserts(spark)
    site.send([Event(0, "a", 1)])
    site.write_all()
    before = site.table()
    site.send([Event(0, "a", 2)])

    def fail(*_: object) -> None:
        raise TableUnfit("the disk is full")

    with monkeypatch.context() as broken:
        broken.setattr(LakeTable, part, fail)
        with pytest.raises(TableUnfit, match="the disk is full"):
            site.write_all()
    assert site.table() == before
    assert site.write_all().counts.updated == 1
    assert site.table() == site.expected()


def _append(spark: SparkSession, table: str) -> None:
    spark.sql(f"INSERT INTO {table} VALUES ('foreign', 1, NULL, NULL)")


def _compact(spark: SparkSession, table: str) -> None:
    name, options = table.removeprefix("demo."), "map('rewrite-all', 'true')"
    spark.sql(f"CALL demo.system.rewrite_data_files(table => '{name}', options => {options})")


@pytest.mark.parametrize("foreign", [_append, _compact])
def test_a_commit_of_somebody_else_in_between_has_the_batch_worked_out_again(
    spark: SparkSession, foreign: Callable[[SparkSession, str], None]
) -> None:
    once = [True]

    def on_step(when: str, step: Step) -> None:
        if (when, step) == ("before", Step.PUBLISH) and once:
            once.clear()
            foreign(spark, site.name)

    site = Upserts(spark)
    site.send([Event(0, "a", 1), Event(0, "b", 1), Event(1, "c", 1)])
    site.write_all()
    site.on_step = on_step
    site.restart()
    site.send([Event(0, "a", 2), Event(1, "b", 2), Event(1, "d", 1)])
    assert site.write_all().counts.updated == 2
    assert not once
    assert [row for row in site.table() if row.id != "foreign"] == site.expected()


def test_vectors_that_have_landed_are_not_published_again(spark: SparkSession) -> None:
    """As after a lost answer: the same attempt once more, on top of itself. Iceberg would take it
    for a conflict and delete the manifest list of the very snapshot that landed."""
    site = Upserts(spark)
    site.send([Event(0, "a", 1), Event(0, "b", 1)])
    site.write_all()
    table = LakeTable(spark, site.name)
    base = table.head()
    assert base is not None
    [(path, position)] = spark.sql(f"SELECT _file, _pos FROM {site.name} WHERE id = 'a'").collect()
    deletes = table.stage_deletes(base, {path: [position]})
    view = View(None, table.properties().get("key"), base)
    publication = Publication(
        '{"attempt":"a-1"}', {"key": "a-1"}, guard(view, "key", "a-1", unmoved=True),
        deletes=deletes, base=base,
    )  # fmt: skip
    table.publish(publication)
    for client in (table, LakeTable(spark, site.name)):
        with pytest.raises(Unanswered, match=r"AlreadyLanded|Py4J"):
            client.publish(publication)
    assert [row.id for row in site.table()] == ["b"]


def test_a_table_without_vectors_is_refused(spark: SparkSession) -> None:
    lake.create_table(spark, "demo.upserts.old", "id string", (), {"format-version": "2"})
    with pytest.raises(TableUnfit, match="format version 2") as refused:
        LakeTable(spark, "demo.upserts.old").require_vectors()
    spark.sql(advised(refused.value))
    LakeTable(spark, "demo.upserts.old").require_vectors()


events = st.builds(
    Event,
    st.integers(0, PARTITIONS - 1),
    st.sampled_from(["a", "b", "c", "d", None]),
    st.one_of(st.none(), st.integers(0, 3)),
)
# A batch: what is sent before it, how far back it begins, and whether the run was started anew.
batches = st.tuples(st.lists(events, max_size=8), st.integers(0, 4), st.booleans())


@pytest.mark.faults
@settings(
    max_examples=10,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # a try takes seconds: no shrinking
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.lists(batches, min_size=2, max_size=5))
def test_any_sequence_leaves_what_a_dictionary_would_hold(
    spark: SparkSession, moves: list[tuple[list[Event], int, bool]]
) -> None:
    site, written = Upserts(spark), [0] * PARTITIONS
    for sent, back, anew in moves:
        site.send(sent)
        if anew:
            site.restart()
        ends = [len(topic) for topic in site.topic]
        site.write(ends, [max(0, start - back) for start in written])
        written = ends
        assert site.table() == site.expected()
