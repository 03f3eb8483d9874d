"""A process that takes itself for Windows and has nothing that Windows lacks: it emits code, and interprets."""

from __future__ import annotations

import os
import platform
import sys
from importlib import import_module

import numpy as np

for known in ("llvmlite.binding", "ml_dtypes"):
    import_module(known)
sys.platform = "win32"
platform.machine = lambda: "AMD64"
sys.modules["fcntl"] = None  # pyright: ignore[reportArgumentType] - so that importing it fails
os.supports_dir_fd.clear()
for name in ("fork", "register_at_fork", "sched_getaffinity", "uname", "O_NOFOLLOW", "O_DIRECTORY", "O_NONBLOCK"):
    delattr(os, name)

import tilewright.language as pl  # noqa: E402
from tilewright.backends.cpu.backend import CPU  # noqa: E402
from tilewright.native.elf import read  # noqa: E402
from tilewright.native.interrupts import look_address  # noqa: E402
from tilewright.native.target import host  # noqa: E402
from tilewright.passes.manager import PassManager  # noqa: E402
from tilewright.runtime import RunConfig  # noqa: E402


@pl.jit
def doubled(x: pl.Tensor[[1, 3], pl.FP32], out: pl.Out[pl.Tensor[[1, 3], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        tile = pl.load(x, [0, 0], [1, 3])
        pl.store(pl.add(tile, tile), [0, 0], out)
    return out


def main() -> None:
    x, out = np.array([[1, 2, 3]], np.float32), np.zeros((1, 3), np.float32)
    program = doubled.compile(x, out, config=RunConfig(platform="interpret")).program
    doubled(x, out, config=RunConfig(platform="interpret"))
    code = CPU().compile(PassManager.get_strategy().run_passes(program))
    assert look_address() == 0
    print(f"{host().triple}, {read(code.object).machine} objects, {out[0]}")


if __name__ == "__main__":
    main()
