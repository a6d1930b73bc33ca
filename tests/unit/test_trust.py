"""The trust store we write is one that Java reads."""

from __future__ import annotations

import ssl
import subprocess
from pathlib import Path

import pytest

from oncelake.local import java, trust


def test_java_reads_every_certificate_of_this_system_and_finds_the_seal_whole(
    tmp_path: Path,
) -> None:
    certificates = ssl.create_default_context().get_ca_certs(binary_form=True)
    if not certificates:
        pytest.skip("Python knows no certificate authorities on this machine")
    store = tmp_path / "trusted.jks"
    assert trust.java_options(store)
    keytool = [str(java.java_command()), "-m", "java.base/sun.security.tools.keytool.Main"]
    listing = ["-list", "-keystore", str(store), "-storetype", "JKS", "-storepass", "changeit"]
    listed = subprocess.run([*keytool, *listing], capture_output=True, text=True)
    assert listed.returncode == 0, listed.stdout
    assert listed.stdout.count("trustedCertEntry") == len(certificates)
