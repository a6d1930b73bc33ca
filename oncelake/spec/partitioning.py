"""`partition_by` entries: `source`, `days(published_at)`, `bucket(16, id)`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from oncelake.spec.keys import nearest
from oncelake.spec.problems import Refused

_ENTRY = re.compile(
    r"(?:(?P<transform>[A-Za-z_]+)\s*\(\s*(?:(?P<number>[0-9]{1,9})\s*,\s*)?"
    r"(?P<inner>[A-Za-z_][A-Za-z0-9_]*)\s*\)|(?P<column>[A-Za-z_][A-Za-z0-9_]*))"
)
_DATES = frozenset({"date", "timestamp"})
_CUT = frozenset({"int", "long", "decimal", "string", "bytes"})
_FITS: Mapping[str, frozenset[str]] = {
    "identity": _DATES | _CUT | {"boolean", "float", "double"},
    "years": _DATES,
    "months": _DATES,
    "days": _DATES,
    "hours": frozenset({"timestamp"}),
    "bucket": _DATES | _CUT,
    "truncate": _CUT,
}
TRANSFORMS = tuple(name for name in _FITS if name != "identity")
_NUMBERED = ("bucket", "truncate")
_TIMES = ("years", "months", "days", "hours")


@dataclass(frozen=True, slots=True)
class Partition:
    transform: str
    column: str
    number: int | None = None

    def __str__(self) -> str:
        if self.transform == "identity":
            return self.column
        number = f"{self.number}, " if self.number is not None else ""
        return f"{self.transform}({number}{self.column})"

    @property
    def slot(self) -> tuple[str, str]:
        """Iceberg takes one partition of a slot: days(t) and hours(t) exclude each other."""
        return ("time" if self.transform in _TIMES else self.transform, self.column)


def partition(text: str) -> Partition:
    """The entry, in form; Refused says which forms there are."""
    match = _ENTRY.fullmatch(text.strip())
    if match is None:
        forms = "column, days(column), hours(column), bucket(16, column) or truncate(4, column)"
        raise Refused(f"must be {forms}")
    if match["column"]:
        return Partition("identity", match["column"])
    name = match["transform"].lower()
    if name not in TRANSFORMS:
        near = nearest(name, TRANSFORMS)
        hint = f"did you mean '{near}'?" if near else f"known: {', '.join(TRANSFORMS)}"
        raise Refused(f"uses no known transform; {hint}")
    number = int(match["number"]) if match["number"] else None
    if (name in _NUMBERED) != (number is not None) or number == 0:
        form = f"{name}(16, column)" if name in _NUMBERED else f"{name}(column)"
        raise Refused(f"must be written {form}")
    return Partition(name, match["inner"], number)


def fit(entry: Partition, columns: Mapping[str, str]) -> None:
    """Refused if the table has no such column, or one of a type the transform cannot take."""
    kind = columns.get(entry.column)
    if kind is None:
        near = nearest(entry.column, columns)
        hint = f"did you mean '{near}'?" if near else f"there are {', '.join(columns)}"
        raise Refused(f"names no column of the schema; {hint}")
    if kind not in _FITS[entry.transform]:
        wanted = ", ".join(sorted(_FITS[entry.transform]))
        raise Refused(f"cannot be used: the column is of the type {kind}, not one of {wanted}")
