"""Environment variables: overrides of a spec's keys, and `${VAR}` inside its texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from oncelake.spec.keys import nearest, scalar_keys
from oncelake.spec.problems import Notes
from oncelake.spec.secrets import MASK

PREFIX = "ONCELAKE_"

# Read by other parts of oncelake: no override, and no mistake either.
RESERVED = frozenset({"ONCELAKE_CACHE", "ONCELAKE_CRASH", "ONCELAKE_IVY_SETTINGS"})

SHORT_NAMES: Mapping[str, str] = {
    "KAFKA_BOOTSTRAP_SERVERS": "source.bootstrap",
    "KAFKA_TOPIC": "source.topic",
    "ICEBERG_TABLE": "table.name",
    "CHECKPOINT_LOCATION": "checkpoint",
}

_REFERENCE = re.compile(r"(?P<literal>\$)?\$\{(?P<name>[^}]*)\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Override:
    """The value that the environment variable `variable` gives a key."""

    variable: str
    text: str


def long_name(key: str) -> str:
    """`limits.max_offsets` → ONCELAKE_LIMITS_MAX_OFFSETS."""
    return PREFIX + key.replace(".", "_").upper()


LONG_NAMES: Mapping[str, str] = {long_name(key): key for key in scalar_keys()}


def names_of(key: str) -> tuple[str, ...]:
    """The variables that set `key`, the shorter one first."""
    short = tuple(name for name, target in SHORT_NAMES.items() if target == key)
    return (*short, long_name(key))


def overrides(environ: Mapping[str, str], notes: Notes) -> dict[str, Override]:
    """What the environment sets, by dotted key; names that set nothing are problems."""
    found: dict[str, Override] = {}
    for name, key in [*SHORT_NAMES.items(), *LONG_NAMES.items()]:
        if name not in environ:
            continue
        other = found.get(key)
        if other and other.text != environ[name]:
            notes.problem_of_variable(
                name, f"{other.variable} sets {key} too, to another value: unset one of them"
            )
        found[key] = Override(name, environ[name])
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in LONG_NAMES and name not in RESERVED:
            notes.problem_of_variable(name, _unknown(name))
    return found


def _unknown(name: str) -> str:
    near = nearest(name.removeprefix(PREFIX), [n.removeprefix(PREFIX) for n in LONG_NAMES])
    hint = f"did you mean {PREFIX}{near}?" if near else "unset it"
    return f"sets no key of a spec; {hint} (lists and maps take ${{VAR}} inside the file instead)"


@dataclass(frozen=True, slots=True)
class Filled:
    """A text with its variables filled in, as it is and as it may be shown."""

    text: str
    shown: str
    problems: tuple[str, ...] = ()


def fill(text: str, environ: Mapping[str, str]) -> Filled:
    """Replace each `${VAR}`; `$${` stands for a literal `${`."""
    problems: list[str] = []

    def value(match: re.Match[str]) -> str:
        name = match["name"]
        if match["literal"]:
            return match[0][1:]
        if not _VARIABLE.fullmatch(name):
            problems.append("${…} does not hold a variable's name; write $${ for a literal ${")
        elif name not in environ:
            problems.append(f"the environment variable {name} is not set: export {name}=…")
        return environ.get(name, "")

    def mask(match: re.Match[str]) -> str:
        return match[0][1:] if match["literal"] else MASK

    filled = _REFERENCE.sub(value, text)
    return Filled(filled, _REFERENCE.sub(mask, text), tuple(problems))
