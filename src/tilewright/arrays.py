"""NumPy, loaded when first touched: importing the language must not pay for it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ml_dtypes
    import numpy as np
else:

    class _LazyModule:
        def __init__(self, name: str) -> None:
            self._name = name

        def __getattr__(self, attribute: str) -> object:
            value = getattr(importlib.import_module(self._name), attribute)
            setattr(self, attribute, value)
            return value

    np = _LazyModule("numpy")
    ml_dtypes = _LazyModule("ml_dtypes")

__all__ = ["ml_dtypes", "np"]
