"""The file of results: each benchmark adds its own and leaves the others'."""

from __future__ import annotations

import json
from pathlib import Path

from rich.console import Console

from bench.results import Result, read, save, table


def result(name: str, value: float, holds: bool = True) -> Result:
    return Result(name, value, "at most 3", holds, shown=f"{value} of them", details={"n": 1})


def test_the_file_gives_value_target_holds_and_details_by_name(tmp_path: Path) -> None:
    save([result("cost", 2.0)], tmp_path / "build" / "bench.json")
    entry = json.loads((tmp_path / "build" / "bench.json").read_text())["cost"]
    assert (entry["value"], entry["target"], entry["holds"]) == (2.0, "at most 3", True)
    assert entry["details"] == {"n": 1, "shown": "2.0 of them"}


def test_saving_keeps_the_entries_of_other_benchmarks(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    save([result("first", 1.0), result("second", 1.0)], file)
    save([result("second", 2.0)], file)
    assert {name: entry["value"] for name, entry in read(file).items()} == {
        "first": 1.0,
        "second": 2.0,
    }


def test_the_table_says_in_words_what_does_not_hold(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    save([result("kept", 2.0), result("missed", 9.0, holds=False)], file)
    out = Console(width=100, record=True, file=(tmp_path / "shown").open("w"))
    with out.file:
        out.print(table(read(file)))
        lines = out.export_text().splitlines()
    assert [line.split("|")[-2].strip() for line in lines if "of them" in line] == ["yes", "NO"]
