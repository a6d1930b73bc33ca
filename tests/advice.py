"""What an error says is to be typed next, read as a shell would read it."""

from __future__ import annotations

import shlex


def advised(error: BaseException) -> str:
    """The statement of the `oncelake sql` that the error names."""
    _, found, rest = str(error).partition("oncelake sql PIPELINE.yaml ")
    assert found, f"no command in: {error}"
    words = shlex.shlex(rest, posix=True, punctuation_chars=False)
    words.whitespace_split = True
    statement = words.get_token()
    assert statement is not None
    return statement.rstrip(",.")
