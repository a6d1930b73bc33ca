"""The table is taken away or changed under a run, or there is no room for it: it stops and says so,
nothing is half there, and once that is mended it goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oncelake import layout
from oncelake.errors import OncelakeError, TableMissing, TableUnfit, TerminalError
from oncelake.local.kafka import LocalKafka
from oncelake.ops.recover import recover
from oncelake.query import RETRY_SECONDS
from oncelake.reading import Reading
from oncelake.spec import read_spec
from tests.advice import advised
from tests.faults.test_others import Once, sql
from tests.site import Site

pytestmark = pytest.mark.faults
MEBIBYTE = 1024 * 1024


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("oncelake.query.RETRY_SECONDS", (0.0,) * len(RETRY_SECONDS))


def stopped(site: Site, spark: SparkSession, statement: str) -> OncelakeError:
    """What a run ends with that had this done to its table before it could commit a batch."""
    others = Once(sql(spark, site, statement))
    with pytest.raises(OncelakeError) as failure:
        site.run_here(spark, on_step=others)
    assert others.done == 1
    return failure.value


@pytest.fixture
def site(kafka: LocalKafka, spark: SparkSession, tmp_path: Path) -> Site:
    """One that has written a batch, and has another to write."""
    made = Site.make(kafka, tmp_path)
    made.produce(600)
    made.run_here(spark)
    made.produce(600, seed=2)
    return made


def test_a_table_that_is_renamed_stops_the_run_and_the_next_until_it_is_back(
    site: Site, spark: SparkSession
) -> None:
    error = stopped(site, spark, "ALTER TABLE {table} RENAME TO news.elsewhere")
    assert isinstance(error, TableMissing)
    with pytest.raises(TableMissing, match="dropped or renamed"):
        site.run_here(spark)
    assert not spark.catalog.tableExists(site.table)
    spark.sql(f"ALTER TABLE {site.catalog}.news.elsewhere RENAME TO news.articles")
    site.run_here(spark)
    site.assert_exactly_once(spark)


def test_a_table_that_is_dropped_is_filled_anew_once_a_person_says_so(
    site: Site, spark: SparkSession
) -> None:
    error = stopped(site, spark, "DROP TABLE {table}")
    assert isinstance(error, TableMissing)
    with pytest.raises(TableMissing, match="oncelake recover"):
        site.run_here(spark)
    spec = read_spec(site.spec, {}).spec
    kept = spark.table(site.quarantine).count()
    assert kept
    dry = recover(spark, spec, dry_run=True)
    assert dry.aside is None
    assert list(dry.sides) == [site.quarantine]
    assert spark.table(site.quarantine).count() == kept
    done = recover(spark, spec, dry_run=False)
    assert done.aside is not None
    site.run_here(spark)
    site.assert_exactly_once(spark)
    assert spark.table(done.sides[site.quarantine]).count() == kept
    site.produce(600, seed=9)
    site.run_here(spark)
    site.assert_exactly_once(spark)


def test_a_side_table_of_a_main_table_that_is_gone_is_refused(
    site: Site, spark: SparkSession
) -> None:
    """What it has followed would be taken for what the new table decides, and rows for it would be
    lost. Somebody has made the new one by hand: else the run is refused before there is one."""
    stopped(site, spark, "DROP TABLE {table}")
    shutil.rmtree(site.checkpoint)
    before = spark.table(site.quarantine).count()
    spec = read_spec(site.spec, {}).spec
    layout.make_tables(spark, spec, Reading.of(spark, spec).record)
    with pytest.raises(TableUnfit, match="of a main table that was dropped") as refused:
        site.run_here(spark)
    assert spark.table(site.quarantine).count() == before
    assert spark.table(site.table).count() == 0
    spark.sql(advised(refused.value))
    site.run_here(spark)
    site.assert_exactly_once(spark)


def test_a_table_that_is_renamed_is_missed_without_a_checkpoint_too(
    site: Site, spark: SparkSession
) -> None:
    """What it has put aside tells. Nothing is made that would be in the way of its return."""
    stopped(site, spark, "ALTER TABLE {table} RENAME TO news.elsewhere")
    shutil.rmtree(site.checkpoint)
    with pytest.raises(TableMissing, match=f"put aside in {site.quarantine} .*Rename it back"):
        site.run_here(spark)
    assert not spark.catalog.tableExists(site.table)
    spark.sql(f"ALTER TABLE {site.catalog}.news.elsewhere RENAME TO news.articles")
    site.run_here(spark)
    site.assert_exactly_once(spark)


def test_a_side_table_that_is_dropped_stops_the_run_until_a_person_says_so(
    site: Site, spark: SparkSession
) -> None:
    """Its rows are nowhere else, but for those that main decided last: a new one in its place would
    only hide that."""
    before_last = spark.table(site.quarantine).count()
    assert before_last
    site.run_here(spark)
    site.produce(600, seed=3)
    before, lost = site.contents().rows, spark.table(site.quarantine).count()
    spark.sql(f"DROP TABLE {site.quarantine}")
    with pytest.raises(TableMissing, match=f"{lost} rows .* are quarantined") as refused:
        site.run_here(spark)
    assert not spark.catalog.tableExists(site.quarantine)
    assert spark.table(site.table).count() == before - lost
    spark.sql(advised(refused.value))
    site.run_here(spark)
    report = site.audit(spark)
    assert report.verdict == "violated"
    found = next(each for each in report.findings if each.kind == "rows-missing")
    assert f"{before_last} rows of ours are not in" in found.message


def test_rows_that_a_purge_took_before_they_were_published_are_told(
    site: Site, spark: SparkSession
) -> None:
    """Main's progress names files that are gone: in the new table nothing could read past them."""
    spark.sql(f"DROP TABLE {site.quarantine} PURGE")
    with pytest.raises(TableMissing) as refused:
        site.run_here(spark)
    spark.sql(advised(refused.value))
    with pytest.raises(TableUnfit, match="are gone with their files") as unfit:
        site.run_here(spark)
    spark.sql(advised(unfit.value))
    site.produce(600, seed=3)
    site.run_here(spark)
    assert spark.table(site.quarantine).count()
    assert site.audit(spark).verdict == "violated"


