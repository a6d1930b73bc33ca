"""Each section of a spec → its frozen value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from oncelake.spec import avro, catalogs, refusals, scalars
from oncelake.spec.document import Leaf, is_null
from oncelake.spec.files import read_text
from oncelake.spec.keys import LISTS, nearest
from oncelake.spec.partitioning import fit, partition
from oncelake.spec.problems import Refused
from oncelake.spec.secrets import shown
from oncelake.spec.section import Section
from oncelake.spec.values import (
    CatalogSpec,
    DecodeSpec,
    LimitsSpec,
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


def table(section: Section, columns: Columns | None) -> TableSpec:
    name = section.text("name", scalars.table_name, required=True)
    spec = TableSpec(
        name=name,
        quarantine=section.text("quarantine", scalars.table_name),
        partition_by=_partition_by(section, columns),
        properties=_allowed(section, section.settings("properties"), refusals.table_property),
    )
    if name and spec.quarantine.lower() == name.lower():
        section.complain("quarantine", "must be another table than table.name")
    elif name and spec.quarantine.split(".")[0] != spec.catalog:
        section.complain("quarantine", "must be in the same catalog as table.name")
    return spec


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


def versions(top: Section, mode: str, columns: Columns | None) -> tuple[tuple[str, ...], ...]:
    """The columns of `key` and of `order`: an upsert's, and only an upsert's."""
    key, order = (_columns(top, name, columns) for name in LISTS)
    node = top.nodes.get("key")
    if mode == "upsert" and (node is None or is_null(node) or not node.value):
        top.complain("mode", "upsert needs key: the columns that tell one row from another")
    if mode != "upsert":
        for name, given in zip(LISTS, (key, order), strict=True):
            if given:
                top.complain(name, f"is for mode: upsert, and this is {mode}")
    return key, order


def _columns(top: Section, name: str, columns: Columns | None) -> tuple[str, ...]:
    """Fields of the schema whose values can be compared, each named once."""
    found: list[str] = []
    fields = {n: kind for n, kind in (columns or {}).items() if n not in avro.ADDED_COLUMNS}
    for leaf in top.texts(name, alone=True):
        if columns is not None and leaf.text not in fields:
            near = nearest(leaf.text, fields)
            hint = f"did you mean '{near}'?" if near else f"it has {', '.join(fields)}"
            top.page.report(leaf, f"{leaf.shown[:120]!r} is no field of the schema; {hint}")
        elif fields.get(leaf.text) == "nested":
            top.page.report(leaf, f"{leaf.shown!r} holds more than one value: name a simple field")
        elif leaf.text in found:
            top.page.report(leaf, f"{leaf.shown!r} is named twice")
        else:
            found.append(leaf.text)
    return tuple(found)


def limits(section: Section) -> LimitsSpec:
    return LimitsSpec(
        max_offsets=section.count("max_offsets", _MOST_OFFSETS),
        min_partitions=section.count("min_partitions", _MOST_PARTITIONS),
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
