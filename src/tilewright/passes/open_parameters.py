"""Opening parameters: a kernel that reads a tensor of a fixed size takes a view that turns out smaller.

A parameter says how much there is at the most. Where a caller passes a view as wide as the running program decides, the
last page of a sequence say, the extent becomes a symbol of the kernel's own: loads find what the view holds, as at the
edge of any tensor. A view that turns out larger is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.core.build import call, scalar
from tilewright.core.enums import FunctionType, ParamDirection
from tilewright.core.expr import Expr, Symbol, Var, integer
from tilewright.core.op import OPS
from tilewright.core.program import Function, Program
from tilewright.core.stmt import EvalStmt, SeqStmts, Stmt
from tilewright.core.types import Extent, TensorType
from tilewright.passes.narrow_parameters import Calls, told_by_callers, with_parameters


def run(program: Program) -> Program:
    """Open what is read through views of unknown extent."""
    return told_by_callers(program, _opened)


def _opened(function: Function, calls: Calls) -> Function:
    """Return a function whose input tensors have the extents that calls leave open as symbols."""
    if function.func_type is FunctionType.Orchestration:
        return function
    replaced: dict[Var, Expr] = {}
    checks: list[Stmt] = []
    for position, (param, direction) in enumerate(zip(function.params, function.param_directions, strict=True)):
        arguments = [args[position].type for args in calls]
        if direction is not ParamDirection.In or not isinstance(param.type, TensorType):
            continue
        shape = [_extent(param, axis, arguments) for axis in range(len(param.type.shape))]
        if shape == [*param.type.shape]:
            continue
        type_ = replace(param.type, shape=tuple(shape), valid=_valid(param.type, shape))
        replaced[param] = Var(param.name_hint, type_, param.span)
        checks += [
            _at_most(param, axis, extent) for axis, extent in enumerate(shape) if extent != param.type.shape[axis]
        ]
    if not replaced:
        return function
    opened = with_parameters(function, replaced)
    return opened.with_body(SeqStmts((*checks, *opened.body.stmts)))


def _extent(param: Var, axis: int, arguments: Sequence[object]) -> Extent:
    """Return an extent, as a symbol of its own where it is fixed and that of some argument is not."""
    assert isinstance(param.type, TensorType)
    extent = param.type.shape[axis]
    given = [type_.shape[axis] for type_ in arguments if isinstance(type_, TensorType)]
    is_open = isinstance(extent, int) and any(not isinstance(have, int) for have in given)
    return Symbol(f"{param.name_hint}_{axis}", param.span) if is_open else extent


def _valid(type_: TensorType, shape: Sequence[Extent]) -> tuple[Extent, ...]:
    old = zip(type_.shape, type_.valid, shape, strict=True)
    return tuple(new if valid == extent else valid for extent, valid, new in old)


def _at_most(param: Var, axis: int, extent: Extent) -> Stmt:
    """Return the check that an argument is no larger than its parameter declares."""
    assert isinstance(param.type, TensorType) and isinstance(extent, Symbol)
    limit = param.type.shape[axis]
    assert isinstance(limit, int)
    message = f"axis {axis} of `{param.name_hint}` is longer than the {limit} its parameter declares"
    condition = scalar("le", extent, integer(limit), span=param.span)
    return EvalStmt(
        call(OPS["system.device_assert"].spec, {"condition": condition, "message": message}, param.span), param.span
    )
