"""Rows: what is measured, one file for each row or family of rows.

A file here names its rows in `ROWS`: a `Contest` is held on each number of threads against its contenders, a `Budget`
is measured once by itself. A file that is added is found; nothing else names it.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from budget import Budget
    from contest import Contest


def names() -> list[str]:
    """Return the names of the files, without loading them."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def load(chosen: Sequence[str]) -> list[Contest | Budget]:
    """Return the rows of some files."""
    return [row for name in chosen for row in importlib.import_module(f"{__name__}.{name}").ROWS]
