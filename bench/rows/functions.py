"""Functions: those of mathematics and of networks, one element at a time, beside torch's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from contest import Contest, Field, Work

import tilewright.language as pl
from rows.obvious import beside

N = 2048
OURS: dict[str, Callable[[Any], Any]] = {
    "exp": pl.exp, "exp2": pl.exp2, "log": pl.log, "log2": pl.log2, "log10": pl.log10, "log1p": pl.log1p,
    "sin": pl.sin, "tan": pl.tan, "asin": pl.asin, "acos": pl.acos, "atan": pl.atan, "tanh": pl.tanh,
    "erf": pl.erf, "sigmoid": pl.sigmoid, "gelu": pl.gelu, "softplus": pl.softplus, "expm1": pl.expm1,
    "sinh": pl.sinh, "erfc": pl.erfc,
}  # fmt: skip


def kernel(function: Callable[[Any], Any]) -> Any:
    @pl.jit
    def each(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        for row in pl.parallel(0, x.shape[0], 16):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(function(pl.load(x, [row, 0], [16, x.shape[1]])), [row, 0], out)
        return out

    return each


DOUBLES = ("exp", "log", "log1p", "expm1", "sin", "tan", "asin", "atan", "sinh", "tanh", "erf", "erfc", "gelu")
OF_DOUBLES = 512


def enter(name: str, n: int = N, dtype: torch.dtype = torch.float32) -> Field:
    x = torch.rand(n, n, dtype=dtype) * 0.9 + 0.05
    theirs: Any = getattr(torch, name, None) or getattr(torch.nn.functional, name)
    return beside(kernel(OURS[name]), (x,), lambda: theirs(x))


ROWS = (
    *(
        Contest(f"function {name} {N}²", partial(enter, name), Work(bytes=8 * N * N), target=1.0, group="Functions")
        for name in OURS
    ),
    *(
        Contest(
            f"{name} of doubles {OF_DOUBLES}²",
            partial(enter, name, OF_DOUBLES, torch.float64),
            Work(bytes=16 * OF_DOUBLES**2),
            target=1.0,
            group="Functions",
            calls=4,
        )
        for name in DOUBLES
    ),
)
