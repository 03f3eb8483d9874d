"""A process that takes itself for macOS on x86-64, whose calling convention is Linux's: all but the system itself.

What has to know better is imported before.
"""

from __future__ import annotations

import platform
import sys
import time
from importlib import import_module

import numpy as np
from tasks import tasks

for known in ("llvmlite.binding", "ml_dtypes"):
    import_module(known)
sys.platform = "darwin"
platform.machine = lambda: "x86_64"

import tilewright.language as pl  # noqa: E402
from tilewright.call.warm import is_native  # noqa: E402
from tilewright.native import loader  # noqa: E402
from tilewright.native.assemble import assemble  # noqa: E402
from tilewright.native.target import host  # noqa: E402

ULOCK = """
declare i64 @syscall(i64, ...)
define i32 @__ulock_wait(i32 %kind, ptr %word, i64 %value, i32 %never) nounwind {
  %low = trunc i64 %value to i32
  %s = call i64 (i64, ...) @syscall(i64 202, ptr %word, i32 128, i32 %low, ptr null, ptr null, i32 0)
  ret i32 0
}
define i32 @__ulock_wake(i32 %kind, ptr %word, i64 %none) nounwind {
  %s = call i64 (i64, ...) @syscall(i64 202, ptr %word, i32 129, i32 2147483647, ptr null, ptr null, i32 0)
  ret i32 0
}
"""


@pl.jit
def exponentials(x: pl.Tensor[[64, 512], pl.FP32], out: pl.Out[pl.Tensor[[64, 512], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.parallel(0, 64, 4):
            pl.store(pl.exp(pl.load(x, [i, 0], [4, 512])), [i, 0], out)
    return out


def main() -> None:
    before = tasks()
    ulock, found = loader.load(assemble(ULOCK, host()).object).pin().addresses, loader.library_symbol

    def symbol(name: str) -> int:
        return ulock.get(name) or found(name)

    setattr(loader, "library_symbol", symbol)  # noqa: B010
    x = np.random.default_rng(0).standard_normal((64, 512), np.float32)
    for _ in range(4):
        out = np.zeros_like(x)
        exponentials(x, out)
        assert np.allclose(out, np.exp(x), rtol=1e-6)
        time.sleep(0.005)  # workers fall asleep
    calls = "native" if is_native() else "plain"
    print(f"{host().triple}, {calls} calls, {len(tasks() - before)} workers")


if __name__ == "__main__":
    main()
