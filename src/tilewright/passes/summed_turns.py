"""Summed turns: whether loops that sum products have any, told where the kernels that they stand in are called."""

from __future__ import annotations

from tilewright.core.build import scalar
from tilewright.core.expr import Call, Expr, Invoke, Symbol, Var
from tilewright.core.extents import as_scalar, bounds
from tilewright.core.program import Function
from tilewright.core.rewrite_expressions import ExpressionRewriter
from tilewright.core.stmt import ForStmt
from tilewright.core.types import TensorType
from tilewright.core.visitor import subexpressions
from tilewright.passes.product_grids import ProductGrid
from tilewright.passes.products import PRODUCTS
from tilewright.passes.tile_axes import TileAxes


def surely_running(grid: ProductGrid) -> list[Expr] | None:
    """Return conditions under which every loop that sums products has a turn; None where only the kernels can tell.

    Online folds may have none: what they carry is whole.
    """
    found: list[Expr] = []
    counted = {loop.loop_var for loop in grid.loops}
    for axes, folds, function, call in zip(grid.axes, grid.folds, grid.functions, grid.calls, strict=True):
        sums = [loop for loop in axes.loops.values() if not any(fold.loop is loop for fold in folds)]
        for loop in (loop for loop in sums if not _runs(loop) and _holds_numbers(loop, axes)):
            known = _given(function, call)
            inside = [e for x in (loop.start, loop.stop) for e in subexpressions(x) if isinstance(e, (Var, Symbol))]
            if any(_key(each) not in known for each in inside):
                return None
            names = {name: value for name, value in known.items() if isinstance(name, str)}
            said = ExpressionRewriter({var: value for var, value in known.items() if isinstance(var, Var)}, names)
            start, stop = said.expr(loop.start), said.expr(loop.stop)
            if counted & {e for x in (start, stop) for e in subexpressions(x) if isinstance(e, Var)}:
                return None
            found.append(scalar("lt", start, stop))
    return found


def _holds_numbers(loop: ForStmt, axes: TileAxes) -> bool:
    """Return whether a loop begins with sums that are numbers already: no products, and not nothing."""
    begun = [axes.made.get(arg.init) if isinstance(arg.init, Var) else None for arg in loop.iter_args]
    return any(call is None or call.op.spec.name not in (*PRODUCTS, "create") for call in begun)


def _runs(loop: ForStmt) -> bool:
    """Return whether a loop has a turn whatever happens."""
    first, last, stop = bounds(loop.start), bounds(loop.stop), loop.stop
    if isinstance(stop, Call) and stop.op.spec.name == "add" and stop.args[0] == loop.start and last is not None:
        length = bounds(stop.args[1])
        return length is not None and length[0] > 0
    return first is not None and last is not None and first[1] < last[0]


def _key(expr: Expr) -> Expr | str:
    return expr.name if isinstance(expr, Symbol) else expr


def _given(function: Function, call: Invoke) -> dict[Expr | str, Expr]:
    """Return what the parameters of a function, and the names of their extents, are where it is called."""
    known: dict[Expr | str, Expr] = {}
    for param, arg in zip(function.params, call.args, strict=True):
        known[param] = arg
        if isinstance(param.type, TensorType) and isinstance(arg.type, TensorType):
            pairs = zip(param.type.shape, arg.type.shape, strict=True)
            known |= {n.name: as_scalar(m) for n, m in pairs if isinstance(n, Symbol) and m is not None}
    return known
