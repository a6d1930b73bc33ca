"""What must not be shown, and what is shown in its place."""

from __future__ import annotations

import re

MASK = "***"

_SECRET_WORDS = (
    "password|passwd|passphrase|pwd|secret|token|credential|jaas|bearer|authorization|userinfo|"
    "apikey|accesskey|accountkey|privatekey|sslkey|keystorekey|encryptionkey|signature|"
    "connectionstring"
)
_SECRET_KEY = re.compile(_SECRET_WORDS)
_SECRET_PART = re.compile(r"(?<![a-z0-9])sas(?![a-z0-9])")
"""Azure's shared access signatures: `fs.azure.sas.container.account`."""
_SEPARATORS = re.compile(r"[^a-z0-9]+")

# Greedy up to the last @: a password may hold any sign, and hiding too much does no harm.
_USER_INFO = re.compile(r"//(?:[^/?#\s:]*:.*|[^/?#\s]*)@", re.DOTALL)
_ORACLE_USER = re.compile(r"(jdbc:oracle:\w+:).*@", re.DOTALL)
_ASSIGNMENT = re.compile(
    r"(?P<key>[\w.-]*(?:passw|pwd|secret|token|credential|signature|api[._-]?key|access[._-]?key)"
    r"[\w.-]*|\bsig)"
    r"(?P<sign>\s*[=:]\s*)(?P<value>\"[^\"]*\"?|'[^']*'?|[^\s&;,]+)",
    re.IGNORECASE,
)


_told: set[str] = set()
"""What settings with a secret's name were given: a server may repeat it in words of its own."""
_SHORTEST_TOLD = 8


class Secret(str):
    """Text that works as its value wherever it is used, and shows itself as `shown`.

    Spark and Kafka get the value; `repr`, `show` and our messages get `shown`.
    """

    __slots__ = ("shown",)
    shown: str

    def __new__(cls, value: str, shown: str = MASK) -> Secret:
        secret = super().__new__(cls, value)
        secret.shown = shown
        return secret

    def __repr__(self) -> str:
        return repr(self.shown)

    def __reduce__(self) -> tuple[type[Secret], tuple[str, str]]:
        return Secret, (str(self), self.shown)


def looks_secret(key: str) -> bool:
    """Whether a setting of this name holds a secret: `sasl.jaas.config`, `s3.secret-access-key`."""
    lower = key.lower()
    squeezed = _SEPARATORS.sub("", lower)
    return bool(_SECRET_KEY.search(squeezed) or _SECRET_PART.search(lower))


def scrub(text: str) -> str:
    """`text` without the passwords that URIs and assignments in it carry, or that we were given."""
    for told in _told:
        text = text.replace(told, MASK)
    text = _USER_INFO.sub(f"//{MASK}@", text)
    text = _ORACLE_USER.sub(rf"\1{MASK}@", text)
    return _ASSIGNMENT.sub(rf"\g<key>\g<sign>{MASK}", text)


def shown(value: str) -> str:
    """What may be shown of `value`."""
    return value.shown if isinstance(value, Secret) else scrub(value)


def guarded(key: str, value: str) -> str:
    """`value`, as a Secret when its key or its text says that it is one."""
    secret = bool(value) and looks_secret(key)
    if secret and len(value) >= _SHORTEST_TOLD:
        _told.add(str(value))
    display = MASK if secret else shown(value)
    return value if display == value else Secret(value, display)