def test_a_column_that_is_dropped_stops_the_run_and_one_that_is_added_does_not(
    site: Site, spark: SparkSession
) -> None:
    before = site.contents().rows
    spark.sql(f"ALTER TABLE {site.table} DROP COLUMN body")
    with pytest.raises(TerminalError, match="body") as refused:
        site.run_here(spark)
    assert spark.table(site.table).count() + spark.table(site.quarantine).count() == before
    spark.sql(advised(refused.value))
    spark.sql(f"ALTER TABLE {site.table} ADD COLUMN remark string")
    site.run_here(spark)
    report = site.audit(spark)
    assert report.verdict == "clean", report
    assert report.totals.read == 1200


def test_a_column_that_is_dropped_under_a_run_is_named(site: Site, spark: SparkSession) -> None:
    """Each of two batches looks, though the table was whole at the start."""
    drop = Once(sql(spark, site, "ALTER TABLE {table} DROP COLUMN body"))
    site.produce(1200, seed=3)
    with pytest.raises(TableUnfit, match="has no column body") as refused:
        site.run_here(spark, on_step=drop)
    assert (drop.done, drop.staged) == (1, 2)
    spark.sql(advised(refused.value))
    site.run_here(spark)
    assert site.audit(spark).totals.read == 2400


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own for the warehouse."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    place = tmp_path / "warehouse"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={8 * MEBIBYTE}", "tmpfs", str(place)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_warehouse_stops_the_run_and_nothing_is_half_there(
    small_disk: Path, kafka: LocalKafka, spark: SparkSession, tmp_path: Path
) -> None:
    site = Site.make(kafka, tmp_path)
    site.produce(600)
    site.run_here(spark)
    before = site.contents()
    site.produce(3000, seed=2)
    ballast = small_disk / "ballast"
    status = os.statvfs(small_disk)
    # Room enough to begin with a file, and not to end it.
    ballast.write_bytes(bytes(status.f_bavail * status.f_frsize - 200 * 1024))
    with pytest.raises(OncelakeError, match="no space is left on a disk"):
        site.run_here(spark)
    assert site.contents() == before
    ballast.unlink()
    site.run_here(spark)
    site.assert_exactly_once(spark)
