"""Split folds: online folds over few columns at a time that end with their rows, in two.

`range(0, row + 8, 8)` folds what comes before a diagonal. Many of its pieces can be folded together, but not all: what
lies beyond is not to be read. So first come as many large pieces as there are, then the rest in small ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilewright.core.build import scalar
from tilewright.core.expr import Call, Const, ConstInt, Expr, Var, integer
from tilewright.core.extents import as_extent, bounds
from tilewright.core.program import Function
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import ForStmt, SeqStmts, Stmt
from tilewright.passes.online_folds import OnlineFold
from tilewright.passes.tile_axes import TileAxes

FEW = 8
"""How many columns are few: rows of two vectors' or more are folded about as well by themselves."""


def split_folds(function: Function, wanted: int) -> Function:
    """Return a function whose folds over few columns fold up to the wanted number together first."""
    axes = TileAxes(function.body)
    folds = [OnlineFold(loop, axes) for loop in axes.loops.values() if loop.iter_args]
    sizes = {fold.loop.loop_var: size for fold in folds if (size := _together(fold, wanted))}
    return function.with_body(_Split(sizes).body(function.body)) if sizes else function


def pieces_of(stop: Expr) -> int | None:
    """Return the size of the large pieces that a loop ends with, None for a loop that was not split."""
    match stop:
        case Call(args=(Call(args=(_, ConstInt(value=size))) as count, ConstInt(value=times))) if size == times:
            names = stop.op.spec.name, count.op.spec.name
            return int(size) if names == ("mul", "floordiv") else None
        case _:
            return None


def _together(fold: OnlineFold, wanted: int) -> int | None:
    """Return how many columns a fold could take together, None where it takes enough or may not."""
    loop, reach = fold.loop, bounds(fold.loop.stop)
    start, step = as_extent(loop.start), as_extent(loop.step)
    if not fold.is_one or start != 0 or not isinstance(step, int) or not 0 < step <= FEW:
        return None
    extents = [cut.extent for found in fold.keys for cut in found.cuts]
    if isinstance(loop.stop, Const) or reach is None or reach[0] < 0:
        return None
    ends_within = all(isinstance(extent, int) and reach[1] <= extent for extent in extents)
    return wanted // step * step if ends_within and extents else None


class _Split(Rewriter):
    """A function with some of its loops in two."""

    def __init__(self, sizes: Mapping[Var, int]) -> None:
        super().__init__()
        self.sizes = sizes

    def for_loop(self, stmt: ForStmt) -> tuple[Stmt, ...]:
        """Write a loop twice: up to where large pieces end, and from there."""
        size = self.sizes.get(stmt.loop_var)
        if size is None:
            return (*super().for_loop(stmt),)
        middle = scalar("mul", scalar("floordiv", stmt.stop, integer(size)), integer(size))
        (first,) = Rewriter(fresh=True).body(SeqStmts((replace(stmt, stop=middle),)))
        assert isinstance(first, ForStmt)
        carried = zip(stmt.iter_args, first.return_vars, strict=True)
        return first, replace(stmt, start=middle, iter_args=tuple(replace(arg, init=var) for arg, var in carried))
