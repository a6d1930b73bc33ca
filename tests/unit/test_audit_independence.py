"""The audit shares no code with what it audits: only the words both are written in."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import oncelake

PACKAGE = Path(oncelake.__file__).parent
ALLOWED = ("oncelake.model", "oncelake.errors", "oncelake.ops.audit")
PURE = ("judge", "chain", "standing", "coverage", "accounts", "rows", "coordinates", "following",
        "source", "slicing", "evidence", "report")  # fmt: skip


def file_of(module: str) -> Path | None:
    path = PACKAGE.parent.joinpath(*module.split("."))
    found = (path.with_suffix(".py"), path / "__init__.py")
    return next((each for each in found if each.is_file()), None)


def imported_by(module: str) -> Iterator[str]:
    """Every module that a module names in an import, wherever in its text."""
    path = file_of(module)
    assert path is not None
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} has a relative import"
            name = node.module or ""
            inner = (f"{name}.{alias.name}" for alias in node.names)
            yield from (each if file_of(each) else name for each in inner)


def reached_from(module: str) -> set[str]:
    """What a module imports, and what that imports; within this package as far as it goes."""
    seen: set[str] = set()
    due = [module]
    while due:
        for name in imported_by(due.pop()):
            if name not in seen:
                seen.add(name)
                due += [name] if name.startswith("oncelake") else []
    return seen


def audit_modules() -> list[str]:
    folder = PACKAGE / "ops" / "audit"
    found = sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")
    return ["oncelake.ops.audit", *(f"oncelake.ops.audit.{name}" for name in found)]


def test_the_audit_imports_nothing_of_the_write_path() -> None:
    ours = {
        name
        for module in audit_modules()
        for name in reached_from(module)
        if name.startswith("oncelake")
    }
    assert [name for name in sorted(ours) if not name.startswith(ALLOWED)] == []


def test_the_audit_reads_tables_through_spark_sql_and_properties_in_one_place() -> None:
    reached = {name for module in audit_modules() for name in reached_from(module)}
    assert not any(name.split(".")[0] in {"py4j", "importlib"} for name in reached)
    for module in audit_modules():
        path = file_of(module)
        assert path is not None
        if module == "oncelake.ops.audit.tables":
            continue  # Spark's SQL does not give every property as it is.
        for private in ("_jvm", "_jsparkSession", "_jdf", "__import__"):
            assert private not in path.read_text(), module


def test_the_judgement_is_pure() -> None:
    for name in PURE:
        roots = {each.split(".")[0] for each in reached_from(f"oncelake.ops.audit.{name}")}
        assert not roots & {"pyspark", "confluent_kafka", "os", "time", "random"}, name


def test_the_walk_follows_imports_to_the_end() -> None:
    assert "oncelake.ops.audit.evidence" in reached_from("oncelake.ops.audit")
    assert "oncelake.lake" in reached_from("oncelake.ledger")
