"""Declares a kernel in a file of PTO text, launches it in every way, and prints what happened as JSON."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np

from tilewright import pto


def main(path: str) -> None:
    """Launch the kernel in a file."""

    @pto.jit(source=path)
    def add(a: pto.ptr(pto.f32, "gm"), b: pto.ptr(pto.f32, "gm"), out: pto.ptr(pto.f32, "gm"), rows: pto.index):  # pyright: ignore
        ...

    a, b, out = (np.full((32, 16), n, np.float32) for n in range(3))
    found: dict[str, Any] = {"sums": [], "error": ""}
    try:
        for pointers in ((a, b, out), tuple(x.ctypes.data for x in (a, b, out)), (a, b, b)):
            out[:] = 0
            add[4, None](*pointers, 32)
            found["sums"].append(float(out.sum() if pointers[2] is not b else b.sum()))
        add[5, None](a, b, out, 40)
    except Exception as error:
        found["error"] = f"{type(error).__name__}: {error}"
    found["compiles"] = add.cache_info().compiles
    found["modules"] = sorted(name for name in sys.modules if name.startswith(("tilewright.pto", "llvmlite")))
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
