#!/bin/sh
# Print the Python to build .venv with: $PYTHON if set, else 3.11, else a newer python3.
set -eu

usable() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

for candidate in ${PYTHON:+"$PYTHON"} python3.11 python3 python3.12 python3.13; do
    if usable "$candidate"; then
        command -v "$candidate"
        exit 0
    fi
done

echo "error: no Python 3.11 or newer with the modules venv and ensurepip was found." >&2
echo "Install one (Debian, Ubuntu: apt install python3.11 python3.11-venv)," >&2
echo "or name one: make PYTHON=/path/to/python3.11 ..." >&2
exit 1
