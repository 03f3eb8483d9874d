"""Imported: a module that somebody has brought into this process, once its import has come to an end."""

from __future__ import annotations

import sys
from typing import Any


def imported(name: str) -> Any:
    """Return a module that is imported, None for one that is not, or not yet.

    Importing torch takes seconds, and for so long its module, which other threads see already, lacks most names.
    """
    module = sys.modules.get(name)
    if module is None or getattr(getattr(module, "__spec__", None), "_initializing", False):
        return None
    return module
