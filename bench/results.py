"""What a benchmark found: one value against one target, with all that led to it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

FOLDER = Path("build")
FILE = FOLDER / "bench.json"


@dataclass(frozen=True, slots=True)
class Result:
    """`shown` is the value as a person reads it; `details` hold every figure measured."""

    name: str
    value: float
    target: str
    holds: bool
    shown: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return {
            "value": self.value,
            "target": self.target,
            "holds": self.holds,
            "details": {"shown": self.shown, **self.details},
        }


def save(results: Sequence[Result], file: Path = FILE) -> None:
    """Put these into the file, and leave what other benchmarks have put there."""
    file.parent.mkdir(parents=True, exist_ok=True)
    entries = read(file) | {result.name: result.to_json() for result in results}
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps(entries, indent=2, sort_keys=True) + "\n")
    os.replace(fresh, file)


def read(file: Path = FILE) -> dict[str, Any]:
    return dict(json.loads(file.read_text())) if file.exists() else {}


def table(entries: Mapping[str, Any]) -> Table:
    """Readable without colour: the last column says it in words."""
    drawn = Table(box=box.ASCII2)
    drawn.add_column("benchmark", no_wrap=True)
    for heading in ("measured", "target", "holds"):
        drawn.add_column(heading)
    for name, entry in sorted(entries.items()):
        holds = "yes" if entry["holds"] else "NO"
        drawn.add_row(name, entry["details"]["shown"], entry["target"], holds)
    return drawn
