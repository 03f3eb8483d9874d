"""`python -m tilewright.compat.ptodsl`: runs a script, or with `-m` a module, that imports `ptodsl`."""

from __future__ import annotations

import sys

from tilewright.compat.scripts import main

if __name__ == "__main__":
    sys.exit(main("ptodsl", sys.argv[1:]))
