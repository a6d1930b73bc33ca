"""The certificates this system trusts, in the form that Java reads.

An installed Java is set up for its system. The packaged one knows public authorities only, and
would refuse a repository behind a company's own, which pip and the browser accept.
"""

from __future__ import annotations

import hashlib
import ssl
import struct
from collections.abc import Sequence
from pathlib import Path

# Java's own format JKS: it may be read without a password, but its seal is made with one.
_MAGIC, _VERSION, _TRUSTED_CERTIFICATE = 0xFEEDFEED, 2, 2
_SEAL = "changeit".encode("utf-16-be") + b"Mighty Aphrodite"


def java_options(store: Path) -> list[str]:
    """Write `store` and give the options that make Java use it; none if nothing is known."""
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not certificates:
        return []
    store.write_bytes(trust_store(certificates))
    return [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStoreType=JKS"]


def trust_store(certificates: Sequence[bytes]) -> bytes:
    """A JKS trust store of X.509 certificates (DER)."""
    entries = b"".join(_entry(number, der) for number, der in enumerate(certificates))
    content = struct.pack(">III", _MAGIC, _VERSION, len(certificates)) + entries
    return content + hashlib.sha1(_SEAL + content, usedforsecurity=False).digest()


def _entry(number: int, der: bytes) -> bytes:
    made_at = 0  # milliseconds; Java shows it and uses it for nothing
    head = struct.pack(">I", _TRUSTED_CERTIFICATE) + _text(f"system-{number}")
    return head + struct.pack(">Q", made_at) + _text("X.509") + struct.pack(">I", len(der)) + der


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")
