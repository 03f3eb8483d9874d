"""Golden checks: whether results are what they should be, and where they are furthest from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tilewright.arrays import np
from tilewright.call.frameworks import array_of
from tilewright.core.region import Array
from tilewright.dtypes import BF16, FP4, FP8E4M3FN, FP8E5M2, FP8E8M0, FP16, FP32, FP64, STORABLE, DataType
from tilewright.errors import TilewrightError

Results: TypeAlias = Any
"""An array or a number, or several of them in a sequence or by name."""

TOLERANCES = {  # relative and absolute: a few roundings of the type, in whatever order a sum is taken
    FP32: (1e-5, 1e-5),
    FP64: (1e-12, 1e-12),
    FP16: (2e-3, 1e-3),
    BF16: (1.6e-2, 1e-2),
    FP8E4M3FN: (0.13, 0.02),
    FP8E5M2: (0.26, 0.02),
    FP8E8M0: (0.5, 0.0),
    FP4: (0.5, 0.25),
}
"""How far results may be off where nobody says; types that are not here must agree to the bit."""


class GoldenError(TilewrightError, AssertionError):
    """Results that are not what they should be."""


@dataclass(frozen=True)
class Tolerance:
    """How far a result may be off: `absolute + relative * |expected|`."""

    relative: float
    absolute: float

    @staticmethod
    def of(arrays: Sequence[Array], rtol: float | None = None, atol: float | None = None) -> Tolerance:
        """Return what is allowed between arrays: that of the least exact of them where nothing else is said."""
        known = [TOLERANCES.get(dtype, (0.0, 0.0)) for array in arrays for dtype in _types(array)]
        relative, absolute = (max((each[i] for each in known), default=0.0) for i in (0, 1))
        return Tolerance(relative if rtol is None else rtol, absolute if atol is None else atol)


@dataclass(frozen=True)
class Difference:
    """Where a result is furthest from what it should be, and how many of its elements are too far."""

    index: tuple[int, ...]
    actual: Any
    expected: Any
    off: float
    allowed: float
    total: int
    wrong: Sequence[tuple[int, ...]]
    """Where all of them are that are too far, in order."""

    def __str__(self) -> str:
        where = f" at {list(self.index)}" if self.index else ""
        return (
            f"{len(self.wrong)} of {self.total} elements are off; the worst{where} is {self.actual}, expected "
            f"{self.expected}: off by {self.off:.3g}, allowed {self.allowed:.3g}"
        )


LISTED = 20
"""How many wrong elements are listed one by one."""


def assert_golden(
    actual: Results,
    expected: Results,
    rtol: float | None = None,
    atol: float | None = None,
    name: str = "the result",
    *,
    skip_nan: bool = False,
) -> None:
    """Raise GoldenError where results are not what they should be, showing the worst element and its index.

    Tolerances that are not given come from the element types. NaN equals NaN, or with `skip_nan` stands in what is
    expected for elements that are not to be compared; infinities equal their like. Sequences and dicts are compared
    item by item.
    """
    for each, mine, theirs in _paired(name, actual, expected):
        tolerance = Tolerance.of([mine, theirs], rtol, atol)
        if mine.shape != theirs.shape:
            raise GoldenError(f"{each} has shape {list(mine.shape)}, expected {list(theirs.shape)}")
        difference = worst(np.where(theirs != theirs, theirs, mine) if skip_nan else mine, theirs, tolerance)
        if difference is not None:
            used = f"rtol={tolerance.relative:g}, atol={tolerance.absolute:g}"
            heading = f"{each} is wrong: {difference}\n    {mine.dtype} against {theirs.dtype}, {used}"
            raise GoldenError("\n    ".join([heading, *_listed(difference.wrong, mine, theirs)]))


def _listed(wrong: Sequence[tuple[int, ...]], actual: Array, expected: Array) -> list[str]:
    """Return a line for each of several wrong elements, as far as they are listed."""
    if len(wrong) < 2:
        return []
    lines = [f"{list(index)}: {actual[index]!s}, expected {expected[index]!s}" for index in wrong[:LISTED]]
    return [*lines, *([f"and {len(wrong) - LISTED} more"] if len(wrong) > LISTED else [])]


def worst(actual: Array, expected: Array, tolerance: Tolerance) -> Difference | None:
    """Return the element of `actual` that is furthest beyond the tolerance, or None where all are within it."""
    mine, theirs = (array.astype(np.float64) for array in (actual, expected))
    with np.errstate(invalid="ignore", over="ignore"):
        allowed = tolerance.absolute + tolerance.relative * np.abs(np.where(np.isfinite(theirs), theirs, 0))
        excess = np.abs(mine - theirs) - allowed
    same = (actual == expected) | (np.isnan(mine) & np.isnan(theirs))
    wrong = ~same & (~(excess <= 0) | (allowed == 0))  # large integers differ where their floats do not
    if not wrong.any():
        return None
    at = int(np.where(wrong, np.nan_to_num(excess, nan=np.inf), -np.inf).argmax())
    index = tuple(int(i) for i in np.unravel_index(at, excess.shape))
    off = abs(_number(actual[index]) - _number(expected[index]))
    places = [tuple(place) for place in np.argwhere(wrong).tolist()]
    return Difference(index, actual[index], expected[index], off, float(allowed[index]), int(wrong.size), places)


def _number(element: Any) -> int | float:
    return int(element) if element.dtype.kind in "iub" else float(element)


def _paired(name: str, actual: Results, expected: Results) -> list[tuple[str, Array, Array]]:
    """Return the arrays to compare and their names."""
    if isinstance(expected, Mapping):
        keys: list[Any] = [*expected]  # pyright: ignore[reportUnknownArgumentType]
        if not isinstance(actual, Mapping) or {*actual} != {*keys}:  # pyright: ignore[reportUnknownArgumentType]
            raise GoldenError(f"{name} is {_keys(actual)}, expected {_keys(expected)}")
        return [pair for key in keys for pair in _paired(f"`{key}`", actual[key], expected[key])]
    if isinstance(expected, (list, tuple)) and isinstance(actual, (list, tuple)):
        items: list[tuple[Any, Any]] = list(zip(actual, expected, strict=False))  # pyright: ignore[reportUnknownArgumentType]
        if len(actual) != len(expected):  # pyright: ignore[reportUnknownArgumentType]
            raise GoldenError(f"{name} has {len(actual)} parts, expected {len(expected)}")  # pyright: ignore[reportUnknownArgumentType]
        return [pair for i, (a, e) in enumerate(items) for pair in _paired(f"{name}[{i}]", a, e)]
    return [(name, array_of(actual), array_of(expected))]


def _keys(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, Mapping) else type(value).__name__  # pyright: ignore[reportUnknownArgumentType]


def _types(array: Array) -> list[DataType]:
    return [dtype for dtype in STORABLE if dtype.numpy == array.dtype]
