"""Held values: tiles and tensors as whoever steps through a kernel looks at them."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from tilewright import notebook
from tilewright.core.access import OBSERVER
from tilewright.core.expr import Expr
from tilewright.core.region import Array, Region
from tilewright.core.types import TensorType, TileType
from tilewright.interpret.unwritten import Unwritten


class Unset:
    """What a name stands for that has no value yet."""

    def __repr__(self) -> str:
        return "--"


UNSET = Unset()
SHOWN = 16
"""How many rows and columns a notebook shows."""


class Seen(np.ma.MaskedArray):  # pyright: ignore[reportMissingTypeArgument]
    """Elements of which nobody wrote some: those are masked, also in what is computed from them, and print as `--`."""

    def __str__(self) -> str:
        plain: Any = np.asarray(self).flat
        masked: Any = np.ma.getmaskarray(self).flat
        wide = 0

        def text(at: int) -> str:
            nonlocal wide
            found = ("--" if masked[at] else str(plain[at])).rjust(wide)
            wide = max(wide, len(found))
            return found

        order: Any = np.arange(self.size).reshape(self.shape)
        how: Any = {"formatter": {"int": text}}
        np.array2string(order, **how)  # to see how wide they are
        return np.array2string(order, **how)

    __repr__ = __str__


class Held(NDArrayOperatorsMixin):
    """A tile or a tensor as it is at a line: NumPy computes with it, and what nobody wrote is masked, printed as `--`.

    It has the methods of NumPy's arrays, which change nothing here.
    """

    def __init__(self, type_: TileType | TensorType, region: Region) -> None:
        self.type, self.region, self.dtype = type_, region, type_.dtype
        observer = OBSERVER.get()
        self._outputs = observer if isinstance(observer, Unwritten) else None

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent along each axis."""
        return self.region.data.shape

    @property
    def valid_shape(self) -> tuple[int, ...]:
        """The extent of the valid part along each axis."""
        return self.region.valid

    @property
    def mask(self) -> Array:
        """Which elements are not valid, or were never written."""
        mask = np.ones(self.region.data.shape, bool)
        shadow = self.region.shadow
        mask[self.region.window] = False if shadow is None else shadow[self.region.window] != 0
        beside = None if self._outputs is None else self._outputs.beside(self.region.data)
        return mask if beside is None else mask | beside

    @property
    def masked(self) -> Any:
        """The elements, not to be changed: a masked array where nobody wrote some of them."""
        data = self._plain()
        data.flags.writeable = False
        return _seen(data, self.mask)

    def numpy(self) -> Array:
        """Return a copy of all elements: a masked array where nobody wrote some of them."""
        return _seen(self._plain().copy(), self.mask)

    def _plain(self) -> Array:
        """Return the elements as NumPy knows them: those of its types as they are, others as float32."""
        data = self.region.data
        return data.view() if data.dtype.kind in "biufc" else data.astype(np.float32)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.numpy() if dtype is None else self.numpy().astype(dtype)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        given = [each.numpy() if isinstance(each, Held) else each for each in inputs]
        if not any(map(np.ma.isMA, given)):
            return getattr(ufunc, method)(*given, **options)
        if method != "__call__":
            options |= {"axis": options.get("axis", 0)} if method == "reduce" else {}
            return getattr(getattr(np.ma, ufunc.__name__), method)(*given, **options)
        made = ufunc(*(each.data if np.ma.isMA(each) else each for each in given), **options)
        mask = _reached(ufunc, given)  # and not what NumPy calls outside of a domain
        return tuple(_seen(each, mask) for each in made) if isinstance(made, tuple) else _seen(made, mask)

    def __getitem__(self, index: Any) -> Any:
        found = self.masked[index]
        return _seen(np.ma.getdata(found), np.ma.getmaskarray(found)) if isinstance(found, Seen) else found

    def __copy__(self) -> Held:
        return self.__deepcopy__({})

    def __deepcopy__(self, _: dict[int, Any]) -> Held:
        """Return it as it is now, to be kept: later lines may write to what it is a look at."""
        made, shadow = Held.__new__(Held), self.mask.astype(np.uint8)
        region = replace(self.region, data=self.region.data.copy(), shadow=shadow if shadow.any() else None)
        made.type, made.region, made.dtype, made._outputs = self.type, region, self.dtype, None
        return made

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self.__deepcopy__({})))

    def __getattr__(self, name: str) -> Any:
        if "region" not in vars(self):  # not made yet, as while it is read back
            raise AttributeError(name)
        if not name.startswith("_") and hasattr(np.ndarray, name):
            return getattr(self.masked, name)
        own = "shape, dtype, valid_shape, numpy() and the methods of NumPy's arrays"
        raise AttributeError(f"a {self.kind} has no attribute {name!r}: it has {own}", name=name, obj=self)

    def __len__(self) -> int:
        return len(self.region.data)

    @property
    def kind(self) -> str:
        """What people call it."""
        return "tile" if isinstance(self.type, TileType) else "tensor"

    @property
    def title(self) -> str:
        """What it is: its extents, its element type, and how much of it is valid."""
        extents = ", ".join(map(str, self.shape))
        valid = "" if self.valid_shape == self.shape else f", valid [{', '.join(map(str, self.valid_shape))}]"
        return f"{self.kind}[{extents}] of {self.dtype}{valid}"

    def __repr__(self) -> str:
        return f"{self.title}\n{self.masked}"

    def _repr_html_(self) -> str:
        """Return its first elements as a notebook shows them; those that nobody wrote stay empty."""
        whole = self.masked.reshape(-1, self.shape[-1] if self.shape else 1)
        rows = whole[:SHOWN, :SHOWN]
        counted = zip(("rows", "columns"), rows.shape, whole.shape, strict=True)
        cut = " and ".join(f"{some} of {all} {noun}" for noun, some, all in counted if some < all)
        title = f"{self.title}: {cut}" if cut else self.title
        return notebook.grid(title, ([None if e is np.ma.masked else f"{e:.6g}" for e in row] for row in rows))


def _reached(ufunc: Any, given: Sequence[Any]) -> Any:
    """Return which elements of what a function gives are computed from masked ones."""
    masks = [np.ma.getmaskarray(each) for each in given]
    if ufunc.signature is None:
        return np.logical_or.reduce(np.broadcast_arrays(*masks))
    counts = [ufunc(*(mask + (0.0 if mask is one else 1.0) for mask in masks)) for one in masks]  # of a product's terms
    return sum(counts) > 0


def _seen(data: Any, mask: Array) -> Any:
    """Return elements, masked where any are."""
    return Seen(data, mask) if mask.any() else data


def shown(expr: Expr, value: Any) -> Any:
    """Return what an expression is worth, as it can be looked at."""
    if isinstance(value, Region) and isinstance(expr.type, (TensorType, TileType)):
        return Held(expr.type, value)
    return value
