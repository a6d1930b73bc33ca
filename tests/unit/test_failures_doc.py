"""Every fault that docs/failures.md lists has the test that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
ROWS = [
    line
    for line in (DOCS / "failures.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| what happens")
]
TEST = re.compile(r"\| \[[\w ]+\]\((?P<file>\.\./tests/[\w/]+\.py)\) `(?P<name>test_\w+)` \|$")


def test_the_list_is_not_empty() -> None:
    assert len(ROWS) > 10


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[2:42])
def test_a_row_names_its_test_and_says_what_to_do(row: str) -> None:
    assert len(row.split(" | ")) == 4
    found = TEST.search(row)
    assert found is not None
    assert f"\ndef {found['name']}(" in (DOCS / found["file"]).read_text()
