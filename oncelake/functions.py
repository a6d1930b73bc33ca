"""Functions of a user's own, by their address: module:function."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from oncelake.errors import SpecError


def function_at(address: str, named_by: str, put_it: str) -> Callable[..., Any]:
    """The function; `named_by` is the setting that names it, `put_it` says where it may be."""
    module, colon, name = address.partition(":")
    if not (module and colon and name):
        raise SpecError(f"{named_by}{address} is no function's address: write module:function")
    try:
        function: Any = getattr(importlib.import_module(module), name, None)
    except ImportError as error:
        raise SpecError(f"{named_by}{address} cannot be imported: {error}. {put_it}") from error
    if not callable(function):
        raise SpecError(f"{named_by}{address}: module {module} has no function {name}")
    found: Callable[..., Any] = function
    return found
