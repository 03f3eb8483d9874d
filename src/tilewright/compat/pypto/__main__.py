"""`python -m tilewright.compat.pypto`: runs a script, or with `-m` a module, that imports `pypto`."""

from __future__ import annotations

import sys

from tilewright.compat.scripts import main

if __name__ == "__main__":
    sys.exit(main("pypto", sys.argv[1:]))
