"""What became of the rows of a batch, in numbers."""

from __future__ import annotations

from dataclasses import dataclass, fields

from oncelake.model.offsets import Json

OF_THE_TABLE = ("inserted", "updated", "removed")
BESIDES = (*OF_THE_TABLE, "dropped", "replayed")
QUARANTINED = "quarantined"
SIDE_FATES = (QUARANTINED, "late", "deleted")
"""What becomes of rows that are kept in a side table, each fate in a table of its own."""


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows of a batch by what became of them; `read` is the sum of them, those besides apart.

    Rows that were quarantined and are read once more later are `replayed`: the sum of what became
    of rows is those that were read and those. They are in the count of the quarantined too.

    Besides: what was written was `inserted`, or `updated` a row that was there; `removed` are rows
    of the table that tombstones took away. So the table's rows are inserted less removed. And of
    the late ones `dropped` are kept nowhere, by choice.
    """

    read: int = 0
    written: int = 0
    superseded: int = 0
    late: int = 0
    quarantined: int = 0
    filtered: int = 0
    deleted: int = 0
    inserted: int = 0
    updated: int = 0
    removed: int = 0
    dropped: int = 0
    replayed: int = 0

    def fates(self) -> dict[str, int]:
        """What became of rows that were read: of each exactly one of these."""
        return {name: getattr(self, name) for name in _FATES}

    def kept(self, fate: str) -> int:
        """How many rows of a fate are to be found in its side table."""
        return int(getattr(self, fate)) - (self.dropped if fate == "late" else 0)

    def of_the_table(self) -> dict[str, int]:
        """What became of the table's rows; nothing is said of them in an append."""
        counts = {name: int(getattr(self, name)) for name in OF_THE_TABLE}
        return counts if any(counts.values()) else {}

    def in_words(self) -> str:
        """`read 1,000 = written 990 + quarantined 10`, and what else there was."""
        replayed = f" + replayed {self.replayed:,}" if self.replayed else ""
        return f"read {self.read:,}{replayed} = {self.fates_in_words('written', 'quarantined')}"

    def fates_in_words(self, *always: str) -> str:
        fates = self.fates().items()
        return " + ".join(f"{name} {count:,}" for name, count in fates if count or name in always)

    @property
    def duplicate_rate(self) -> float:
        """The share of rows that were one more version of a row, newer or not."""
        return (self.superseded + self.updated) / self.read if self.read else 0.0

    @property
    def accounted(self) -> int:
        return sum(self.fates().values())

    @property
    def balanced(self) -> bool:
        return self.read + self.replayed == self.accounted

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, name) + getattr(other, name) for name in _NAMES))

    def __sub__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, name) - getattr(other, name) for name in _NAMES))

    def to_json(self) -> Json:
        """Those besides only where there are any: an append has none."""
        every = {name: getattr(self, name) for name in _NAMES}
        return {name: count for name, count in every.items() if count or name not in BESIDES}

    @classmethod
    def from_json(cls, data: Json) -> Counts:
        return cls(*(int(data.get(name, 0)) for name in _NAMES))


_NAMES = tuple(field.name for field in fields(Counts))
_FATES = tuple(name for name in _NAMES if name not in ("read", *BESIDES))
