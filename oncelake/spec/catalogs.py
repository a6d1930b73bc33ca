"""The catalogs that can be exact, and what each one's address looks like."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from oncelake.spec import scalars
from oncelake.spec.problems import Refused

# The keys each type cannot do without.
NEEDS: Mapping[str, tuple[str, ...]] = {
    "jdbc": ("uri", "warehouse"),
    "rest": ("uri",),
    "hive": ("uri",),
    "glue": ("warehouse",),
    "nessie": ("uri", "warehouse"),
    # As Spark is configured: by spark-submit, or a cluster's defaults.
    "session": (),
}
_URI_BEGINNINGS = {
    "jdbc": ("jdbc:",),
    "rest": ("http://", "https://"),
    "hive": ("thrift://",),
    "nessie": ("http://", "https://"),
}
_SQLITE = "jdbc:sqlite:"


def catalog_type(text: str) -> str:
    if text == "hadoop":
        raise Refused(
            "cannot be exact: it looks first and renames then, so that two writers can lose a"
            f" commit; use one of {', '.join(NEEDS)}"
        )
    if text not in NEEDS:
        raise Refused(f"must be one of {', '.join(NEEDS)}")
    return text


def uri(kind: str, folder: Path) -> Callable[[str], str]:
    """A parser of the address of a catalog of type `kind`."""

    def parse(text: str) -> str:
        beginnings = _URI_BEGINNINGS.get(kind, ())
        if beginnings and not text.startswith(beginnings):
            raise Refused(f"must begin with {' or '.join(beginnings)} for the type {kind}")
        return _sqlite(text, folder) if text.startswith(_SQLITE) else text

    return parse


def _sqlite(text: str, folder: Path) -> str:
    """The database file made absolute; its parameters stay."""
    file, mark, parameters = text.removeprefix(_SQLITE).partition("?")
    if not file or file.startswith(":"):
        raise Refused("must name a file: a catalog in memory is gone with the process")
    if file.startswith("file:"):
        raise Refused(f"must name the file by its path: {_SQLITE}path/to/catalog.db")
    return f"{_SQLITE}{scalars.local_path(folder)(file)}{mark}{parameters}"


def warehouse(kind: str, folder: Path) -> Callable[[str], str]:
    """A parser of the warehouse; only a JDBC catalog can have it in a local folder."""
    return scalars.location(folder) if kind == "jdbc" else scalars.not_empty
