"""A cache that nothing can be written to."""

import os
from pathlib import Path

import tilewright.language as pl

EXPECTED = "CacheWarning"


@pl.jit
def kernel(x: pl.Tensor[[8, 16], pl.FP32], out: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [8, 16]) * 2.0, [0, 0], out)
    return out


cache = Path(os.environ["TILEWRIGHT_CACHE_DIR"]) / "file"
cache.touch()
os.environ["TILEWRIGHT_CACHE_DIR"] = str(cache)
kernel.compile()
