"""One mapping of a spec: its keys are checked when it is opened, its values when asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

import yaml

from oncelake.spec.document import (
    NOTHING,
    TEXT,
    Leaf,
    Page,
    has_unusable,
    is_null,
    key_of,
    spelled_plainly,
)
from oncelake.spec.environment import Override, names_of
from oncelake.spec.keys import suggestion
from oncelake.spec.problems import Refused
from oncelake.spec.secrets import scrub

T = TypeVar("T")

_WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")
_ODD_NUMBER = re.compile(r"0[0-9]+")


class Section:
    """Every getter gives the value, or its fallback beside a noted problem.

    A fallback that stands in for a wrong value is never used: a spec with problems is not built.
    """

    def __init__(
        self, page: Page, name: str, node: yaml.Node | None, allowed: tuple[str, ...] = ()
    ) -> None:
        self.page = page
        self.name = name
        self.line = node.start_mark.line + 1 if node else None
        self.usable = node is None or is_null(node) or isinstance(node, yaml.MappingNode)
        self.nodes: dict[str, yaml.Node] = {}
        if isinstance(node, yaml.MappingNode):
            self._open(node, allowed)
        elif not self.usable:
            hint = f": {', '.join(allowed)}" if allowed else ""
            page.notes.problem(self.line, f"{name} must hold keys and values{hint}")

    def _open(self, node: yaml.MappingNode, allowed: tuple[str, ...]) -> None:
        here = self.name or "the spec"
        lines: dict[str, int] = {}
        for key_node, value in node.value:
            line = key_node.start_mark.line + 1
            try:
                key = key_of(key_node)
            except Refused as reason:
                self.page.notes.problem(line, f"a key in {here} {reason}")
                continue
            quoted = repr(scrub(key[:80]))
            if key in lines:
                said = f"key {quoted} is given twice in {here}, first on line {lines[key]}"
                self.page.notes.problem(line, said)
            elif allowed and key not in allowed:
                hint = suggestion(key, self.name, allowed)
                self.page.notes.problem(line, f"unknown key {quoted} in {here}; {hint}")
            lines.setdefault(key, line)
            self.nodes.setdefault(key, value)

    @property
    def given(self) -> bool:
        """Whether anything of it is, in the file or by the environment."""
        begin = f"{self.name}."
        return bool(self.nodes) or any(key.startswith(begin) for key in self.page.overrides)

    def dotted(self, key: str) -> str:
        return f"{self.name}.{key}" if self.name else key

    def text(
        self, key: str, parse: Callable[[str], str], fallback: str = "", *, required: bool = False
    ) -> str:
        """A text as `parse` spells it; what may not be shown of it stays hidden."""
        leaf = self._present(key, required)
        parsed = self._parsed(leaf, parse, fallback)
        return leaf.respelled(parsed) if leaf else parsed

    def parsed(
        self, key: str, parse: Callable[[str], T], fallback: T, *, required: bool = False
    ) -> T:
        return self._parsed(self._present(key, required), parse, fallback)

    def count(self, key: str, most: int) -> int | None:
        """A whole number from 1 to `most`."""
        leaf = self._present(key, required=False)
        if leaf is None:
            return None
        if leaf.kind not in (TEXT, "a whole number"):
            found = "a fraction" if leaf.kind == "a number" else leaf.kind
            self.page.report(leaf, f"must be a whole number, not {found}")
            return None
        return self._checked(leaf, lambda text: _count(text, most), None)

    def texts(self, key: str, alone: bool = False) -> tuple[Leaf, ...]:
        """The texts of a list; where one is enough it may stand alone."""
        node = self.nodes.get(key)
        if node is None or is_null(node):
            return ()
        if alone and isinstance(node, yaml.ScalarNode):
            leaf = self.page.leaf(self.dotted(key), node)
            return (leaf,) if leaf and self._is_text(leaf) else ()
        if not isinstance(node, yaml.SequenceNode):
            line = node.start_mark.line + 1
            self.page.notes.problem(line, f"{self.dotted(key)} must be a list: [first, second]")
            return ()
        leaves = [self.page.leaf(self.dotted(key), item) for item in node.value]
        return tuple(leaf for leaf in leaves if leaf and self._is_text(leaf))

    def settings(self, key: str) -> dict[str, Leaf]:
        """A map of free keys to single values, numbers and truth values as they are spelled."""
        inner = Section(self.page, self.dotted(key), self.nodes.get(key))
        leaves = {name: self.page.leaf(inner.dotted(name), n) for name, n in inner.nodes.items()}
        return {name: leaf for name, leaf in leaves.items() if leaf and self._is_setting(leaf)}

    def complain(self, key: str, text: str) -> None:
        """Note a problem with the value of `key`."""
        override = self.page.overrides.get(self.dotted(key))
        node = self.nodes.get(key)
        line = node.start_mark.line + 1 if node else self.line
        variable = override.variable if override else None
        self.page.report(Leaf(self.dotted(key), "", "", line=line, variable=variable), text)

    def _present(self, key: str, required: bool) -> Leaf | None:
        """The value from the environment, else from the file; None if there is none to use."""
        dotted = self.dotted(key)
        if override := self.page.overrides.get(dotted):
            return self._overridden(dotted, override)
        node = self.nodes.get(key)
        if node is not None and not is_null(node):
            return self.page.leaf(dotted, node)
        if required and self.usable:
            variables = " or ".join(names_of(dotted))
            said = f"{dotted} is missing; write it here or set {variables}"
            self.page.notes.problem(self.line if self.name else None, said)
        return None

    def _overridden(self, dotted: str, override: Override) -> Leaf | None:
        if has_unusable(override.text):
            said = f"{dotted} holds an unusable character"
            self.page.notes.problem_of_variable(override.variable, said)
            return None
        return Leaf(dotted, override.text, scrub(override.text), variable=override.variable)

    def _parsed(self, leaf: Leaf | None, parse: Callable[[str], T], fallback: T) -> T:
        if leaf is None:
            return fallback
        # Of a number where a unit is missing, quotes would not mend it: what it must be is said.
        if leaf.kind != NOTHING and not _accepts(parse, leaf.text):
            return self._checked(leaf, parse, fallback)
        return self._checked(leaf, parse, fallback) if self._is_text(leaf) else fallback

    def _checked(self, leaf: Leaf, parse: Callable[[str], T], fallback: T) -> T:
        try:
            return parse(leaf.text)
        except Refused as reason:
            self.page.report(leaf, f"{leaf.shown[:120]!r} {reason}")
            return fallback

    def _is_text(self, leaf: Leaf) -> bool:
        if leaf.kind == TEXT:
            return True
        self.page.report(leaf, f"is read by YAML as {leaf.kind}: put it in quotes")
        return False

    def _is_setting(self, leaf: Leaf) -> bool:
        if leaf.kind == NOTHING:
            self.page.report(leaf, 'has no value; write "" for an empty one')
        elif not spelled_plainly(leaf):
            self.page.report(leaf, f"is read by YAML as {leaf.kind}: put it in quotes")
        else:
            return True
        return False


def _count(text: str, most: int) -> int:
    if not _WHOLE_NUMBER.fullmatch(text) or _ODD_NUMBER.fullmatch(text):
        raise Refused("must be a whole number in plain digits, such as 10000")
    if not 1 <= int(text) <= most:
        raise Refused(f"must be from 1 to {most}; leave it out for no limit")
    return int(text)


def _accepts(parse: Callable[[str], T], text: str) -> bool:
    try:
        parse(text)
    except Refused:
        return False
    return True
