"""Prefetching: hints that memory will be read soon. No value depends on them."""

from typing import Any

from tilewright.core.annotations import Index, Scalar, Tensor
from tilewright.core.expr import Expr
from tilewright.core.op import Kind
from tilewright.core.types import ScalarType, is_static
from tilewright.dtypes import BOOL, TASK_ID
from tilewright.errors import NotStaticError, OperandError, ShapeMismatchError
from tilewright.ops.declare import op
from tilewright.ops.families import shaped

PREFETCH = (Kind.PREFETCH,)


def _handle(**handles: Expr) -> ScalarType:
    for name, value in handles.items():
        if value.type != ScalarType(TASK_ID):
            help = "ctx = pl.prefetch.make_context()"
            raise OperandError(f"`{name}` must be a handle of pl.prefetch, got {value.type}", blame=[name], help=help)
    return ScalarType(TASK_ID)


def _async_type(src: Expr, ctx: Expr) -> ScalarType:
    type_ = shaped(src)
    if not is_static(type_.shape):
        raise NotStaticError(f"what is prefetched has static extents, got {type_}", blame=["src"])
    if any(extent != 1 for extent in type_.shape[:-1]):
        help = "pl.slice takes one row"
        raise ShapeMismatchError(f"only one row is prefetched at a time, got {type_}", blame=["src"], help=help)
    return _handle(ctx=ctx)


def _wait_type(event: Expr, session: Expr) -> ScalarType:
    _handle(event=event, session=session)
    return ScalarType(BOOL)


def _zero(result: ScalarType, **_: Any) -> int:
    return 0


def _true(result: ScalarType, **_: Any) -> bool:
    return True


_CONTEXT = "ctx = pl.prefetch.make_context()\n"


@op(kinds=PREFETCH, infer=_handle, evaluate=_zero, control_plane=True, example=_CONTEXT)
def make_context() -> Scalar:
    """Return what prefetches are made in."""
    ...


@op(
    kinds=PREFETCH, infer=_async_type, evaluate=_zero, control_plane=True,
    example=f"{_CONTEXT}row = pl.slice(x, [1, 32], [0, 0])\nevent = pl.prefetch.async_prefetch(row, ctx)",
)  # fmt: skip
def async_prefetch(src: Tensor, ctx: Index) -> Scalar:
    """Return the event of a row being fetched."""
    ...


@op(
    kinds=PREFETCH, infer=_handle, evaluate=_zero, control_plane=True,
    example=f"{_CONTEXT}session = pl.prefetch.session(ctx)",
)  # fmt: skip
def session(ctx: Index) -> Scalar:
    """Return what prefetches are waited for in."""
    ...


@op(
    kinds=PREFETCH, infer=_wait_type, evaluate=_true, control_plane=True,
    example=f"{_CONTEXT}row = pl.slice(x, [1, 32], [0, 0])\nevent = pl.prefetch.async_prefetch(row, ctx)\n"
    "done = pl.prefetch.wait(event, pl.prefetch.session(ctx))",
)  # fmt: skip
def wait(event: Index, session: Index) -> Scalar:
    """Return whether a row has been fetched: it has."""
    ...
