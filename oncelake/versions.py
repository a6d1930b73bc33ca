"""Reads versions.toml, the one place where versions are pinned."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any


@cache
def pinned() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("versions.toml").read_text(encoding="utf-8"))
