"""The map of modules holds: a module imports only modules above it in CONTRIBUTING's list."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "oncelake"
ROW = re.compile(r"^\| ((?:`[\w/]+`(?:, )?)+) \|", re.MULTILINE)


def _order() -> list[str]:
    cells = ROW.findall((ROOT / "CONTRIBUTING.md").read_text())
    return [name.strip("`/ ") for cell in cells for name in cell.split(",")]


ORDER = _order()


def _part(path: Path) -> str:
    """`oncelake/ops/audit/judge.py` belongs to `ops`, `oncelake/lake.py` to `lake`."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def _imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "oncelake":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("oncelake."):
            found.add(str(node.module).split(".")[1])
        elif isinstance(node, ast.Import):
            found |= {a.name.split(".")[1] for a in node.names if a.name.startswith("oncelake.")}
    return found


FILES = [p for p in sorted(PACKAGE.rglob("*.py")) if p.parent != PACKAGE or p.stem[0] != "_"]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_a_module_imports_only_modules_above_it(path: Path) -> None:
    here = _part(path)
    below = {name for name in _imports(path) - {here} if ORDER.index(name) > ORDER.index(here)}
    assert not below, f"{here} imports {below}, which the map lists below it"


def test_the_map_lists_every_module_once() -> None:
    modules = {_part(p) for p in FILES}
    assert set(ORDER) == modules
    assert len(ORDER) == len(set(ORDER))


def test_only_lake_touches_py4j_and_the_audit_which_must_not_import_it() -> None:
    users = {p for p in PACKAGE.rglob("*.py") if re.search(r"py4j|_jvm|_jsp|_jdf", p.read_text())}
    audits = PACKAGE / "ops" / "audit" / "tables.py"
    assert {_part(p) for p in users - {audits}} == {"lake"}
