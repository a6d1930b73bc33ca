"""Keys, certificates and Java's stores of them, made by the keytool of the Java at hand."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from oncelake.local import java

PASSWORD = "of-the-store"


def keytool(*words: str | Path) -> str:
    """Its class, since a Java may be without tools; the password is for every store."""
    command = [java.java_command(), "-m", "java.base/sun.security.tools.keytool.Main", *words]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def key_store(file: Path, kind: str = "PKCS12") -> Path:
    """A key and its certificate, signed by itself, for this machine's address."""
    keytool("-genkeypair", "-alias", file.stem, "-keyalg", "RSA", "-dname", f"CN={file.stem}",
            "-ext", "san=ip:127.0.0.1", "-validity", "2", "-storetype", kind, "-keypass", PASSWORD,
            "-storepass", PASSWORD, "-keystore", file)  # fmt: skip
    return file


def certificate(store: Path) -> str:
    """The certificate in a key store, as PEM."""
    listed = keytool("-exportcert", "-rfc", "-alias", store.stem, "-storepass", PASSWORD,
                     "-keystore", store)  # fmt: skip
    return listed[listed.index("-----BEGIN") :]


def private_key(store: Path) -> str:
    """The key in a PKCS12 store, as PEM without a password: no tool of Java's gives it."""
    if not shutil.which("openssl"):
        pytest.skip("no openssl on this machine")
    command = ["openssl", "pkcs12", "-in", store, "-nocerts", "-nodes"]
    done = subprocess.run([*map(str, command), "-passin", f"pass:{PASSWORD}"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    return done.stdout[done.stdout.index("-----BEGIN") :]


def trust_store(file: Path, trusted: Path, kind: str = "JKS") -> Path:
    """A store that trusts the certificate of a key store."""
    pem = file.with_suffix(".pem")
    pem.write_text(certificate(trusted))
    keytool("-importcert", "-noprompt", "-alias", trusted.stem, "-file", pem, "-storetype", kind,
            "-storepass", PASSWORD, "-keystore", file)  # fmt: skip
    return file
