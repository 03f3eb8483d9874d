"""Held values: tiles and tensors as whoever steps through a kernel looks at them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from tilewright import notebook
from tilewright.core.expr import Expr
from tilewright.core.region import Array, Region
from tilewright.core.types import TensorType, TileType


class Unset:
    """What a name stands for that has no value yet."""

    def __repr__(self) -> str:
        return "--"


UNSET = Unset()
SHOWN = 16
"""How many rows and columns a notebook shows."""


class Held(NDArrayOperatorsMixin):
    """A tile or a tensor as it is at a line: NumPy computes with it, and what nobody wrote prints as `--`."""

    def __init__(self, type_: TileType | TensorType, region: Region) -> None:
        self.type, self.region, self.dtype = type_, region, type_.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent along each axis."""
        return self.region.data.shape

    @property
    def valid_shape(self) -> tuple[int, ...]:
        """The extent of the valid part along each axis."""
        return self.region.valid

    @property
    def masked(self) -> Any:
        """The elements as a masked array: what is not valid, or was never written, is masked."""
        data = self.region.data
        mask = np.ones(data.shape, bool)
        shadow = self.region.shadow
        mask[self.region.window] = False if shadow is None else shadow[self.region.window] != 0
        return np.ma.array(data if data.dtype.kind in "biufc" else data.astype(np.float32), mask=mask)

    def numpy(self) -> Array:
        """Return a copy of all elements; those that nobody wrote look wrong."""
        return np.array(self.region.data)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        plain = [each.numpy() if isinstance(each, Held) else each for each in inputs]
        return getattr(ufunc, method)(*plain, **options)

    def __getitem__(self, index: Any) -> Any:
        return self.masked[index]

    def __len__(self) -> int:
        return len(self.region.data)

    @property
    def title(self) -> str:
        """What it is: its extents, its element type, and how much of it is valid."""
        extents = ", ".join(map(str, self.shape))
        valid = "" if self.valid_shape == self.shape else f", valid [{', '.join(map(str, self.valid_shape))}]"
        kind = "tile" if isinstance(self.type, TileType) else "tensor"
        return f"{kind}[{extents}] of {self.dtype}{valid}"

    def __repr__(self) -> str:
        return f"{self.title}\n{self.masked}"

    def _repr_html_(self) -> str:
        """Return its first elements as a notebook shows them; those that nobody wrote stay empty."""
        rows = self.masked.reshape(-1, self.shape[-1] if self.shape else 1)[:SHOWN, :SHOWN]
        return notebook.grid(self.title, ([None if e is np.ma.masked else f"{e:.6g}" for e in row] for row in rows))


def shown(expr: Expr, value: Any) -> Any:
    """Return what an expression is worth, as it can be looked at."""
    if isinstance(value, Region) and isinstance(expr.type, (TensorType, TileType)):
        return Held(expr.type, value)
    return value
