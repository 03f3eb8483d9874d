"""A dict of a class that reads its items in a way of its own."""

from typing import Any

import tilewright.language as pl

EXPECTED = "StaticEvaluationError"


class Percent(dict[str, Any]):
    def __getitem__(self, key: str) -> Any:
        return super().__getitem__(key) / 100


RATES = Percent(rate=50.0)


@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
    return pl.store(pl.load(x, [0, 0], [16, 16]) * RATES["rate"], [0, 0], out)
