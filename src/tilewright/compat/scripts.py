"""Scripts: what `python -m` runs of another package's users, once its names are answered."""

from __future__ import annotations

import linecache
import os
import runpy
import sys
from collections.abc import Sequence


def usage_of(package: str) -> str:
    """Return how scripts that import a package are run."""
    return f"usage: python -m tilewright.compat.{package} (SCRIPT | - | -m MODULE) [ARGUMENT ...]"


def help_of(package: str) -> str:
    """Return what that does."""
    return f"""{usage_of(package)}

Runs a script ("-" reads it from the standard input), or with -m a module, that imports {package}:
its names are answered by tilewright's. ARGUMENTs are the script's own.
pytest takes the same names with `-p tilewright.compat.{package}`."""


def main(package: str, arguments: Sequence[str]) -> int:
    """Run what the arguments name, as Python itself would; return 2 where they name nothing."""
    is_module = list(arguments[:1]) == ["-m"]
    given = arguments[1:] if is_module else arguments
    if list(arguments) in (["-h"], ["--help"]):
        print(help_of(package))
        return 0
    if not given:
        print(usage_of(package), file=sys.stderr)
        return 2
    sys.argv[:] = given
    in_place = is_module or given[0] == "-"
    sys.path[0] = os.getcwd() if in_place else os.path.dirname(os.path.abspath(given[0]))
    if is_module:
        runpy.run_module(given[0], run_name="__main__", alter_sys=True)
    elif in_place:
        _run_text(sys.stdin.read())
    elif not os.path.exists(given[0]):
        print(f"{usage_of(package)}\nthere is no script {given[0]}", file=sys.stderr)
        return 2
    else:
        runpy.run_path(given[0], run_name="__main__")
    return 0


def _run_text(text: str) -> None:
    """Run a script that is no file; kernels in it are read from its text."""
    linecache.cache["<stdin>"] = len(text), None, text.splitlines(keepends=True), "<stdin>"
    exec(compile(text, "<stdin>", "exec"), vars(sys.modules["__main__"]) | {"__name__": "__main__"})
