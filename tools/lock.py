"""Write the locks and checksums that follow from oncelake/versions.toml (`make lock`).

requirements.lock       Python packages, with hashes
requirements-java.lock  a Java runtime as a Python package, with hashes
oncelake/local/jars.sha256  the jars, with checksums
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from uv import find_uv_bin

from oncelake.local import ivy, jars
from oncelake.local.declared import declared
from oncelake.versions import pinned

ROOT = Path(__file__).resolve().parent.parent
HEADER = "# Written by `make lock` from oncelake/versions.toml; do not edit.\n"


def main() -> int:
    versions = pinned()
    lock_python(ROOT / "requirements.lock", versions["python"] | versions["python-dev"])
    lock_python(ROOT / "requirements-java.lock", versions["java"])
    lock_jars(ROOT / "oncelake" / "local" / "jars.sha256")
    return 0


def requirements(pins: dict[str, Any]) -> str:
    """The pins as pip reads them: `pyiceberg[pyarrow]==0.12.0`."""
    lines = []
    for name, pin in pins.items():
        extras = f"[{','.join(pin['extras'])}]" if "extras" in pin else ""
        lines.append(f"{name}{extras}=={pin['version']}\n")
    return "".join(lines)


def lock_python(lock: Path, pins: dict[str, Any]) -> None:
    """Compile `pins` into `lock`; what is locked already stays, unless a pin forbids it."""
    command = [find_uv_bin(), "pip", "compile", "-", "--generate-hashes", "--universal"]
    command += ["--python-version", "3.11", "--no-header", "--quiet"]
    with tempfile.TemporaryDirectory(prefix="oncelake-lock-") as folder:
        output = Path(folder) / lock.name
        output.write_text(lock.read_text() if lock.exists() else "")
        command += ["--output-file", str(output)]
        subprocess.run(command, input=requirements(pins), text=True, check=True)
        text = output.read_text()
    write(lock, HEADER + text)


def lock_jars(checksums: Path) -> None:
    """Resolve the jars from scratch and write the checksum of each."""
    with tempfile.TemporaryDirectory(prefix="oncelake-lock-") as folder:
        retrieved = ivy.resolve(declared(), Path(folder), print)
        sums = jars.checksums_of(retrieved)
    write(checksums, "".join(f"{digest}  {name}\n" for name, digest in sums.items()))


def write(target: Path, text: str) -> None:
    """Leave an equal file untouched, so that `make` sees no change."""
    changed = not target.exists() or target.read_text() != text
    if changed:
        target.write_text(text)
    print(f"{target.relative_to(ROOT)}: {'written' if changed else 'unchanged'}")


if __name__ == "__main__":
    sys.exit(main())
