"""`python -m oncelake` is the command `oncelake`."""

from __future__ import annotations

import sys

from oncelake.cli import main

if __name__ == "__main__":
    sys.exit(main())
