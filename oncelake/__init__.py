"""oncelake: Kafka into Iceberg, exactly once, with proof."""

from __future__ import annotations

from typing import Any

__all__ = ["Kafka", "audit", "spark", "write"]


def __getattr__(name: str) -> Any:
    """The public names, imported on first use: Spark takes a second that errors need not wait."""
    if name in __all__:
        from oncelake import api, session

        return getattr(session if name == "spark" else api, name)
    raise AttributeError(f"module 'oncelake' has no attribute {name!r}")
