"""`init`, `check` and `show`: a person's verbs for the spec."""

from __future__ import annotations

import argparse
import json
import os
import shlex
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from oncelake.cli import Verbs, given, offsets
from oncelake.errors import OncelakeError, SpecError
from oncelake.functions import function_beside, is_address
from oncelake.spec import (
    Examination,
    PipelineSpec,
    echo,
    echo_yaml,
    error_of,
    examine,
    read_spec,
    scrub,
    shown,
)

DEFAULT_FILE = Path("pipeline.yaml")
SCHEMA_FILE = "article.avsc"

LiveCheck = Callable[[PipelineSpec], str]


def add(verbs: Verbs) -> None:
    init = verbs.add_parser("init", help="write a commented pipeline.yaml and its schema")
    init.add_argument("file", type=Path, nargs="?", default=DEFAULT_FILE, metavar="pipeline.yaml")
    init.add_argument("--force", action="store_true", help="overwrite files that are there")
    init.add_argument("--json", action="store_true", help="one JSON document on stdout")
    init.set_defaults(handler=run_init)

    check = verbs.add_parser("check", help="check a spec, and with --live what it points at")
    check.add_argument("file", type=Path, metavar="pipeline.yaml")
    check.add_argument("--live", action="store_true", help="ask Kafka and the catalog too")
    check.add_argument("--offsets", metavar="JSON", help=offsets.HELP)
    check.add_argument("--json", action="store_true", help="one JSON document on stdout")
    check.set_defaults(handler=run_check)

    show = verbs.add_parser("show", help="show a spec in full: defaults in, secrets out")
    show.add_argument("file", type=Path, metavar="pipeline.yaml")
    show.add_argument("--json", action="store_true", help="one JSON document on stdout")
    show.set_defaults(handler=run_show)


def run_init(args: argparse.Namespace) -> int:
    """Write both files or, when one is in the way, none."""
    spec: Path = args.file
    schema = spec.parent / SCHEMA_FILE
    template = resources.files("oncelake.spec").joinpath("template.yaml").read_text("utf-8")
    contents = {
        spec: template.replace("@FILE@", shlex.quote(str(spec))),
        schema: resources.files("oncelake.samples").joinpath(SCHEMA_FILE).read_text("utf-8"),
    }
    for path, text in contents.items() if not args.force else ():
        if _in_the_way(path, text):
            raise SpecError(f"{path} is there already: give another name, or --force to overwrite")
    for path, text in contents.items():
        _write(path, text)
    if args.json:
        print(json.dumps({"wrote": [str(path) for path in contents]}))
        return 0
    for path in contents:
        print(f"wrote {path}")
    print(f"next: oncelake check {shlex.quote(str(spec))}")
    return 0


def _in_the_way(path: Path, text: str) -> bool:
    """Whether something else is there: the same text may be written again."""
    try:
        return path.read_bytes() != text.encode()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        folder = shlex.quote(str(path.parent))
        make = "" if path.parent.exists() else f". To make its folder, type: mkdir -p {folder}"
        raise SpecError(f"{path} cannot be written: {error.strerror}{make}") from error


def run_show(args: argparse.Namespace) -> int:
    reading = read_spec(args.file, os.environ)
    given.warn(reading.warnings)
    if args.json:
        print(json.dumps(echo(reading.spec), indent=2))
    else:
        print(echo_yaml(reading.spec), end="")
    return 0


def run_check(args: argparse.Namespace) -> int:
    found = examine(args.file, os.environ, missing_function)
    if found.spec is None:
        if not args.json:
            raise error_of(str(args.file), found.problems)
        print(json.dumps(_report(args.file, found), indent=2))
        return SpecError.exit_code
    if args.offsets:
        return offsets.run(found.spec, args.offsets, args.json)
    checks = {"kafka": _check_kafka, "catalog": _check_catalog} if args.live else {}
    if args.live and found.spec.transform:
        checks["transform"] = _check_transform
    answers = ask(found.spec, checks)
    if args.json:
        print(json.dumps(_report(args.file, found, answers), indent=2))
    else:
        given.warn(str(warning) for warning in found.warnings)
        _print_parts(found.spec, answers)
    failed = [answer for answer in answers.values() if isinstance(answer, OncelakeError)]
    return failed[0].exit_code if failed else 0


