"""Widening: grids of tiles in which matrices are multiplied, rewritten with tiles as the machine wants them.

What a kernel computes for one element of a product does not depend on the tile the element falls into, if all that
meets it is cut by the same loops. Then the tile is the compiler's to choose: small ones reload their operands and their
sums far too often. Turns of the loops over rows and columns are taken together, and so are steps of the inner
dimension. What is found to be otherwise stays as it was written, and so do tiles to which no product may be added: what
they hold then is as large as somebody said.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from tilewright.core.build import scalar
from tilewright.core.expr import Expr
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import ForStmt, IfStmt, SeqStmts, Stmt
from tilewright.errors import KernelError
from tilewright.passes import simplify
from tilewright.passes.begun_sums import begun_sums
from tilewright.passes.chosen_tiles import Widened
from tilewright.passes.disjoint_tensors import Apart
from tilewright.passes.grid_forms import in_one_form
from tilewright.passes.joined_products import joined_products
from tilewright.passes.merged_parts import merged_parts
from tilewright.passes.product_grids import ProductGrid, Wanted, grid_of
from tilewright.passes.products import read_casts
from tilewright.passes.strided_blocks import larger_blocks
from tilewright.passes.strided_steps import longer_steps
from tilewright.passes.summed_turns import surely_running
from tilewright.passes.whole_sums import whole_sums
from tilewright.passes.wider_tiles import in_other_steps, wider_kernel, with_kernels


def widened(program: Program, wanted: Wanted) -> Widened:
    """Return a lowered program with its products in tiles of about the wanted size."""
    alike = merged_parts(in_one_form(program))
    begun = alike.with_functions([_longest(function, wanted.depth) for function in alike.function_list])
    walk = _Walk(begun, wanted)
    functions = [walk.rewritten(function) for function in begun.function_list]
    if not walk.notes:
        return _stretched(program, begun, wanted)
    simple = simplify.run(with_kernels(begun, walk.made, functions))
    read = [read_casts(f) if f.name in walk.few else f for f in simple.function_list]
    return Widened(simple.with_functions(read), tuple(walk.notes))


def _longest(function: Function, depth: int) -> Function:
    """Return a function whose sums of products have as few terms as they can, up to a depth each."""
    return joined_products(whole_sums(begun_sums(function)), depth)


def _stretched(program: Program, begun: Program, wanted: Wanted) -> Widened:
    """Return a program whose products of windows of memory are larger and have longer steps, where it has some."""
    large, lines = larger_blocks(begun, wanted.rows, wanted.columns)
    found = [longer_steps(function, wanted.depth) for function in large.function_list]
    notes = [*lines, *(note for _, stretched in found for note in stretched)]
    if not notes:
        return Widened(program)
    return Widened(simplify.run(program.with_functions([function for function, _ in found])), tuple(notes))


class _Walk(Rewriter):
    """The functions of a program, their grids of products rewritten."""

    def __init__(self, program: Program, wanted: Wanted) -> None:
        super().__init__()
        self.program, self.wanted = program, wanted
        self.function = ""
        self.made: list[Function] = []
        self.few: set[str] = set()
        """The kernels whose products have few rows."""
        self.notes: list[str] = []

    def rewritten(self, function: Function) -> Function:
        """Return a function with its grids rewritten."""
        self.function = function.name
        return function.with_body(self.body(function.body))

    def _are_apart(self, grid: ProductGrid) -> bool:
        """Return whether the kernels of a grid read nothing that they write, in whatever order."""
        apart = Apart(self.program)
        does = [(call.args, apart.footprints[call.op.name]) for call in grid.calls]
        written = [args[at] for args, found in does for at in (*found.writes, *found.adds)]
        read = [args[at] for args, found in does for at in found.reads]
        return all(apart.are(self.function, w, r) for w in written for r in read)

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Rewrite a grid; a loop that is none may have some inside."""
        found = grid_of(self.program, stmt, self.wanted)
        if found is None:
            return super().for_loop(stmt)
        grid, body = found
        if grid.in_order and not self._are_apart(grid):
            return super().for_loop(stmt)
        runs = surely_running(grid)
        wide = self._wide(grid, body) if runs is not None else None
        if runs is None or wide is None:
            return (stmt,)
        wide = self._unless_few(grid, body, wide)
        return (wide if not runs else _either(reduce(_both, runs), wide, stmt),)

    def _wide(self, grid: ProductGrid, body: SeqStmts) -> Stmt | None:
        """Return the loops of a grid with other kernels inside, None where an op wants its operands as they were."""
        try:
            kernels = {f.name: wider_kernel(grid, number, len(self.notes)) for number, f in enumerate(grid.functions)}
        except KernelError:
            return None
        self.made += kernels.values()
        self.few |= {kernel.name for kernel in kernels.values() if grid.is_few}
        self.notes.append(str(grid))
        return in_other_steps(grid, body, {name: kernel.name for name, kernel in kernels.items()})

    def _unless_few(self, grid: ProductGrid, body: SeqStmts, wide: Stmt) -> Stmt:
        """Return a grid that takes other tiles where a call has few rows."""
        if (few := grid.few_if) is None:
            return wide
        narrow = self._wide(ProductGrid(self.program, grid.loops, grid.calls, self.wanted, may_be_many=False), body)
        return wide if narrow is None else _either(few, narrow, wide)


def _either(condition: Expr, then: Stmt, otherwise: Stmt) -> IfStmt:
    return IfStmt(condition, SeqStmts((then,)), SeqStmts((otherwise,)), (), otherwise.span)


def _both(first: Expr, second: Expr) -> Expr:
    return scalar("and_", first, second)
