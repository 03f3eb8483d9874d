"""Signals: cells of INT32 windows that ranks set for their peers, and wait for."""

from enum import Enum
from typing import Any

from tilewright.arrays import np
from tilewright.core.annotations import Extents, Index, Tensor
from tilewright.core.enums import NotifyOp, WaitCmp
from tilewright.core.expr import Const, Expr
from tilewright.core.extents import fits
from tilewright.core.op import Effect
from tilewright.core.region import Array, Region
from tilewright.core.types import VOID, ScalarType, TensorType
from tilewright.core.world import world
from tilewright.dtypes import INT32
from tilewright.errors import AttributeValueError, DTypeMismatchError, ExecutionError, OperandError, OutOfBoundsError
from tilewright.ops.declare import op
from tilewright.ops.ranks import DISTRIBUTED, FAMILY, check_peer, part_at, window_type
from tilewright.ops.windows import check_rank

TOO_LARGE = "a cell holds numbers of 32 bits, and {0} is none"
SIGNS = {WaitCmp.Eq: "==", WaitCmp.Ge: ">="}


def _check_cell(signal: Expr, name: str, offsets: tuple[Expr, ...]) -> None:
    """Raise unless offsets name a cell of a window of signals."""
    type_: TensorType = window_type(signal, name)
    if type_.dtype != INT32:
        raise DTypeMismatchError(f"signals are cells of an int32 window, got {type_}", blame=[name])
    check_rank(offsets, len(type_.shape), "offsets", "window")
    for axis, (offset, extent) in enumerate(zip(offsets, type_.shape, strict=True)):
        if fits(offset, 1, extent) is False:
            raise OutOfBoundsError(f"axis {axis}: index {offset} lies outside 0 to {extent}", blame=["offsets"])


def _check_number(value: Expr, name: str) -> None:
    if not isinstance(value.type, ScalarType) or not value.type.dtype.is_int():
        raise OperandError(f"`{name}` is an integer, got {value.type}", blame=[name])
    if isinstance(value, Const) and int(value.value) != _cut(int(value.value)):
        message = f"`{name}` is {value.value}, and a cell holds numbers of 32 bits"
        raise AttributeValueError(message, blame=[name], help=f"from {-(1 << 31)} to {(1 << 31) - 1}")


def _cut(number: int) -> int:
    """Return a number as a cell would hold it."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def _check_member(value: object, kind: type[NotifyOp] | type[WaitCmp], name: str) -> None:
    is_other = isinstance(value, Enum) and not isinstance(value, kind)
    if value not in list(kind) or is_other:
        shown = ", ".join(f"pld.{kind.__name__}.{each.name}" for each in kind)
        raise AttributeValueError(f"{name} cannot be {value!r}", blame=[name], help=f"one of {shown}")


def _notify_type(target: Expr, peer: Expr, offsets: tuple[Expr, ...], value: Expr, op: int) -> Any:
    _check_cell(target, "target", offsets)
    check_peer(peer)
    _check_number(value, "value")
    _check_member(op, NotifyOp, "op")
    return VOID


def _wait_type(signal: Expr, offsets: tuple[Expr, ...], expected: Expr, cmp: int) -> Any:
    _check_cell(signal, "signal", offsets)
    _check_number(expected, "expected")
    _check_member(cmp, WaitCmp, "cmp")
    return VOID


def _deferred_type(signal: Expr, offsets: tuple[Expr, ...], expected: Expr, cmp: int) -> Any:
    if cmp != WaitCmp.Ge:
        raise AttributeValueError(f"a deferred wait is for Ge, got {cmp!r}", blame=["cmp"], help="cmp=pld.WaitCmp.Ge")
    return _wait_type(signal, offsets, expected, cmp)


def _cell(window: Region, offsets: tuple[int, ...]) -> Array:
    for axis, (index, extent) in enumerate(zip(offsets, window.data.shape, strict=True)):
        if not 0 <= index < extent:
            raise ExecutionError(f"axis {axis}: index {index} lies outside 0 to {extent}")
    return window.data[(*offsets, None)]


def _check_held(number: int) -> int:
    """Return a number that a cell can hold; ExecutionError for others."""
    if int(number) != _cut(int(number)):
        raise ExecutionError(TOO_LARGE.format(int(number)))
    return int(number)


def _notify(result: Any, target: Region, peer: int, offsets: tuple[int, ...], value: int, op: int) -> Any:
    cell = _cell(part_at(target, peer), offsets)
    _check_held(value)
    world().told(cell, int(value), op == NotifyOp.Set)
    with np.errstate(all="ignore"):
        number = np.int32(value)
        cell[0] = number if op == NotifyOp.Set else cell[0] + number
    return VOID


def _wait(result: Any, signal: Region, offsets: tuple[int, ...], expected: int, cmp: int) -> Any:
    cell = _cell(signal, offsets)
    wanted = _check_held(expected)
    values = range(wanted, 1 << 31) if cmp == WaitCmp.Ge else range(wanted, wanted + 1)
    world().wait(cell, (values,), f"cell {list(offsets)} {SIGNS[WaitCmp(cmp)]} {wanted}")
    return VOID


@op(
    kinds=DISTRIBUTED, infer=_notify_type, evaluate=_notify, family=FAMILY, effect=Effect.WRITE, writes="target",
    is_fence=True, control_plane=True, accepts=(INT32,),
)  # fmt: skip
def notify(target: Tensor, peer: Index, offsets: Extents, value: Index, op: int) -> None:
    """Set a cell of a peer's part, or add to it in one step; what was written before is there once it is seen."""
    ...


@op(
    kinds=DISTRIBUTED, infer=_wait_type, evaluate=_wait, family=FAMILY, effect=Effect.WRITE, is_fence=True,
    control_plane=True, accepts=(INT32,),
)  # fmt: skip
def wait(signal: Tensor, offsets: Extents, expected: Index, cmp: int) -> None:
    """Wait until a cell of the own part is what is expected, or with `Ge` at least that; the cell stays as it is."""
    ...


@op(
    kinds=DISTRIBUTED, infer=_deferred_type, evaluate=_wait, family=FAMILY, effect=Effect.WRITE, is_fence=True,
    control_plane=True, accepts=(INT32,),
)  # fmt: skip
def defer_wait(signal: Tensor, offsets: Extents, expected: Index, cmp: int) -> None:
    """Let a task be done when a cell of the own part is at least what is expected; the kernel itself ends at once."""
    ...
