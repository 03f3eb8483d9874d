"""Long rows: grids of tiles in which each element stands by itself, in as many columns as follow each other in memory.

Tiles of a few columns make a machine read and write a little of each row, at places that lie a row apart. Where that is
a power of two they share a few sets of the caches, and what is read waits for what was written there just before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.core.expr import Call, Invoke
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import ForStmt, SeqStmts, Stmt
from tilewright.core.types import TensorType
from tilewright.core.visitor import evaluated
from tilewright.errors import KernelError
from tilewright.passes import simplify
from tilewright.passes.chosen_tiles import Widened
from tilewright.passes.fusion import DEEPEST
from tilewright.passes.launches import runs_side_by_side
from tilewright.passes.tile_axes import Class, TileAxes
from tilewright.passes.tile_grids import TileGrid, nest
from tilewright.passes.wider_tiles import in_other_steps, wider_kernel, with_kernels

LINE = 4096
"""How many columns tiles have at most: on a Zen 5 `x * 2` of 512 x 1024 floats takes 115 us in tiles of 64 x 64, 57 in
128 x 128, 41 in whole rows."""
GRAIN = 64
"""What such a number is a multiple of."""


def with_long_rows(program: Program) -> Widened:
    """Return a lowered program in whose grids tiles have long rows, where nobody can tell."""
    walk = _Walk(program)
    functions = [function.with_body(walk.body(function.body)) for function in program.function_list]
    if not walk.notes:
        return Widened(program)
    return Widened(simplify.run(with_kernels(program, walk.made, functions)), tuple(walk.notes))


class _Walk(Rewriter):
    """The functions of a program, with other grids in them."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.program = program
        self.made: list[Function] = []
        self.notes: list[str] = []

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Rewrite a grid; a loop that is none may have some inside."""
        loops, body = nest(stmt)
        calls = [*_calls(body)]
        if len(calls) != 1 or len(body) != 1 or not all(map(runs_side_by_side, loops)):
            return super().for_loop(stmt)
        grid = _RowGrid(loops, calls, [self.program[calls[0].op.name]])
        return (stmt,) if not grid.changes else self._longer(grid, stmt, body)

    def _longer(self, grid: _RowGrid, stmt: ForStmt, body: SeqStmts) -> Sequence[Stmt]:
        (function,) = grid.functions
        try:
            kernel = wider_kernel(grid, 0, len(self.notes))
        except KernelError:  # an op wants its operands as they were
            return (stmt,)
        self.made.append(kernel)
        self.notes.append(f"{grid.names}: {', '.join(grid.changes)}")
        return (in_other_steps(grid, body, {function.name: kernel.name}),)


class _RowGrid(TileGrid):
    """Loops over tiles, one of which cuts the rows of all tensors into short pieces."""

    def __init__(self, loops: Sequence[ForStmt], calls: Sequence[Invoke], functions: Sequence[Function]) -> None:
        super().__init__(loops, calls, functions)
        (axes,) = self.axes
        for loop in loops if _is_gone_through_once(functions[0], axes) else ():
            cut = self.cut_by(loop)
            span = self.span_of(loop, cut) if cut and all(map(_is_along, cut[0])) else None
            if span is not None:
                self.spans[loop.loop_var] = span
                self.steps[loop.loop_var] = span.wider(LINE, GRAIN, GRAIN)


def _is_gone_through_once(function: Function, axes: TileAxes) -> bool:
    """Return whether a kernel computes each element from those at its place, and keeps none of them meanwhile."""
    found = [*axes.classes()]
    special = any(each.roles or each.is_folded or each.is_summed or each.is_whole for each in found)
    names = [call.op.spec.name for stmt in function.body if isinstance(call := evaluated(stmt), Call)]
    late = "load" in names[names.index("store") :] if "store" in names else True
    return axes.is_plain and not (axes.loops or special or late) and len(names) < DEEPEST


def _is_along(found: Class) -> bool:
    """Return whether the neighbours along an axis are neighbours in memory."""
    tensors = [(cut.axis, cut.tensor.type) for cut in found.cuts]
    return all(isinstance(type_, TensorType) and axis == len(type_.shape) - 1 for axis, type_ in tensors)


def _calls(stmts: Sequence[Stmt] | SeqStmts) -> Iterator[Invoke]:
    return (made for each in stmts if isinstance(made := evaluated(each), Invoke))
