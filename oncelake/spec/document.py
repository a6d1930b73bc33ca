"""YAML text → mappings and leaves that know their line. Nothing is constructed from tags."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import yaml

from oncelake.spec.environment import Override, fill
from oncelake.spec.problems import Notes, Refused
from oncelake.spec.secrets import MASK, Secret, looks_secret, scrub

TEXT = "text"
NOTHING = "nothing"
_TAG = "tag:yaml.org,2002:"
_KINDS = {
    f"{_TAG}str": TEXT,
    f"{_TAG}null": NOTHING,
    f"{_TAG}int": "a whole number",
    f"{_TAG}float": "a number",
    f"{_TAG}bool": "true or false",
    f"{_TAG}timestamp": "a date",
}
# Numbers and truth values that every reader spells the same way.
_PLAIN_SCALAR = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?|true|false")
_UNUSABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")
_QUOTED = re.compile(r"'([^']*)'")


def compose(text: str, notes: Notes) -> yaml.MappingNode | None:
    """The file's one mapping, or None with the problem noted. Contents are never quoted."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        notes.problem(line, f"the character U+{error.character:04X} is not allowed in YAML")
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        notes.problem(mark.line + 1 if mark else None, f"not YAML: {_reason(error)}")
    except RecursionError:
        notes.problem(None, "nested too deeply to be a spec")
    except (ValueError, OverflowError):
        notes.problem(None, "not YAML: an escaped character in double quotes is out of range")
    else:
        if isinstance(root, yaml.MappingNode):
            return root
        notes.problem(None, "is empty" if root is None else "must hold keys and values at the top")
    return None


def _reason(error: yaml.MarkedYAMLError) -> str:
    """What the parser says, without words taken from the file: they may be a password."""
    said = _QUOTED.sub(_own_word, error.problem or error.context or "it cannot be parsed")
    return f"{said}; indent with spaces, and put values with special characters in quotes"


def _own_word(match: re.Match[str]) -> str:
    """A quoted word if it is YAML's own: one sign, a tab, or a token such as <block end>."""
    own = len(match[1]) == 1 or match[1] == "\\t" or match[1].startswith("<")
    return match[0] if own else "…"


@dataclass(frozen=True, slots=True)
class Leaf:
    """One value: `text` to use, `shown` to show, `kind` as YAML reads it."""

    key: str
    text: str
    shown: str
    kind: str = TEXT
    line: int | None = None
    variable: str | None = None

    def respelled(self, text: str) -> str:
        """`text`, which stands for this value, hidden where this value is."""
        return text if self.shown == self.text else Secret(text, self.shown)


@dataclass(frozen=True, slots=True)
class Page:
    """What every mapping of one file shares."""

    notes: Notes
    environ: Mapping[str, str]
    overrides: Mapping[str, Override]

    def report(self, leaf: Leaf, text: str) -> None:
        said = f"{leaf.key} {text}"
        if leaf.variable:
            self.notes.problem_of_variable(leaf.variable, said)
        else:
            self.notes.problem(leaf.line, said)

    def leaf(self, key: str, node: yaml.Node) -> Leaf | None:
        """The scalar `node` with its variables filled in; None and a problem if it is none."""
        line = node.start_mark.line + 1
        if not isinstance(node, yaml.ScalarNode):
            self.notes.problem(line, f"{key} must be a single value, not {_shape(node)}")
            return None
        kind = _KINDS.get(node.tag)
        if kind is None:
            self.notes.problem(line, f"{key} has a tag or sign of YAML's own: put it in quotes")
            return None
        filled = fill(node.value, self.environ)
        for problem in filled.problems:
            self.notes.problem(line, f"{key}: {problem}")
        if unusable := _UNUSABLE.search(filled.text):
            code = ord(unusable[0])
            self.notes.problem(line, f"{key} holds the unusable character U+{code:04X}")
        if filled.problems or unusable:
            return None
        shown = MASK if looks_secret(key) else scrub(filled.shown)
        return Leaf(key, filled.text, shown, kind, line)


def is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and _KINDS.get(node.tag) == NOTHING


def key_of(node: yaml.Node) -> str:
    """The text of a key; Refused if it is none."""
    kind = _KINDS.get(node.tag) if isinstance(node, yaml.ScalarNode) else None
    if kind == TEXT and node.value and not _UNUSABLE.search(node.value):
        return str(node.value)
    if kind in (None, TEXT, NOTHING):
        raise Refused("must be plain text")
    raise Refused(f"is read by YAML as {kind}: put it in quotes")


def has_unusable(text: str) -> bool:
    return _UNUSABLE.search(text) is not None


def spelled_plainly(leaf: Leaf) -> bool:
    """Whether the value is text, or a number or truth value that is its own spelling."""
    return leaf.kind == TEXT or _PLAIN_SCALAR.fullmatch(leaf.text) is not None


def _shape(node: yaml.Node) -> str:
    return "a list" if isinstance(node, yaml.SequenceNode) else "keys and values"
