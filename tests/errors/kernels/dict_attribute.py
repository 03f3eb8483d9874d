"""A dict whose items are attributes too, in Python."""

from typing import Any

import tilewright.language as pl

EXPECTED = "UnknownAttributeError"


class Config(dict[str, Any]):
    def __getattr__(self, name: str) -> Any:
        return self[name]


CONFIG = Config(rate=2.0)


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
    return pl.store(pl.load(x, [0, 0], [16, 16]) * CONFIG.rate, [0, 0], out)
