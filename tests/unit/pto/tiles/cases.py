"""Cases: what a kernel in `kernels/` is given, and what NumPy says it leaves in its buffers.

A reference changes copies of a kernel's arguments, named as the kernel names them. Text can be retyped: a kernel
written for `f32` runs on `i16` once the word is replaced.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import ml_dtypes
import numpy
from unit.pto.tiles.running import blank

np = cast("Any", numpy)
Array = Any

ELEMENTS: dict[str, Any] = {
    "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i8": np.int8, "i16": np.int16, "i32": np.int32,
    "i64": np.int64, "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32,
}  # fmt: skip
FLOATS = ("f32", "f16", "bf16")
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("ui8", "ui16", "ui32")
INTEGERS = (*SIGNED, *UNSIGNED)
EVERY = (*FLOATS, *INTEGERS)
RELATIVE = {"f32": 2e-5, "f16": 2e-3, "bf16": 1.6e-2}
"""How far a float may lie from its reference, relative to it."""
ABSOLUTE = {"f32": 1e-5, "f16": 1e-3, "bf16": 1e-2}


@dataclass(frozen=True)
class Buffer:
    """An argument that is made anew for each run."""

    make: Callable[[Any], Array]
    type: str


@dataclass(frozen=True)
class Case:
    """A kernel, its arguments and its meaning."""

    kernel: str
    retyped: Mapping[str, str]
    arguments: Mapping[str, Any]
    reference: Callable[..., None]
    grid: int = 1
    exact: bool = False
    slack: float = 1.0
    """By how much sums of many products widen the tolerance."""
    label: str = ""
    target: str = "a5"

    @property
    def name(self) -> str:
        return "-".join([self.kernel, *self.retyped.values(), *([self.label] if self.label else [])])

    def element(self, type_: str) -> str:
        """Return what a type of the kernel's text is in this case."""
        return self.retyped.get(type_, type_)

    def text(self, written: str) -> str:
        """Return the kernel's text with its types replaced, all at once."""
        for number, old in enumerate(self.retyped):
            written = written.replace(old, f"<<{number}>>")
        for number, new in enumerate(self.retyped.values()):
            written = written.replace(f"<<{number}>>", new)
        return written

    def given(self) -> dict[str, Any]:
        """Return fresh arguments, always the same ones."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()))
        made: dict[str, Any] = {}
        for name, argument in self.arguments.items():
            if isinstance(argument, Buffer):
                dtype = ELEMENTS[self.element(argument.type)]
                made[name] = np.ascontiguousarray(argument.make((rng, dtype)))
            else:
                made[name] = argument
        return made


CASES: list[Case] = []


def case(
    kernel: str,
    types: Iterable[str | tuple[str, ...]] = (),
    of: str | tuple[str, ...] = "f32",
    *,
    grid: int = 1,
    exact: bool = False,
    slack: float = 1.0,
    label: str = "",
    target: str = "a5",
    **arguments: Any,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Note a reference for a kernel, once as it is written or once for each of `types` in place of `of`."""
    olds = (of,) if isinstance(of, str) else of

    def note(reference: Callable[..., None]) -> Callable[..., None]:
        rows = [(t,) if isinstance(t, str) else t for t in types] or [()]
        for row in rows:
            retyped = dict(zip(olds, row, strict=False))
            CASES.append(Case(kernel, retyped, arguments, reference, grid, exact, slack, label, target))
        return reference

    return note


def data(*shape: int, type: str = "f32", low: float = -4.0, high: float = 4.0) -> Buffer:
    """Return random elements: floats between bounds, integers over everything their type holds."""

    def make(source: Any) -> Array:
        rng, dtype = source
        if np.dtype(dtype).kind in "iu":
            limits = np.iinfo(dtype)
            return rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
        return rng.uniform(low, high, shape).astype(dtype)

    return Buffer(make, type)


def small(*shape: int, type: str = "f32", low: int = -4, high: int = 5) -> Buffer:
    """Return random small integers in any type; unsigned ones lose their sign."""

    def make(source: Any) -> Array:
        rng, dtype = source
        numbers = rng.integers(low, high, shape)
        return (np.abs(numbers) if np.dtype(dtype).kind == "u" else numbers).astype(dtype)

    return Buffer(make, type)


def room(*shape: int, type: str = "f32") -> Buffer:
    """Return a buffer of sentinels."""
    return Buffer(lambda source: blank(shape, source[1]), type)


def wide(x: Array) -> Array:
    """Return half floats as full ones, in which they are computed; everything else as it is."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x
