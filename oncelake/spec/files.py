"""Reading small text files, with the reason in words when that fails."""

from __future__ import annotations

from pathlib import Path

from oncelake.spec.problems import Refused

LARGEST = 1_000_000


class NotThere(Refused):
    """There is no such file."""


def read_text(path: Path) -> str:
    """The file's text; Refused with a reason that leaves the path out."""
    return decoded(read_bytes(path))


def decoded(data: bytes) -> str:
    if len(data) > LARGEST:
        raise Refused(f"is larger than {LARGEST:,} bytes: is it the right file?")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Refused(f"is not UTF-8 text (line {line}): save it as UTF-8") from None


def read_bytes(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST + 1)
    except FileNotFoundError:
        raise NotThere("is not there") from None
    except IsADirectoryError:
        raise Refused("is a folder, not a file") from None
    except OSError as error:
        raise Refused(f"cannot be read: {error.strerror}") from None
