"""The keys that say what becomes of rows: watermark, horizon, deletes, transform, side tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from oncelake.spec import HorizonSpec, WatermarkSpec, echo_yaml
from tests.unit.spec_files import ARTICLE, SPEC, complaints, read

UPSERT = "mode: upsert\nkey: id\norder: published_at\n"
BY_DAY = SPEC.replace("articles_raw\n", "articles_raw\n  partition_by: [days(published_at)]\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "article.avsc").write_text(ARTICLE)
    return tmp_path


def test_without_them_rows_are_only_quarantined(folder: Path) -> None:
    spec = read(folder, SPEC)
    assert (spec.watermark, spec.horizon, spec.deletes, spec.transform) == (None, None, "none", "")
    assert spec.sides == {"quarantined": "demo.news.articles_raw_quarantine"}


def test_a_watermark_has_defaults(folder: Path) -> None:
    spec = read(folder, SPEC + "watermark: {column: published_at, delay: 2 hours}\n")
    assert spec.watermark == WatermarkSpec("published_at", 7200.0, 300.0, "keep")
    assert spec.sides["late"] == "demo.news.articles_raw_late"


def test_late_rows_that_are_dropped_have_no_table(folder: Path) -> None:
    mark = "watermark: {column: published_at, delay: 0 seconds, skew: 1 day, late: drop}\n"
    spec = read(folder, SPEC + mark)
    assert spec.watermark == WatermarkSpec("published_at", 0.0, 86400.0, "drop")
    assert "late" not in spec.sides


def test_a_watermark_can_come_from_the_environment_alone(folder: Path) -> None:
    spec = read(
        folder, SPEC, ONCELAKE_WATERMARK_COLUMN="published_at", ONCELAKE_WATERMARK_DELAY="1 hour"
    )
    assert spec.watermark == WatermarkSpec("published_at", 3600.0)


def test_a_horizon_goes_by_the_column_that_parts_the_table(folder: Path) -> None:
    spec = read(folder, BY_DAY + UPSERT + "horizon: 3 days\n")
    assert spec.horizon == HorizonSpec("published_at", 3 * 86400.0)


def test_tombstones_have_a_table(folder: Path) -> None:
    spec = read(folder, SPEC + UPSERT + "deletes: tombstone\n")
    assert spec.sides["deleted"] == "demo.news.articles_raw_tombstones"


def test_side_tables_take_other_names(folder: Path) -> None:
    named = "articles_raw\n  late: demo.news.behind\n  tombstones: demo.news.gone\n"
    more = UPSERT + "deletes: tombstone\nwatermark: {column: published_at, delay: 2 hours}\n"
    spec = read(folder, SPEC.replace("articles_raw\n", named) + more)
    assert set(spec.sides.values()) == {
        "demo.news.articles_raw_quarantine", "demo.news.behind", "demo.news.gone",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["cleaning:f", "my.module:f", "SELECT * FROM rows", "with x as y"])
def test_a_transform_is_a_function_or_sql(folder: Path, text: str) -> None:
    assert read(folder, f"{SPEC}transform: {text}\n").transform == text


def test_after_a_transform_columns_are_not_known_yet(folder: Path) -> None:
    """They are checked when Spark has looked at it."""
    spec = read(folder, f"{SPEC}mode: upsert\nkey: made\ntransform: SELECT 1 AS made FROM rows\n")
    assert spec.key == ("made",)


def test_the_echo_reads_back(folder: Path) -> None:
    more = "deletes: tombstone\nhorizon: 36 hours\ntransform: SELECT * FROM rows\n"
    mark = "watermark: {column: published_at, delay: 90 minutes, skew: 10 s, late: drop}\n"
    spec = read(folder, BY_DAY + UPSERT + more + mark)
    assert read(folder, echo_yaml(spec)) == spec


WRONG = [
    ("watermark: {delay: 2 hours}\n", "watermark.column is missing"),
    ("watermark: {column: published_at}\n", "watermark.delay is missing"),
    ("watermark: {column: title, delay: 1 h}\n", "must be a field of the schema that is a timest"),
    ("watermark: {column: publishd_at, delay: 1 h}\n", "did you mean 'published_at'?"),
    ("watermark: {column: processed_at, delay: 1 h}\n", "must be the event's own time"),
    ("watermark: {column: published_at, delay: 2}\n", "must be a number and a unit"),
    ("watermark: {column: published_at, delay: soon}\n", "such as '2 hours'"),
    ("watermark: {column: published_at, delay: 1 h, late: lose}\n", "must be keep or drop"),
    ("watermark: {column: published_at, delay: 1 h, skw: 1 s}\n", "did you mean 'skew'?"),
    ("watermark: published_at\n", "watermark must hold keys and values"),
    ("horizon: 3 days\n", "horizon is for mode: upsert"),
    (UPSERT + "horizon: 3 days\n", "needs a table in parts of time"),
    (UPSERT + "horizon: 0 days\n", "must be at least 1 second"),
    ("deletes: tombstone\n", "deletes is for mode: upsert"),
    ("mode: upsert\nkey: [id, url]\ndeletes: tombstone\n", "needs a key of one string"),
    ("mode: upsert\nkey: published_at\ndeletes: tombstone\n", "needs a key of one string"),
    ("mode: upsert\nkey: id\norder: title\ndeletes: tombstone\n", "begins with a timestamp"),
    (UPSERT + "deletes: sometimes\n", "must be none or tombstone"),
    ("transform: DROP TABLE x\n", "must be module:function, or SQL"),
    ("transform: ''\n", "must be module:function, or SQL"),
]


@pytest.mark.parametrize(("more", "said"), WRONG, ids=[said for _, said in WRONG])
def test_what_is_wrong_is_said(folder: Path, more: str, said: str) -> None:
    found = complaints(folder, SPEC + more)
    assert len(found) == 1
    assert said in found[0]


@pytest.mark.parametrize("side", ["late", "tombstones"])
def test_side_tables_are_tables_of_their_own(folder: Path, side: str) -> None:
    for name, said in (
        ("demo.news.articles_raw", "must be another table than table.name"),
        ("demo.news.articles_raw_quarantine", "must be another table than table.quarantine"),
        ("other.news.t", "must be in the same catalog"),
    ):
        found = complaints(
            folder, SPEC.replace("articles_raw\n", f"articles_raw\n  {side}: {name}\n")
        )
        assert len(found) == 1
        assert said in found[0]


@pytest.mark.parametrize(("mode", "version"), [(UPSERT, "3"), (UPSERT, "4"), ("", "2")])
def test_a_format_version_that_a_mode_can_use_is_taken(
    folder: Path, mode: str, version: str
) -> None:
    named = f"articles_raw\n  properties: {{format-version: {version}}}\n"
    spec = read(folder, SPEC.replace("articles_raw\n", named) + mode)
    assert spec.table.properties == {"format-version": version}
