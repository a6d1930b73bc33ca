"""The example with two chains, as a person runs it: killed at random, nothing lost or doubled."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from examples.chain.__main__ import main

ARTICLES, KILLS, SEED = 2_000, 2, 20261118
"""A kill of each stage; the example itself has more of them."""
GOOD = 1_980
"""One in a hundred is corrupt."""


@pytest.mark.faults
@pytest.mark.minutes
def test_both_chains_pass_each_article_on_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {"--articles": ARTICLES, "--kills": KILLS, "--seed": SEED, "--dir": tmp_path / "chain"}
    code = main([str(word) for pair in words.items() for word in pair])
    told = capsys.readouterr().out
    assert code == 0, told
    numbers = {name: int(number.replace(",", ""))
               for name, number in re.findall(r"^  (\S.*?)  +([\d,]+) *$", told, re.M)}  # fmt: skip
    unseen = numbers.pop("cut short by kills, and unseen")
    amid = numbers.pop("of them in the midst of a batch")
    assert unseen >= 0
    assert 0 <= amid <= KILLS
    assert numbers == {
        "good articles produced": GOOD,
        "in the table": GOOD,
        "in articles.good.v1": GOOD,
        "in articles.lake.v1": GOOD,
        "missing": 0,
        "duplicates": 0,
        "foreign": 0,
        "kills": KILLS,
    }
    assert told.count("kill -9") == KILLS
