"""Cells: signals in any memory, which kernels of ranks set and wait for that reach each other's memory by pointers.

Who is alone sets them for itself; what it waits for is there already, or never will be.
"""

import operator
from collections.abc import Callable
from typing import Any

from tilewright.arrays import np
from tilewright.core.annotations import Index, Scalar, Tensor, X
from tilewright.core.enums import NotifyOp
from tilewright.core.expr import Expr
from tilewright.core.op import Effect
from tilewright.core.region import Array, Region
from tilewright.core.types import VOID, ScalarType
from tilewright.core.world import WORLD
from tilewright.dtypes import BOOL, INT32
from tilewright.errors import AttributeValueError, DTypeMismatchError, ExecutionError, ShapeMismatchError
from tilewright.ops.declare import op
from tilewright.ops.families import shaped
from tilewright.ops.ranks import DISTRIBUTED, FAMILY

SIGNS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "eq": ("==", operator.eq), "ne": ("!=", operator.ne), "gt": (">", operator.gt),
    "ge": (">=", operator.ge), "lt": ("<", operator.lt), "le": ("<=", operator.le),
}  # fmt: skip
"""How a cell may compare with a number."""

ALONE = "this waits for a signal that nobody sets: one rank runs here"
_LEAST, _END = -(1 << 31), 1 << 31


def _check_cell(cell: Expr) -> None:
    """Raise unless this is the memory of one signal."""
    type_ = shaped(cell)
    if type_.dtype != INT32:
        raise DTypeMismatchError(f"signals are int32, got {type_}", blame=["cell"])
    if any(extent != 1 for extent in type_.shape):
        raise ShapeMismatchError(f"a signal is one element, got {type_}", blame=["cell"])


def _post_type(cell: Expr, value: Expr, op: int, window: Expr | None) -> Any:
    _check_cell(cell)
    return VOID


def _check_compared(cell: Expr, cmp: str) -> None:
    _check_cell(cell)
    if cmp not in SIGNS:
        raise AttributeValueError(f"cmp cannot be {cmp!r}", blame=["cmp"], help=f"one of {', '.join(SIGNS)}")


def _until_type(cell: Expr, value: Expr, cmp: str, window: Expr | None) -> Any:
    _check_compared(cell, cmp)
    return VOID


def _holds_type(cell: Expr, value: Expr, cmp: str, window: Expr | None) -> ScalarType:
    _check_compared(cell, cmp)
    return ScalarType(BOOL)


def _held(cell: Region) -> Array:
    """Return a signal as its one element."""
    elements: Any = cell.data
    return elements.reshape(-1)


def _post(result: Any, cell: Region, value: int, op: int, window: Region | None) -> Any:
    held, ranks = _held(cell), WORLD.get()
    if ranks is not None:
        ranks.told(held, int(value), op == NotifyOp.Set)
    with np.errstate(all="ignore"):
        held[0] = np.int32(value) if op == NotifyOp.Set else held[0] + np.int32(value)
    return VOID


def _until(result: Any, cell: Region, value: int, cmp: str, window: Region | None) -> Any:
    held, ranks, (sign, compare) = _held(cell), WORLD.get(), SIGNS[cmp]
    if ranks is None:
        if not compare(int(held[0]), int(value)):
            raise ExecutionError(ALONE)
        return VOID
    ranks.wait(held, _expected(cmp, int(value)), f"a signal {sign} {int(value)}")
    return VOID


def _holds(result: Any, cell: Region, value: int, cmp: str, window: Region | None) -> bool:
    held, ranks = _held(cell), WORLD.get()
    if ranks is not None:
        return ranks.look(held, _expected(cmp, int(value)))
    return bool(SIGNS[cmp][1](int(held[0]), int(value)))


def _expected(cmp: str, value: int) -> tuple[range, ...]:
    """Return the values that compare so with a number, as ranges of some that follow each other."""
    if cmp == "ne":
        return *_expected("lt", value), *_expected("gt", value)
    low = {"eq": value, "gt": value + 1, "ge": value}.get(cmp, _LEAST)
    return (range(low, {"eq": value + 1, "lt": value, "le": value + 1}.get(cmp, _END)),)


@op(
    kinds=DISTRIBUTED, infer=_post_type, evaluate=_post, family=FAMILY, effect=Effect.WRITE, writes="cell",
    is_fence=True, control_plane=True, accepts=(INT32,), unread=("window",),
)  # fmt: skip
def post(cell: Tensor, value: Index, op: int, window: X | None = None) -> None:
    """Set a signal, or add to it in one step; what was written before is there once it is seen.

    `passes/distant.py` says which `window` it may lie in a part of, where ranks share no memory.
    """
    ...


@op(
    kinds=DISTRIBUTED, infer=_until_type, evaluate=_until, family=FAMILY, effect=Effect.WRITE, is_fence=True,
    control_plane=True, accepts=(INT32,), unread=("window",),
)  # fmt: skip
def until(cell: Tensor, value: Index, cmp: str, window: X | None = None) -> None:
    """Wait until a signal compares so with a number, by `eq`, `ne`, `gt`, `ge`, `lt` or `le`."""
    ...


@op(
    kinds=DISTRIBUTED, infer=_holds_type, evaluate=_holds, family=FAMILY, effect=Effect.WRITE, is_fence=True,
    control_plane=True, accepts=(INT32,), unread=("window",),
)  # fmt: skip
def holds(cell: Tensor, value: Index, cmp: str, window: X | None = None) -> Scalar:
    """Return whether a signal compares so with a number by now."""
    ...
