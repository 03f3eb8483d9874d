"""`python -m tilewright.compat.pypto`: runs a script, or with `-m` a module, that imports `pypto`."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Sequence

USAGE = "usage: python -m tilewright.compat.pypto (SCRIPT | -m MODULE) [ARGUMENT ...]"


def main(arguments: Sequence[str]) -> int:
    """Run what the arguments name, as Python itself would; return 2 where they name nothing."""
    is_module = list(arguments[:1]) == ["-m"]
    given = arguments[1:] if is_module else arguments
    if not given:
        print(USAGE, file=sys.stderr)
        return 2
    sys.argv[:] = given
    sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.abspath(given[0]))
    if is_module:
        runpy.run_module(given[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(given[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
