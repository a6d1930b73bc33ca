"""Each section of a spec → its frozen value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from oncelake.spec import avro, catalogs, durations, refusals, scalars
from oncelake.spec.document import Leaf
from oncelake.spec.files import read_text
from oncelake.spec.partitioning import fit, partition
from oncelake.spec.problems import Refused
from oncelake.spec.secrets import shown
from oncelake.spec.section import Section
from oncelake.spec.values import (
    DEFAULT_EXPIRE_SECONDS,
    DEFAULT_ORPHANS_SECONDS,
    SIDE_TABLES,
    CatalogSpec,
    DecodeSpec,
    LimitsSpec,
    MaintenanceSpec,
    SourceSpec,
    SparkSpec,
    TableSpec,
)

_MOST_OFFSETS = 10**15
_MOST_PARTITIONS = 100_000

Columns = dict[str, str]


def source(section: Section) -> SourceSpec:
    options = section.settings("options")
    for key in [key for key in options if key.lower() == refusals.FAIL_ON_DATA_LOSS]:
        leaf = options.pop(key)
        said = f"{leaf.key} {refusals.FAIL_ON_DATA_LOSS_WARNING}"
        section.page.notes.warning(leaf.line, said)
    return SourceSpec(
        bootstrap=section.text("bootstrap", scalars.bootstrap, required=True),
        topic=section.text("topic", scalars.topic, required=True),
        start=section.text("start", scalars.one_of("earliest", "latest"), "earliest"),
        options=_allowed(section, options, refusals.source_option),
    )


def decode(section: Section, folder: Path) -> tuple[DecodeSpec, Columns | None]:
    """The decoding, and the table's columns by name; None when the schema cannot be read."""
    form = section.text("format", scalars.one_of("avro"), "avro")
    location = section.text("schema", scalars.local_path(folder), required=True)
    file = Path(location)
    text, columns = "", None
    if location:
        try:
            text = read_text(file)
            columns = avro.columns(text)
        except Refused as reason:
            section.complain("schema", f"{shown(location)!r} {reason}")
    return DecodeSpec(form, file, text, location), columns


def table(section: Section, columns: Columns | None, mode: str) -> TableSpec:
    check = refusals.table_property(mode)
    name = section.text("name", scalars.table_name, required=True)
    spec = TableSpec(
        name=name,
        **{side: section.text(side, scalars.table_name) for side in SIDE_TABLES},
        partition_by=_partition_by(section, columns),
        properties=_allowed(section, section.settings("properties"), check),
    )
    if name:
        _check_sides(section, spec)
    return spec


def _check_sides(section: Section, spec: TableSpec) -> None:
    taken = {spec.name.lower(): "name"}
    for side in SIDE_TABLES:
        table = getattr(spec, side)
        other = taken.setdefault(table.lower(), side)
        if other != side:
            section.complain(side, f"must be another table than table.{other}")
        elif table.split(".")[0] != spec.catalog:
            section.complain(side, "must be in the same catalog as table.name")


def _partition_by(section: Section, columns: Columns | None) -> tuple[str, ...]:
    entries: list[str] = []
    slots: set[tuple[str, str]] = set()
    for leaf in section.texts("partition_by"):
        try:
            entry = partition(leaf.text)
            if columns is not None:
                fit(entry, columns)
            if entry.slot in slots:
                raise Refused("repeats an entry for the same column: Iceberg takes one")
        except Refused as reason:
            section.page.report(leaf, f"{leaf.shown[:120]!r} {reason}")
        else:
            slots.add(entry.slot)
            entries.append(leaf.respelled(str(entry)))
    return tuple(entries)


def limits(section: Section) -> LimitsSpec:
    return LimitsSpec(
        max_offsets=section.count("max_offsets", _MOST_OFFSETS),
        min_partitions=section.count("min_partitions", _MOST_PARTITIONS),
    )


def maintenance(section: Section) -> MaintenanceSpec:
    """What others are writing may be an hour old: less is no age for what nobody refers to."""
    age = durations.between(3600.0, "'5 days'")
    return MaintenanceSpec(
        every_seconds=section.parsed("every", durations.between(60.0, "'1 hour'"), None),
        expire_seconds=section.parsed("expire", age, DEFAULT_EXPIRE_SECONDS),
        orphans_seconds=section.parsed("orphans", age, DEFAULT_ORPHANS_SECONDS),
    )


def catalog(section: Section, folder: Path) -> CatalogSpec:
    kind = section.text("type", catalogs.catalog_type, required=True)
    needs = catalogs.NEEDS.get(kind, ())
    return CatalogSpec(
        type=kind,
        uri=section.text("uri", catalogs.uri(kind, folder), required="uri" in needs),
        warehouse=section.text(
            "warehouse", catalogs.warehouse(kind, folder), required="warehouse" in needs
        ),
        properties=_allowed(section, section.settings("properties"), refusals.catalog_property),
    )


def spark(section: Section, catalog_name: str) -> SparkSpec:
    check = refusals.spark_setting(catalog_name)
    return SparkSpec(
        master=section.text("master", scalars.master) or None,
        settings=_allowed(section, section.settings("settings"), check),
    )


def _allowed(
    section: Section, leaves: dict[str, Leaf], check: Callable[[str, str], None]
) -> dict[str, str]:
    """The settings that `check` lets pass; the others are noted with its reason."""
    allowed = {}
    for key, leaf in leaves.items():
        try:
            check(key, leaf.text)
        except Refused as reason:
            section.page.report(leaf, str(reason))
        else:
            allowed[key] = leaf.respelled(leaf.text)
    return allowed
