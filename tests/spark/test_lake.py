"""The one door to Iceberg: what is staged is invisible, what is published is whole and guarded."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oncelake import lake
from oncelake.errors import CheckpointUnusable, TableMissing, TableUnfit
from oncelake.lake import LakeTable, Publication, Unanswered
from oncelake.ledger import AlreadyLanded, View, guard, has_landed
from tests.advice import advised

_numbers = itertools.count(1)


@pytest.fixture
def name(spark: SparkSession) -> str:
    table = f"demo.lake.t{next(_numbers)}"
    lake.create_table(spark, table, "id bigint", (), {"owner's": "it's \\ quoted"})
    return table


def _stage(spark: SparkSession, table: LakeTable, rows: int) -> lake.Staged:
    return table.stage(spark.range(rows))


def _publication(staged: lake.Staged, view: View, attempt: str) -> Publication:
    return Publication(
        stamp=f'{{"attempt":"{attempt}"}}',
        properties={"key": attempt},
        guard=guard(view, "key", attempt),
        files=staged.files,
    )


def _count(spark: SparkSession, name: str) -> int:
    return spark.table(name).count()


def test_the_iceberg_at_hand_has_what_is_needed(spark: SparkSession) -> None:
    assert lake.require_iceberg(spark).startswith("1.")


def test_an_iceberg_that_lacks_a_class_is_named(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lake.java, "NEEDED_CLASSES", ("spark.NoSuchClass",))
    with pytest.raises(TableUnfit, match=r"lacks org\.apache\.iceberg\.spark\.NoSuchClass"):
        lake.require_iceberg(spark)


def test_properties_are_quoted(spark: SparkSession, name: str) -> None:
    assert LakeTable(spark, name).properties()["owner's"] == "it's \\ quoted"


def test_a_file_that_is_gone_is_not_told_as_a_catalog_that_is_away(
    spark: SparkSession, name: str
) -> None:
    spark.sql(f"INSERT INTO {name} VALUES (1)")
    (row,) = spark.sql(f"SELECT file_path FROM {name}.files").collect()
    gone = Path(row.file_path.removeprefix("file:"))
    gone.unlink()
    with (
        pytest.raises(TableUnfit, match=f"could not be read: .*{gone.name}"),
        lake.answering(name),
    ):
        spark.table(name).collect()


def test_a_catalog_that_is_not_set_up_is_named(spark: SparkSession) -> None:
    for ask in (LakeTable, lambda spark, name: lake.create_table(spark, name, "id bigint")):
        with pytest.raises(TableUnfit, match=r"no catalog elsewhere, .* Set spark\.sql\.catalog\."):
            ask(spark, "elsewhere.news.articles")


def test_a_property_that_cannot_be_is_told_as_such(spark: SparkSession) -> None:
    wrong = {"write.metadata.metrics.column.absent": "none"}
    with pytest.raises(TableUnfit, match=r"Iceberg refuses demo\.lake\.wrong .*absent"):
        lake.create_table(spark, "demo.lake.wrong", "id bigint", (), wrong)


def test_a_file_system_that_spark_does_not_know_is_named(spark: SparkSession) -> None:
    with pytest.raises(CheckpointUnusable, match=r"nowhere://chk cannot be reached: .*nowhere"):
        lake.Folder(spark, "nowhere://chk")


def test_staged_rows_are_counted_and_invisible(spark: SparkSession, name: str) -> None:
    staged = _stage(spark, LakeTable(spark, name), 500)
    assert staged.rows == 500
    assert _count(spark, name) == 0


def test_published_rows_stamp_and_property_appear_together(spark: SparkSession, name: str) -> None:
    table = LakeTable(spark, name)
    table.publish(_publication(_stage(spark, table, 500), View(None, None, None), "a-1"))
    table.refresh()
    assert _count(spark, name) == 500
    assert [a.stamp for a in table.ancestors()] == ['{"attempt":"a-1"}']
    assert table.properties()["key"] == "a-1"


def test_files_survive_their_text(spark: SparkSession, name: str) -> None:
    table = LakeTable(spark, name)
    texts = table.files_to_text(_stage(spark, table, 500).files)
    staged = lake.Staged(table.files_from_text(texts))
    table.publish(_publication(staged, View(None, None, None), "a-1"))
    assert _count(spark, name) == 500


def test_a_second_driver_with_the_same_batch_is_refused(spark: SparkSession, name: str) -> None:
    first, second = LakeTable(spark, name), LakeTable(spark, name)
    view = View(None, None, None)
    staged = _stage(spark, second, 500)
    first.publish(_publication(_stage(spark, first, 500), view, "a-1"))
    with pytest.raises(Unanswered, match="progress is not what"):
        second.publish(_publication(staged, view, "a-2"))
    second.refresh()
    assert not has_landed(second, view, "a-2")
    assert _count(spark, name) == 500


def test_a_foreign_append_in_between_does_not_disturb(spark: SparkSession, name: str) -> None:
    table = LakeTable(spark, name)
    staged = _stage(spark, table, 500)
    spark.range(7).writeTo(name).append()
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('foreign'='kept')")
    table.publish(_publication(staged, View(None, None, None), "a-1"))
    table.refresh()
    assert _count(spark, name) == 507
    assert table.properties()["foreign"] == "kept"


def test_an_attempt_that_has_landed_raises_and_leaves_the_table_whole(
    spark: SparkSession, name: str
) -> None:
    """As after a lost answer: the same attempt is published again on top of itself."""
    table, view = LakeTable(spark, name), View(None, None, None)
    publication = _publication(_stage(spark, table, 500), view, "a-1")
    table.publish(publication)
    stale = LakeTable(spark, name)
    with pytest.raises(Unanswered) as caught:
        stale.publish(publication)
    assert AlreadyLanded.__name__ in str(caught.value.__cause__)
    stale.refresh()
    assert has_landed(stale, view, "a-1")
    assert _count(spark, name) == 500


def test_a_missing_table_is_said_to_be_missing(spark: SparkSession) -> None:
    with pytest.raises(TableMissing, match=r"demo\.lake\.none does not exist"):
        LakeTable(spark, "demo.lake.none")


def test_too_few_commit_retries_are_refused_with_the_command_that_mends_it(
    spark: SparkSession, name: str
) -> None:
    spark.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('commit.retry.num-retries'='0')")
    with pytest.raises(TableUnfit, match="num-retries=0") as refused:
        LakeTable(spark, name)
    spark.sql(advised(refused.value))
    LakeTable(spark, name)


def test_a_hadoop_catalog_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.catalog.files", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.files.type", "hadoop")
    spark.conf.set("spark.sql.catalog.files.warehouse", str(tmp_path))
    lake.create_table(spark, "files.n.t", "id bigint")
    with pytest.raises(TableUnfit, match="Hadoop catalog"):
        LakeTable(spark, "files.n.t")
