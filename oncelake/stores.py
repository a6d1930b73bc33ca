"""Java's trust and key stores in librdkafka's words; a store is known by its content."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from oncelake.errors import SpecError
from oncelake.local import java
from oncelake.spec import shown

JKS, PKCS12, PEM = "JKS", "PKCS12", "PEM"
TRUSTED, OWN = "ssl.truststore", "ssl.keystore"
_MAGIC = {b"\xfe\xed\xfe\xed": JKS, b"\xce\xce\xce\xce": JKS}  # the second is JCEKS, its variant
_DER = b"\x30"
_BLOCK = re.compile(r"(-----BEGIN ([^-]+)-----)([^-]+)(-----END \2-----)")
_ENTRY = "Alias name:"
_PASSWORD = "ONCELAKE_STORE_PASSWORD"
_KEYTOOL_SECONDS = 60.0


def trust(options: Mapping[str, str]) -> dict[str, str]:
    """Whom to trust."""
    if inline := options.get(f"{TRUSTED}.certificates"):
        return {"ssl.ca.pem": _wrapped(inline)}
    if not (location := options.get(f"{TRUSTED}.location")):
        return {}
    if _kind(f"{TRUSTED}.location", location) == PEM:
        return {"ssl.ca.location": location}
    changed = Path(location).stat().st_mtime_ns
    return {"ssl.ca.pem": _certificates(location, options.get(f"{TRUSTED}.password"), changed)}


def own(options: Mapping[str, str]) -> dict[str, str]:
    """Who we are, to a broker that asks for a certificate."""
    password = {k: v for k, v in options.items() if k == "ssl.key.password"}
    if inline := options.get(f"{OWN}.certificate.chain"):
        key = _wrapped(options.get(f"{OWN}.key", ""))
        return {"ssl.certificate.pem": _wrapped(inline), "ssl.key.pem": key, **password}
    if not (location := options.get(f"{OWN}.location")):
        return {}
    kind = _kind(f"{OWN}.location", location)
    if kind == PEM:
        return {"ssl.certificate.location": location, "ssl.key.location": location, **password}
    if kind == JKS:
        raise _jks_keystore(location)
    return {"ssl.keystore.location": location,
            "ssl.keystore.password": options.get(f"{OWN}.password", "")}  # fmt: skip


def _kind(option: str, location: str) -> str:
    try:
        content = Path(location).read_bytes()
    except OSError as error:
        raise SpecError(
            f"source.options: {option} is {shown(location)}, which cannot be read: "
            f"{error.strerror}. Correct the path, or the file's permissions"
        ) from error
    if b"-----BEGIN " in content:
        return PEM
    if content.startswith(_DER):
        return PKCS12
    if kind := _MAGIC.get(content[:4]):
        return kind
    raise SpecError(
        f"source.options: {option} is {shown(location)}, which holds none of JKS, PKCS12 and PEM. "
        "Correct the path"
    )


def _jks_keystore(location: str) -> SpecError:
    here, there = shlex.quote(location), shlex.quote(str(Path(location).with_suffix(".p12")))
    return SpecError(
        f"source.options: {OWN}.location is {shown(location)}, in Java's own format JKS, whose "
        "keys only Java reads; oncelake itself asks Kafka by librdkafka. Make PKCS12 of it, which "
        f"both read, and name that in {OWN}.location. Type: keytool -importkeystore -srckeystore "
        f"{here} -destkeystore {there} -deststoretype PKCS12"
    )


@cache
def _certificates(location: str, password: str | None, changed: int) -> str:
    """The certificates that Java trusts by this store, as PEM. `changed` has a new file read."""
    del changed
    listed = _keytool(["-list", "-rfc", "-keystore", location], password)
    if listed.returncode:
        said = (listed.stdout.strip() or listed.stderr.strip() or "nothing").splitlines()[-1]
        raise SpecError(
            f"source.options: {TRUSTED}.location is {shown(location)}, which keytool does not "
            f"read: {shown(said)}. Check it and {TRUSTED}.password"
        )
    entries = listed.stdout.split(_ENTRY)[1:]
    # Of an entry with a key Java trusts the first of its chain.
    found = [block.group() for entry in entries if (block := _BLOCK.search(entry))]
    if not found:
        raise SpecError(
            f"source.options: {TRUSTED}.location is {shown(location)}, in which Java finds no "
            f"certificate. PKCS12 is read with {TRUSTED}.password only; to put a certificate in, "
            f"type: keytool -importcert -file CA.pem -keystore {shlex.quote(location)}"
        )
    return "\n".join(found) + "\n"


def _keytool(words: list[str], password: str | None) -> subprocess.CompletedProcess[str]:
    """By its class: a Java without tools has it too. The password is on no command line."""
    java_itself = [str(java.java_command()), "-Duser.language=en"]
    command = [*java_itself, "-m", "java.base/sun.security.tools.keytool.Main", *words]
    environment = java.environment()
    if password:
        command += ["-storepass:env", _PASSWORD]
        environment[_PASSWORD] = str(password)
    try:
        return subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=_KEYTOOL_SECONDS)  # fmt: skip
    except subprocess.TimeoutExpired:
        late = f"no answer within {_KEYTOOL_SECONDS:.0f} s"
        return subprocess.CompletedProcess(command, 1, "", late)


def _wrapped(pem: str) -> str:
    """PEM in one line, which Java takes, in lines, as OpenSSL wants it."""
    return _BLOCK.sub(lambda b: "\n".join((b[1], *b[3].split(), b[4])), pem) if _flat(pem) else pem


def _flat(pem: str) -> bool:
    return "\n" not in pem.strip()
