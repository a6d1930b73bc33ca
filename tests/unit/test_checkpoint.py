"""A checkpoint folder that cannot be used is told before anything is read, with what to type."""

from __future__ import annotations

from pathlib import Path

import pytest

from oncelake.errors import CheckpointUnusable
from oncelake.pipeline import prepare_checkpoint


def test_a_folder_that_is_missing_is_made(tmp_path: Path) -> None:
    prepare_checkpoint(str(tmp_path / "chk" / "articles_raw"))
    assert (tmp_path / "chk" / "articles_raw").is_dir()


def test_one_that_cannot_be_made_says_what_to_type(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CheckpointUnusable, match=r"sudo mkdir -p .*/chk && sudo chown \$USER"):
        prepare_checkpoint(str(tmp_path / "file" / "chk"))


def test_one_that_is_not_writable_says_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oncelake.pipeline.os.access", lambda path, how: False)
    with pytest.raises(CheckpointUnusable, match="sudo chown -R"):
        prepare_checkpoint(str(tmp_path))


def test_one_elsewhere_is_left_to_spark() -> None:
    prepare_checkpoint("s3a://bucket/chk")
