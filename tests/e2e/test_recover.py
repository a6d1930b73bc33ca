"""A checkpoint that cannot be used is set aside, and the table says where to go on."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from oncelake.errors import CheckpointUnusable, TableUnfit
from oncelake.local.kafka import LocalKafka
from oncelake.ops.decide import decide
from oncelake.ops.recover import Recovery, recover
from oncelake.spec import read_spec
from tests.site import Site


@pytest.fixture
def site(kafka: LocalKafka, tmp_path: Path) -> Site:
    return Site.make(kafka, tmp_path)


def _last(site: Site) -> Path:
    entries = (site.checkpoint / "offsets").iterdir()
    return max((each for each in entries if each.name.isdigit()), key=lambda each: int(each.name))


def _rewrite(entry: Path, text: str) -> None:
    """As Spark would find it sound: Hadoop's checksum beside it would give it away."""
    entry.with_name(f".{entry.name}.crc").unlink()
    entry.write_text(text)


def _cut(site: Site) -> None:
    _rewrite(_last(site), _last(site).read_text()[:40])


def _emptied(site: Site) -> None:
    _rewrite(_last(site), "")


def _flipped(site: Site) -> None:
    """One byte that only the checksum tells: the offsets are still offsets."""
    text = _last(site).read_text()
    _last(site).write_text(text[:-3] + str(9 - int(text[-3])) + text[-2:])


def _gone(site: Site) -> None:
    """The entry before the last, which Spark wants too."""
    before = _last(site).with_name(str(int(_last(site).name) - 1))
    before.unlink()


def _alone(site: Site) -> None:
    """Batches that are committed, of which the offsets are gone."""
    shutil.rmtree(site.checkpoint / "offsets")


def _ahead(site: Site) -> None:
    *heading, offsets = _last(site).read_text().splitlines()
    further = {site.topic: {p: end + 50 for p, end in json.loads(offsets)[site.topic].items()}}
    _rewrite(_last(site), "\n".join([*heading, json.dumps(further)]))


def _metadata(site: Site) -> None:
    _rewrite(site.checkpoint / "metadata", "{")


FAULTS = pytest.mark.faults
DAMAGES = [
    pytest.param(_cut, "does not tell about its batch", id="cut"),
    pytest.param(_emptied, "does not begin with its version", id="emptied", marks=FAULTS),
    pytest.param(_alone, "commits/0 is there", id="alone", marks=FAULTS),
    pytest.param(_flipped, "Checksum", id="flipped", marks=FAULTS),
    pytest.param(_gone, "cannot be read", id="gone", marks=FAULTS),
    pytest.param(_ahead, "ahead of the table", id="ahead"),
    pytest.param(_metadata, "metadata does not name the query's id", id="metadata", marks=FAULTS),
]


@pytest.mark.parametrize(("damage", "said"), DAMAGES)
def test_a_run_sets_it_aside_says_so_and_goes_on(
    site: Site, spark: SparkSession, damage: Callable[[Site], None], said: str
) -> None:
    site.produce(1500)
    site.run_here(spark)
    damage(site)
    held = {each.name for each in site.checkpoint.iterdir()}
    site.produce(500, seed=2)
    told = site.run_here(spark)
    (event,) = [each for each in told if each.name == "set_aside"]
    assert said in event.facts["why"]
    assert {each.name for each in Path(event.facts["aside"]).iterdir()} == held
    assert {each.facts["outcome"] for each in told if each.name == "batch"} == {"written"}
    site.assert_exactly_once(spark)
    assert "set_aside" not in {each.name for each in site.run_here(spark)}


def _recover(site: Site, spark: SparkSession, dry_run: bool = False) -> Recovery:
    site.use_catalog(spark)
    return recover(spark, read_spec(site.spec, {}).spec, dry_run)


def test_that_of_another_topic_is_left_alone_until_a_person_says_so(
    kafka: LocalKafka, site: Site, spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    other = Site.make(kafka, folder)
    for each in (site, other):
        each.produce(600)
        each.run_here(spark)
    shutil.rmtree(site.checkpoint)
    shutil.copytree(other.checkpoint, site.checkpoint)
    site.produce(300, seed=2)
    with pytest.raises(CheckpointUnusable, match=f"of topic {other.topic}, and this pipeline"):
        site.run_here(spark)
    done = _recover(site, spark)
    assert done.progress is not None
    assert done.progress.generation == 1, "it was refused before it claimed the table"
    assert done.fault == f"it is of topic {other.topic}"
    site.run_here(spark)
    site.assert_exactly_once(spark)
    other.assert_exactly_once(spark)


def test_that_of_another_pipeline_of_the_topic_is_left_alone_until_a_person_says_so(
    site: Site, spark: SparkSession
) -> None:
    site.produce(600)
    site.run_here(spark)
    ours = site.spec.read_text()
    theirs = ours.replace("pipeline: articles", "pipeline: copies")
    site.spec.write_text(theirs.replace("news.articles", "news.copies"))
    with pytest.raises(CheckpointUnusable, match="is of pipeline articles, and this is pipeline c"):
        site.run_here(spark)
    assert not spark.catalog.tableExists(f"{site.catalog}.news.copies")
    assert _recover(site, spark).fault == "it is of pipeline articles"
    site.run_here(spark)
    assert spark.table(f"{site.catalog}.news.copies").count() == site.contents().good.total()
    site.spec.write_text(ours)
    with pytest.raises(CheckpointUnusable, match="is of pipeline copies, and this is pipeline a"):
        site.run_here(spark)
    with pytest.raises(CheckpointUnusable, match="is of pipeline copies, and this is pipeline a"):
        decide(spark, read_spec(site.spec, {}).spec, "accept-gap", dry_run=False)


def test_that_of_a_pipeline_whose_name_was_changed_leads_back_to_that_name(
    site: Site, spark: SparkSession
) -> None:
    """The advice of one error must not lead to the same error again."""
    site.produce(600)
    site.run_here(spark)
    ours = site.spec.read_text()
    site.spec.write_text(ours.replace("pipeline: articles", "pipeline: copies"))
    with pytest.raises(CheckpointUnusable, match="oncelake recover"):
        site.run_here(spark)
    assert _recover(site, spark).fault == "it is of pipeline articles"
    with pytest.raises(TableUnfit, match="articles"):
        site.run_here(spark)


def test_recover_only_says_it_or_does_it(site: Site, spark: SparkSession) -> None:
    site.produce(1500)
    site.run_here(spark)
    sound = _recover(site, spark)
    assert sound.fault is None
    assert all(ends == begins for _, ends, begins in sound.partitions)
    _ahead(site)
    for _ in range(2):
        said = _recover(site, spark, dry_run=True)
        assert said.fault is not None
        assert said.aside is None
    done = _recover(site, spark)
    assert done.aside is not None
    assert Path(done.aside).is_dir()
    assert not site.checkpoint.exists()
    assert _recover(site, spark).to_json()["usable"]


def test_the_command_shows_both_positions(site: Site, spark: SparkSession) -> None:
    site.produce(600)
    site.run_here(spark)
    _cut(site)
    command = [sys.executable, "-m", "oncelake", "recover", str(site.spec)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "the table ends at" in said
    assert "cannot be used: it is damaged: offsets/0" in said
    assert "the next run begins where the table ends" in said
    (aside,) = site.folder.glob("checkpoint.aside-*")
    assert str(aside) in said
