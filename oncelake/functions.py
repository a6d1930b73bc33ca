"""Functions of a user's own, by their address: module:function."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from oncelake.errors import SpecError


def is_address(text: str) -> bool:
    """Whether a text that is SQL or a function's address is the latter."""
    return len(text.split()) == 1


def function_at(address: str, named_by: str, put_it: str) -> Callable[..., Any]:
    """The function; `named_by` is the setting that names it, `put_it` says where it may be."""
    module, colon, name = address.partition(":")
    if not (module and colon and name):
        raise SpecError(f"{named_by}{address} is no function's address: write module:function")
    try:
        function: Any = getattr(importlib.import_module(module), name, None)
    except ImportError as error:
        raise SpecError(f"{named_by}{address} cannot be imported: {error}. {put_it}") from error
    except SyntaxError as error:
        raise SpecError(f"{named_by}{address} cannot be imported: {error}") from error
    if not callable(function):
        raise SpecError(f"{named_by}{address}: module {module} has no function {name}")
    found: Callable[..., Any] = function
    return found


def function_beside(folder: Path, address: str, named_by: str) -> Callable[..., Any]:
    """The function, whose file may be in `folder` too."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    put_it = f"Put its file into {folder}, or its folder on PYTHONPATH"
    return function_at(address, named_by, put_it)
