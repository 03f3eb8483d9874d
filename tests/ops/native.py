"""Native runs: kernels compiled for this machine, held against the interpreter.

Every array lies inside a larger one that is loud all around: what is read there shows in the results, and what is
written there is found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from ops.kernels import Array, floating
from ops.launched import launched

from tilewright.backends.cpu.backend import CPU
from tilewright.core.program import Function
from tilewright.core.region import Region, whole
from tilewright.dtypes import DataType
from tilewright.errors import ExecutionError
from tilewright.frontend.programs import as_program
from tilewright.interpret import machine
from tilewright.passes.manager import PassManager

MARGIN = 8


class Native:
    """A kernel in both forms."""

    def __init__(self, function: Function) -> None:
        self.program = as_program(function)
        self.name = function.name
        lowered = PassManager.get_strategy().run_passes(self.program)
        self.code = CPU().compile(lowered)
        self.native = CPU().load(lowered, self.code)

    def run(
        self, args: Sequence[Array | float], *, packed: bool = False, left: Sequence[Array | float] | None = None
    ) -> list[tuple[Array, Array]]:
        """Return each array as native code and as the interpreter leave it; native code is given windows, or all.

        `left` is what the interpreter leaves, where that is known.
        """
        args = numbers_of(args)
        theirs = [_copied(arg) for arg in args] if left is None else left
        ours = [Embedded(np.reshape(arg, -1) if packed and isinstance(arg, np.ndarray) else arg) for arg in args]
        given: list[Any] = [_shaped_like(held.inner, arg) for held, arg in zip(ours, args, strict=True)]
        launched(self.native, self.name, given)
        if left is None:
            machine.run(self.program, self.name, [_argument(arg) for arg in theirs])
        for held in ours:
            held.assert_untouched_around()
        return [(got, want) for got, want in zip(given, theirs, strict=True) if isinstance(want, np.ndarray)]

    def errors(self, args: Sequence[Array | float]) -> list[ExecutionError | None]:
        """Return what native code and the interpreter object to, and check that nothing around is written."""
        args = numbers_of(args)
        ours = [Embedded(arg) for arg in args]
        found = [
            error_of(lambda: launched(self.native, self.name, [held.inner for held in ours])),
            error_of(lambda: machine.run(self.program, self.name, [_argument(_copied(a)) for a in args])),
        ]
        for held in ours:
            held.assert_untouched_around()
        return found


def error_of(action: Any) -> ExecutionError | None:
    """Return what an action raises; None where it ends well."""
    try:
        action()
    except ExecutionError as error:
        return error
    return None


def numbers_of(args: Sequence[Array | float]) -> list[Array | float]:
    """Return arguments with arrays of no axes as numbers."""
    return [arg.item() if isinstance(arg, np.ndarray) and not arg.ndim else arg for arg in args]


def _shaped_like(arg: Any, other: Array | float) -> Any:
    return np.reshape(arg, other.shape) if isinstance(other, np.ndarray) else arg


def _copied(arg: Array | float) -> Array | float:
    return np.array(arg) if isinstance(arg, np.ndarray) else arg


def _argument(arg: Array | float) -> Region | float:
    return whole(arg) if isinstance(arg, np.ndarray) else arg


def of_bits(raw: Any, dtype: DataType) -> Array:
    """Return the elements of a type that integers of its size are the bits of; of four bits, the last ones."""
    if dtype.bits == 4:
        raw = (raw % 16 + 240 * (raw % 16 > 7) * dtype.is_signed_int()).astype(np.uint8)
    return raw.view(dtype.numpy)


def loud(dtype: np.dtype[Any]) -> int:
    """Return the byte that margins are filled with: a NaN of most floats."""
    return 1 if dtype == np.bool_ else 0xFF if dtype.kind in "fV" else 0x5B


class Embedded:
    """A copy of an argument inside a larger array; a number is itself."""

    def __init__(self, arg: Array | float) -> None:
        self.inner: Any = arg
        self.outer: Any = None
        if isinstance(arg, np.ndarray):
            self.outer = _margins(arg)
            self.inner = self.outer[_middle(arg)]
            self.inner[...] = arg

    def assert_untouched_around(self) -> None:
        """Fail if anything around the inner part has changed."""
        if self.outer is not None:
            clean = _margins(self.inner)
            clean[_middle(self.inner)] = self.inner
            assert clean.tobytes() == self.outer.tobytes(), "something around an array was written"


def _margins(array: Array) -> Any:
    outer: Any = np.zeros([extent + 2 * MARGIN for extent in array.shape], array.dtype)
    outer.view(np.uint8)[...] = loud(array.dtype)
    return outer


def _middle(array: Array) -> tuple[slice, ...]:
    return tuple(slice(MARGIN, MARGIN + extent) for extent in array.shape)


def assert_same(got: Array, want: Array, ulp: float = 0, scale: Array | None = None, zeros: bool = False) -> None:
    """Fail unless elements are equal or within `ulp` units of the last place of `scale`; NaN meets NaN.

    Zeros of different signs are different unless `zeros`.
    """
    assert got.dtype == want.dtype and got.shape == want.shape
    if got.dtype.kind in "iub" or got.dtype.itemsize == 1:
        assert got.tobytes() == want.tobytes(), _difference(got, want, got != want)
        return
    with np.errstate(all="ignore"):
        ours, theirs = (a.astype(np.float64) for a in (got, want))
        far = np.abs(ours - theirs) > ulp * distance(np.abs(theirs) if scale is None else scale, got.dtype)
    infinite = ~(np.isfinite(ours) & np.isfinite(theirs))
    wrong = np.where(infinite, ours != theirs, far) & ~(np.isnan(ours) & np.isnan(theirs))
    if not zeros and not ulp:
        wrong |= (np.signbit(ours) != np.signbit(theirs)) & ~np.isnan(ours)
    assert not wrong.any(), _difference(got, want, wrong)


def assert_converted(got: Array, want: Array, ulp: float = 0) -> None:
    """Fail unless elements are equal; which NaN it is does not matter, nor the unused half of a byte."""
    if got.dtype.kind == "V" and got.dtype.itemsize == 1:
        got, want = got.astype(np.float32), want.astype(np.float32)
    assert_same(got, want, ulp)


def _difference(got: Array, want: Array, wrong: Array) -> str:
    at = tuple(int(i) for i in np.argwhere(wrong)[0]) if wrong.any() else ()
    return f"{int(wrong.sum())} of {wrong.size} differ, first at {at}: got {got[at]!r}, want {want[at]!r}"


def distance(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return the distance between neighbours of `dtype` around each value."""
    info = floating(dtype)
    exponent = np.frexp(np.where(np.isfinite(values), values, 1.0))[1] - 1
    return np.maximum(np.ldexp(float(info.eps), exponent), float(info.smallest_subnormal))
