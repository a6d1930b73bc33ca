"""pipeline.yaml → PipelineSpec: every problem is found in one reading.

    text → YAML with lines → sections, overridden by the environment → frozen values

Pure but for reading the spec and its schema file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from oncelake.spec import durations, rows, scalars, sections, sinks
from oncelake.spec.document import Page, compose
from oncelake.spec.environment import overrides
from oncelake.spec.files import NotThere, decoded, read_bytes
from oncelake.spec.keys import SECTIONS, TOP
from oncelake.spec.problems import Notes, Problem, Refused, error_of
from oncelake.spec.section import Section
from oncelake.spec.values import DEFAULT_LOG_LEVEL, DEFAULT_TRIGGER_SECONDS, PipelineSpec


@dataclass(frozen=True, slots=True)
class Reading:
    """A spec that is right, and what its writer should know all the same."""

    spec: PipelineSpec
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Examination:
    """What came of reading a file: a spec if there were no problems."""

    spec: PipelineSpec | None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


Further = Callable[[PipelineSpec], Mapping[str, str]]
"""Looks at a spec that is right by itself: what is wrong with it all the same, by key."""


def _nothing_more(spec: PipelineSpec) -> Mapping[str, str]:
    del spec
    return {}


def read_spec(path: Path, environ: Mapping[str, str]) -> Reading:
    """The spec in `path`, overridden by `environ`; SpecError names all problems at once."""
    found = examine(path, environ)
    if found.spec is None:
        raise error_of(str(path), found.problems)
    return Reading(found.spec, tuple(str(warning) for warning in found.warnings))


def examine(
    path: Path, environ: Mapping[str, str], further: Further = _nothing_more
) -> Examination:
    """Like `read_spec`, with the problems as values, and those that are found by `further`."""
    try:
        data = read_bytes(path)
    except Refused as reason:
        hint = f"; `oncelake init {path}` writes one" if isinstance(reason, NotThere) else ""
        return Examination(None, (Problem(str(path), None, f"{reason}{hint}"),))
    return examine_bytes(data, path, environ, further)


def examine_bytes(
    data: bytes, path: Path, environ: Mapping[str, str], further: Further = _nothing_more
) -> Examination:
    """Examine `data` as the contents of `path`, which need not exist."""
    notes = Notes(str(path))
    spec = None
    try:
        node = compose(decoded(data), notes)
    except Refused as reason:
        notes.problem(None, str(reason))
    else:
        if node is not None:
            page = Page(notes, environ, overrides(environ, notes))
            top = Section(page, "", node, TOP)
            spec = _pipeline(top, path.absolute().parent)
            found = {} if notes.problems else further(spec)
            for key, text in found.items():
                top.complain(key, text)
    problems = notes.sorted_problems()
    return Examination(None if problems else spec, problems, tuple(notes.warnings))


def _pipeline(top: Section, folder: Path) -> PipelineSpec:
    """The whole spec; where a problem was noted on the way, a value in it is a stand-in."""
    decode, columns = sections.decode(_inner(top, "decode"), folder)
    transform = top.text("transform", scalars.transform)
    if transform:
        # What it makes of the columns is known only once Spark has looked at it.
        columns = None
    mode = top.text("mode", scalars.one_of("append", "upsert"), "append")
    table = sections.table(_inner(top, "table"), columns, mode)
    key, order = rows.versions(top, mode, columns)
    name = top.text("pipeline", scalars.pipeline_name, required=True)
    source = sections.source(_inner(top, "source"))
    return PipelineSpec(
        name=name,
        source=source,
        decode=decode,
        table=table,
        mode=mode,
        key=key,
        order=order,
        deletes=rows.deletes(top, mode, key, order, columns),
        horizon=rows.horizon(top, mode, table.partition_by),
        watermark=rows.watermark(_inner(top, "watermark"), columns),
        transform=transform,
        trigger_seconds=top.parsed("trigger", durations.trigger_seconds, DEFAULT_TRIGGER_SECONDS),
        limits=sections.limits(_inner(top, "limits")),
        sinks=sinks.sinks(top, name, source, columns),
        maintenance=sections.maintenance(_inner(top, "maintenance")),
        checkpoint=top.text("checkpoint", scalars.location(folder), required=True),
        catalog=sections.catalog(_inner(top, "catalog"), folder),
        spark=sections.spark(_inner(top, "spark"), table.catalog),
        log_level=top.text("log_level", scalars.log_level, DEFAULT_LOG_LEVEL),
        folder=folder,
    )


def _inner(top: Section, name: str) -> Section:
    return Section(top.page, name, top.nodes.get(name), SECTIONS[name])
