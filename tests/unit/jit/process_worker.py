"""Imports a module, calls its kernel some times, and prints what happened as JSON."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

CALLS = 3


def main(path: str, before: str, index: str) -> None:
    """Run the kernel in a file on ones, after some statements about its module `m`."""
    sys.path.insert(0, str(Path(path).parent))
    spec = importlib.util.spec_from_file_location("kernels_of_a_test", path)
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    exec(before, {"m": module, "path": Path(path)})
    found: dict[str, Any] = {"results": [], "error": ""}
    for _ in range(CALLS):
        out = np.zeros((8, 8), np.float32)
        try:
            module.kernel(np.ones((8, 8), np.float32), np.array([int(index)], np.int32), out)
            found["results"].append(float(out[0, 0]))
        except Exception as error:
            found["error"] = f"{type(error).__name__}: {error}"
    found |= module.kernel.cache_info()._asdict()
    found["modules"] = sorted(name for name in sys.modules if name.startswith(("tilewright", "llvmlite")))
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
