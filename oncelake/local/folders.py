"""Where things are kept for this user, across checkouts."""

from __future__ import annotations

import os
from pathlib import Path


def cache() -> Path:
    """$ONCELAKE_CACHE, else $XDG_CACHE_HOME/oncelake, else ~/.cache/oncelake."""
    if own := os.environ.get("ONCELAKE_CACHE"):
        return Path(own).expanduser().absolute()
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "oncelake"
    return Path.home() / ".cache" / "oncelake"
