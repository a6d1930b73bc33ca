"""What becomes of rows: which are versions of one, which go, which come too late."""

from __future__ import annotations

from collections.abc import Sequence

from oncelake.spec import avro, durations, scalars
from oncelake.spec.document import is_null
from oncelake.spec.keys import LISTS, nearest
from oncelake.spec.partitioning import partition
from oncelake.spec.section import Section
from oncelake.spec.values import DEFAULT_SKEW_SECONDS, HorizonSpec, WatermarkSpec

Columns = dict[str, str]


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


def deletes(top: Section, mode: str, key: Sequence[str], order: Sequence[str],
            columns: Columns | None) -> str:  # fmt: skip
    """Whether a null value deletes. It has Kafka's key and time, and no field of the schema."""
    choice = top.text("deletes", scalars.one_of("none", "tombstone"), "none")
    if choice == "none":
        return choice
    fields = columns or {}
    if mode != "upsert":
        top.complain("deletes", f"is for mode: upsert, and this is {mode}")
    elif len(key) > 1 or (columns is not None and any(fields.get(k) != "string" for k in key)):
        top.complain("deletes", "needs a key of one string: a tombstone has Kafka's key alone")
    elif columns is not None and order and fields.get(order[0]) != "timestamp":
        top.complain(
            "deletes",
            "needs an order that begins with a timestamp, or none: a tombstone has no other "
            "order than its time in Kafka",
        )
    return choice


def horizon(top: Section, mode: str, partition_by: Sequence[str]) -> HorizonSpec | None:
    seconds = top.parsed("horizon", durations.between(1.0, "'3 days'"), 0.0)
    if not seconds:
        return None
    entries = [partition(entry) for entry in partition_by]
    times = [entry.column for entry in entries if entry.slot[0] == "time"]
    if mode != "upsert":
        top.complain("horizon", f"is for mode: upsert, and this is {mode}")
    elif not times:
        top.complain("horizon", "needs a table in parts of time: partition_by: [days(column)]")
    return HorizonSpec(times[0] if times else "", seconds)


def watermark(section: Section, columns: Columns | None) -> WatermarkSpec | None:
    if not section.given:
        return None
    column = section.text("column", scalars.not_empty, required=True)
    if columns is not None and column and columns.get(column) != "timestamp":
        near = nearest(column, [name for name, kind in columns.items() if kind == "timestamp"])
        hint = f"; did you mean '{near}'?" if near else ""
        section.complain("column", f"must be a field of the schema that is a timestamp{hint}")
    if column in avro.ADDED_COLUMNS:
        section.complain("column", "must be the event's own time, not one that is added here")
    parse = durations.between(0.0, "'2 hours' or '30 minutes'")
    return WatermarkSpec(
        column=column,
        delay_seconds=section.parsed("delay", parse, 0.0, required=True),
        skew_seconds=section.parsed("skew", parse, DEFAULT_SKEW_SECONDS),
        late=section.text("late", scalars.one_of("keep", "drop"), "keep"),
    )
