"""The frozen values of a spec. Their `repr` is safe to log: secrets show as ***."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from oncelake.spec.secrets import Secret, guarded, shown

DEFAULT_TRIGGER_SECONDS = 30.0
DEFAULT_LOG_LEVEL = "WARN"
DEFAULT_SKEW_SECONDS = 300.0
DEFAULT_EXPIRE_SECONDS = 5 * 24 * 3600.0
DEFAULT_ORPHANS_SECONDS = 3 * 24 * 3600.0
DEFAULT_TRANSACTION_SECONDS = 120.0
SIDE_TABLES = ("quarantine", "late", "tombstones")


class Settings(Mapping[str, str]):
    """An immutable map of free settings; those whose key looks secret show as ***."""

    __slots__ = ("_items",)

    def __init__(self, items: Mapping[str, str] | None = None) -> None:
        self._items = {key: guarded(key, value) for key, value in (items or {}).items()}

    def __getitem__(self, key: str) -> str:
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __hash__(self) -> int:
        return hash(frozenset(self._items.items()))

    def __repr__(self) -> str:
        return repr(self._items)


class _Guarded:
    """Turns texts that carry secrets, and maps, into their safe kinds on construction."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]  # every subclass is a dataclass
            value = getattr(self, each.name)
            if isinstance(value, str):
                object.__setattr__(self, each.name, guarded(each.name, value))
            elif isinstance(value, Mapping):
                object.__setattr__(self, each.name, Settings(value))


@dataclass(frozen=True, slots=True)
class SourceSpec(_Guarded):
    """One topic. `options` are further Kafka client settings, without Spark's `kafka.` prefix."""

    bootstrap: str
    topic: str
    start: str = "earliest"
    options: Mapping[str, str] = field(default_factory=Settings)


@dataclass(frozen=True, slots=True)
class DecodeSpec(_Guarded):
    """How a value becomes columns. `schema` is the JSON text of `schema_file`, checked.

    `location` is the file's path as it may be shown.
    """

    format: str
    schema_file: Path = field(repr=False)
    schema: str = field(repr=False)
    location: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not self.location:
            object.__setattr__(self, "location", str(self.schema_file))


@dataclass(frozen=True, slots=True)
class TableSpec(_Guarded):
    """`catalog.namespace.table`; `partition_by` as in SQL's PARTITIONED BY.

    Its side tables have its name with `_quarantine`, `_late` and `_tombstones` after it, unless
    they are given others.
    """

    name: str
    quarantine: str = ""
    late: str = ""
    tombstones: str = ""
    partition_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=Settings)

    def __post_init__(self) -> None:
        for side in SIDE_TABLES:
            if not getattr(self, side):
                object.__setattr__(self, side, _suffixed(self.name, f"_{side}"))
        _Guarded.__post_init__(self)

    @property
    def catalog(self) -> str:
        return self.name.split(".")[0]


@dataclass(frozen=True, slots=True)
class WatermarkSpec(_Guarded):
    """Rows whose `column` is more than `delay` behind the newest are late, and kept or dropped.

    One that is more than `skew` ahead of its own Kafka timestamp is quarantined.
    """

    column: str
    delay_seconds: float
    skew_seconds: float = DEFAULT_SKEW_SECONDS
    late: str = "keep"


@dataclass(frozen=True, slots=True)
class HorizonSpec(_Guarded):
    """A key is looked for only among rows whose `column` is at most so far from its own."""

    column: str
    seconds: float


@dataclass(frozen=True, slots=True)
class LimitsSpec:
    """How much a batch may read, and in how many pieces; None: Spark decides."""

    max_offsets: int | None = None
    min_partitions: int | None = None


@dataclass(frozen=True, slots=True)
class KafkaSinkSpec(_Guarded):
    """A topic that good rows are sent to besides. `key_column` empty: the key that the
    record had; `options` are librdkafka settings; `name` tells its progress from others'."""

    topic: str
    bootstrap: str
    name: str
    key_column: str = ""
    too_large: str = "stop"
    mode: str = "transactions"
    foreign: str = "stop"
    transaction_timeout_seconds: float = DEFAULT_TRANSACTION_SECONDS
    options: Mapping[str, str] = field(default_factory=Settings)


@dataclass(frozen=True, slots=True)
class MaintenanceSpec:
    """How often the tables are kept small between batches, None: never; and what is old then."""

    every_seconds: float | None = None
    expire_seconds: float = DEFAULT_EXPIRE_SECONDS
    orphans_seconds: float = DEFAULT_ORPHANS_SECONDS


@dataclass(frozen=True, slots=True)
class CatalogSpec(_Guarded):
    """`uri` and `warehouse` are empty where the type does not need them and none was given."""

    type: str
    uri: str = ""
    warehouse: str = ""
    properties: Mapping[str, str] = field(default_factory=Settings)


@dataclass(frozen=True, slots=True)
class SparkSpec(_Guarded):
    """`master` None: what spark-submit gives, else local[*]."""

    master: str | None = None
    settings: Mapping[str, str] = field(default_factory=Settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSpec(_Guarded):
    """Everything a run needs to know, checked. `folder` is where it was read."""

    name: str
    source: SourceSpec
    decode: DecodeSpec
    table: TableSpec
    mode: str = "append"
    key: tuple[str, ...] = ()
    order: tuple[str, ...] = ()
    deletes: str = "none"
    horizon: HorizonSpec | None = None
    watermark: WatermarkSpec | None = None
    transform: str = ""
    trigger_seconds: float = DEFAULT_TRIGGER_SECONDS
    limits: LimitsSpec = LimitsSpec()
    sinks: tuple[KafkaSinkSpec, ...] = ()
    maintenance: MaintenanceSpec = MaintenanceSpec()
    checkpoint: str
    catalog: CatalogSpec
    spark: SparkSpec = field(default_factory=SparkSpec)
    log_level: str = DEFAULT_LOG_LEVEL
    folder: Path = field(default=Path(), repr=False, compare=False)

    @property
    def sides(self) -> dict[str, str]:
        """The side tables that it has, by what became of their rows."""
        names = {"quarantined": self.table.quarantine}
        if self.watermark is not None and self.watermark.late == "keep":
            names["late"] = self.table.late
        if self.deletes == "tombstone":
            names["deleted"] = self.table.tombstones
        return names


def _suffixed(name: str, suffix: str) -> str:
    return (
        Secret(name + suffix, shown(name) + suffix) if isinstance(name, Secret) else name + suffix
    )
