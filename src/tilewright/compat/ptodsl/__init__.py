"""`ptodsl`, answered by Tilewright: import this first, and kernels written for PTODSL run as they are.

`python -m tilewright.compat.ptodsl script.py` runs a script, `pytest -p tilewright.compat.ptodsl` runs tests. What is
missing says so by name.
"""

from __future__ import annotations

from importlib import import_module

from tilewright.compat.aliases import Package, install

_NAMES = ("scalar", "tile", "pipe")
"""What PTODSL's package has beside `pto`, where it is, too."""


def __getattr__(name: str) -> object:
    """Return a name of the package, loading what it takes."""
    if name == "pto":
        return import_module("tilewright.pto")
    if name in _NAMES:
        return getattr(import_module("tilewright.pto"), name)
    raise AttributeError(_PACKAGE.missing(f"ptodsl.{name}"))


_PACKAGE = Package("ptodsl", {"ptodsl": __name__}, ())
install(_PACKAGE)
