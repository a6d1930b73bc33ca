"""The end of the demo on a person's screen: the table, the checks, and how to look for oneself."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

from oncelake.demo.folder import CATALOG, NAMESPACE, TABLE, DemoFolder
from oncelake.demo.verdict import Outcome


def show(outcome: Outcome, folder: DemoFolder, out: Console) -> None:
    table = Table(box=box.SIMPLE, show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    for name, value in outcome.rows:
        table.add_row(name, value)
    out.print(table)
    for check in outcome.checks:
        if not check.holds:
            out.print(f"does not hold: {check.name}: wanted {check.wanted}, found {check.found}")
    counted = outcome.counted
    out.print(
        f"audit: {outcome.audited.verdict}; counted in the files besides: "
        f"{counted.main:,} rows + {counted.quarantine:,} in quarantine"
    )
    out.print(how_to_query(folder))
    out.print(f"{'PASS' if outcome.passed else 'FAIL'} in {outcome.seconds:.0f} s")


def how_to_query(folder: DemoFolder) -> str:
    """Two lines to paste: our own command, and a reader without Spark."""
    name = f"{CATALOG}.{NAMESPACE}.{TABLE}"
    python = shlex.quote(short(Path(sys.executable)))
    query = (
        "SELECT source, count(*) AS articles, max(published_at) AS latest "
        f"FROM {name} GROUP BY source ORDER BY source"
    )
    pyiceberg = (
        "from pyiceberg.catalog.sql import SqlCatalog; "
        f'table = SqlCatalog("{CATALOG}", uri={_quoted(f"sqlite:///{folder.catalog}")})'
        f'.load_table("{NAMESPACE}.{TABLE}"); '
        "print(table.scan(limit=5).to_arrow().to_pylist())"
    )
    return (
        f"The table {name} stays in {short(folder.path)}. To query it with Spark SQL, paste:\n"
        f"  {python} -m oncelake sql {shlex.quote(short(folder.spec))} {shlex.quote(query)}\n"
        "or without Spark, with PyIceberg:\n"
        f"  {python} -c {shlex.quote(pyiceberg)}\n"
    )


def _quoted(text: str) -> str:
    """As Python source in double quotes: the shell's single quotes go around it."""
    return json.dumps(text)


def short(path: Path) -> str:
    """Relative where that leads down from here, so that the lines stay readable."""
    try:
        return os.path.join(".", path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