def missing_function(spec: PipelineSpec) -> Mapping[str, str]:
    """What is wrong with the address of the transform's function, as far as Python tells."""
    if not is_address(spec.transform):
        return {}
    try:
        function_beside(spec.folder, spec.transform, "")
    except SpecError as error:
        return {"transform": str(error)}
    except Exception:  # its module may want a Spark where it is imported: a live check has one
        return {}
    return {}


Answers = dict[str, "str | OncelakeError"]


def ask(spec: PipelineSpec, checks: Mapping[str, LiveCheck]) -> Answers:
    """Every check's answer: one that fails does not keep the others from being asked."""
    answers: Answers = {}
    for name, check in checks.items():
        try:
            answers[name] = check(spec)
        except OncelakeError as error:
            answers[name] = error
    return answers


def _check_kafka(spec: PipelineSpec) -> str:
    from oncelake.source import describe_topic

    found = describe_topic(spec.source)
    return (
        f"topic {shown(spec.source.topic)} has {len(found.partitions)} partitions"
        f" in cluster {found.origin.cluster_id}"
    )


def _check_catalog(spec: PipelineSpec) -> str:
    from oncelake.session import check_catalog

    return check_catalog(spec)


def _check_transform(spec: PipelineSpec) -> str:
    """What it makes is known to Spark alone, and with it whether the columns are there that the
    spec names."""
    from oncelake.reading import Reading
    from oncelake.session import open_session

    return f"it gives the columns {', '.join(Reading.of(open_session(spec), spec).record.names)}"


def parts(spec: PipelineSpec) -> dict[str, str]:
    """What a spec says, a line a part."""
    whole = echo(spec)
    source, table, catalog = whole["source"], whole["table"], whole["catalog"]
    partitioned = ", ".join(table["partition_by"]) or "nothing"
    most = whole["limits"]["max_offsets"]
    address = [part for part in (catalog["type"], catalog["uri"], catalog["warehouse"]) if part]
    return {
        "pipeline": f"{whole['pipeline']}, {whole['mode']}, every {whole['trigger']}",
        "source": f"{source['topic']} at {source['bootstrap']}, from {source['start']}",
        "limits": f"{most} offsets a batch" if most else "none: a batch reads all there is",
        "decode": f"{whole['decode']['format']} by {whole['decode']['schema']}",
        "table": f"{table['name']}, partitioned by {partitioned}",
        "quarantine": table["quarantine"],
        "checkpoint": whole["checkpoint"],
        "catalog": ", ".join(address),
        "spark": whole["spark"]["master"] or "master from spark-submit, else local[*]",
    }


def _print_parts(spec: PipelineSpec, answers: Answers) -> None:
    for name, line in parts(spec).items():
        print(f"ok    {name:<12}  {line}")
    for name, answer in answers.items():
        word = "FAIL" if isinstance(answer, OncelakeError) else "ok"
        print(f"{word:<4}  {'live ' + name:<12}  {scrub(str(answer))}")


def _report(file: Path, found: Examination, answers: Answers | None = None) -> dict[str, Any]:
    answers = answers or {}
    live = {
        name: {"ok": not isinstance(answer, OncelakeError), "answer": scrub(str(answer))}
        for name, answer in answers.items()
    }
    return {
        "file": str(file),
        "ok": not found.problems and all(answer["ok"] for answer in live.values()),
        "problems": [{"where": p.where, "line": p.line, "text": p.text} for p in found.problems],
        "warnings": [str(warning) for warning in found.warnings],
        "parts": parts(found.spec) if found.spec else {},
        "live": live,
    }
