"""The single values of a spec, each from its text; Refused says what it should look like."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from oncelake.spec.keys import nearest
from oncelake.spec.problems import Refused

_PIPELINE = re.compile(r"[a-z0-9_-]{1,100}")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SERVER = re.compile(r"(?:[A-Za-z0-9_]+://)?(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*:[A-Za-z_][A-Za-z0-9_]*")
_SELECT = re.compile(r"(?:select|with)\s", re.IGNORECASE)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_MASTER = re.compile(
    r"local|local\[(?:\*|[0-9]+)(?:,[0-9]+)?\]|local-cluster\[[0-9, ]+\]|yarn|(?:spark|k8s)://\S+"
)

LOG_LEVELS = ("ALL", "TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")


def pipeline_name(text: str) -> str:
    if not _PIPELINE.fullmatch(text):
        raise Refused("must be a name of the letters a-z, digits, _ and -")
    return text


def topic(text: str) -> str:
    if not _TOPIC.fullmatch(text) or text in (".", ".."):
        raise Refused("must be the name of one topic: letters, digits, '.', '_' and '-'")
    return text


def bootstrap(text: str) -> str:
    """`host:port,host:port`, without the blanks."""
    servers = [server.strip() for server in text.split(",")]
    ports = [_SERVER.fullmatch(server) for server in servers]
    if not all(match and 0 < int(match[1]) < 65536 for match in ports):
        raise Refused("must be host:port, or several with commas between")
    return ",".join(servers)


def table_name(text: str) -> str:
    parts = text.split(".")
    if len(parts) != 3:
        raise Refused("must have three parts: catalog.namespace.table")
    if not all(_IDENTIFIER.fullmatch(part) for part in parts):
        raise Refused("must be SQL names: letters, digits and _, not beginning with a digit")
    if parts[0].lower() == "spark_catalog":
        raise Refused("names Spark's own catalog: choose another first part")
    return text


def transform(text: str) -> str:
    """`module:function`, or a SELECT from `rows`."""
    stripped = text.strip()
    if not (_FUNCTION.fullmatch(stripped) or _SELECT.match(stripped)):
        raise Refused("must be module:function, or SQL: SELECT … FROM rows")
    return stripped


def log_level(text: str) -> str:
    if text.upper() not in LOG_LEVELS:
        raise Refused(f"must be one of {', '.join(LOG_LEVELS)}")
    return text.upper()


def master(text: str) -> str:
    if text.startswith("sc://"):
        raise Refused(
            "is Spark Connect, which cannot reach Iceberg's commits: use a classic master"
        )
    if not _MASTER.fullmatch(text):
        raise Refused("must be local[*], local[4], yarn, spark://host:7077 or k8s://…")
    return text


def one_of(*choices: str) -> Callable[[str], str]:
    """A parser that takes exactly one of `choices`."""

    def choose(text: str) -> str:
        if text not in choices:
            near = nearest(text, choices)
            hint = f"; did you mean '{near}'?" if near else ""
            raise Refused(f"must be {' or '.join(choices)}{hint}")
        return text

    return choose


def has_scheme(text: str) -> bool:
    """Whether `text` is a URI (s3a://…, file:…) and no path."""
    return _SCHEME.match(text) is not None


def not_empty(text: str) -> str:
    if not text.strip():
        raise Refused("is empty")
    return text


def local_path(folder: Path) -> Callable[[str], str]:
    """A parser of a path on this machine, which it makes absolute from `folder`."""

    def absolute(text: str) -> str:
        if not text.strip():
            raise Refused("is empty: name a path")
        if text.startswith("~"):
            raise Refused("is not expanded: write ${HOME} in place of ~")
        return str(_without_dots(folder / text))

    return absolute


def location(folder: Path) -> Callable[[str], str]:
    """A parser of a URI (s3a://…, file:…), or of a path as `local_path` takes it."""
    path = local_path(folder)
    return lambda text: text if _SCHEME.match(text) else path(text)


def _without_dots(path: Path) -> Path:
    """Without `..`, by the text alone: the folders need not exist yet."""
    parts: list[str] = []
    for part in path.parts:
        if part != "..":
            parts.append(part)
        elif len(parts) > 1:
            parts.pop()
    return Path(*parts)
