"""Strided rows: launches whose blocks multiply windows of memory, several blocks below each other at once.

A block is a tile of a product. Where the one below it reads the same right matrix, and its left one and its result lie
behind this block's, both are one block of twice the rows: what is made of the right matrix is made once for them.
Blocks are counted along rows of them, or down columns, where as many are one as divide a column. How many blocks a
launch has is known when it runs: those that fill none of the tallest blocks run in blocks of half their
rows, then two by two, and those that fill none of these as they were written, as do all of a launch that has too few
for its threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.core.build import arguments, call, scalar
from tilewright.core.expr import Call, ConstInt, Expr, GlobalVar, Invoke, Var, integer
from tilewright.core.extents import as_extent
from tilewright.core.op import OPS
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, EvalStmt, ForStmt, SeqStmts, Stmt, YieldStmt
from tilewright.core.types import ScalarType, TileType, Type
from tilewright.core.visitor import evaluated, expressions, statements, variables
from tilewright.dtypes import INDEX
from tilewright.passes.launches import hands_on, runs_side_by_side
from tilewright.passes.strided_steps import Moves, is_harmless, numbers_of, resized, sum_of, window_of
from tilewright.records import record

PARTS = ("scalar.div", "scalar.floordiv", "scalar.mod")
"""What gives the row and the column of a block from its number."""


def taller_blocks(program: Program, rows: int) -> tuple[Program, list[str]]:
    """Return a program whose blocks have about so many rows where they may, and a line for each kernel that changed."""
    walk = _Walk(program, rows)
    functions = [function.with_body(walk.body(function.body)) for function in program.function_list]
    return program.with_functions([*walk.made, *functions]) if walk.made else program, walk.notes


@record
class _Block:
    """A kernel that computes a tile of a product: the parameter that counts, and how many blocks lie side by side."""

    param: Var
    width: int
    rows: int
    column: int
    """How many blocks in a column follow each other, 0 where rows of blocks do."""
    taller: frozenset[Var]
    """The windows and tiles that have as many rows."""
    carried: Var
    """The sum, as its loop carries it."""


class _Walk(Rewriter):
    def __init__(self, program: Program, rows: int) -> None:
        super().__init__()
        self.program, self.rows = program, rows
        self.made: list[Function] = []
        self.notes: list[str] = []

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Let a launch of blocks run taller ones."""
        made = _sole_call(stmt)
        block = _block(self.program[made.op.name], made.args.index(stmt.loop_var)) if made is not None else None
        if made is None or block is None or not _heights(self.rows // block.rows, block.column):
            return super().for_loop(stmt)
        loops: list[Stmt] = []
        done: Expr = stmt.start
        threads = Var("threads", ScalarType(INDEX))
        loops.append(AssignStmt(threads, call(OPS["system.available_thread_count"].spec, {}, stmt.span), stmt.span))
        for times in _heights(self.rows // block.rows, block.column):
            tall = self._taller(self.program[made.op.name], block, times)
            rows, below = (Var(hint, ScalarType(INDEX)) for hint in ("rows", "below"))
            count = _tall_rows(scalar("sub", stmt.stop, done), threads, block.width, times)
            called = replace(made, op=GlobalVar(tall.name))
            loops += [
                AssignStmt(rows, count, stmt.span),
                _tall_loop(stmt, called, (done, rows), (block.width, times)),
                AssignStmt(below, scalar("add", done, scalar("mul", rows, integer(block.width * times))), stmt.span),
            ]
            done = below
        return *loops, replace(stmt, start=done)

    def _taller(self, kernel: Function, block: _Block, times: int) -> Function:
        """Return a kernel with so many times the rows."""
        tall = replace(kernel, name=f"{kernel.name}_tall{times}", body=_Taller(block, times).body(kernel.body))
        self.made.append(tall)
        self.notes.append(f"{kernel.name}: {times * block.rows} rows instead of {block.rows}")
        return tall


def _heights(most: int, column: int = 0) -> list[int]:
    """Return how many blocks are one: as many as may be, half as many where fewer are left, and two.

    Where blocks of a column follow each other, as many that none is of two columns.
    """
    if most < 2:
        return []
    if not column:
        return sorted({most, max(2, most // 2), 2}, reverse=True)
    tallest = max(n for n in range(1, most + 1) if column % n == 0)
    return [n for n in (tallest, tallest // 2) if n > 1 and tallest % n == 0]


def _tall_rows(blocks: Expr, threads: Expr, width: int, times: int) -> Expr:
    """Return how many rows of taller blocks there are, none where some thread would be left without a block."""
    rows = scalar("floordiv", blocks, integer(width * times))
    enough = scalar("min", scalar("floordiv", scalar("mul", rows, integer(width)), threads), integer(1))
    return scalar("mul", rows, enough)


def _sole_call(loop: ForStmt) -> Invoke | None:
    """Return the call that is all a loop over blocks does."""
    ends = [as_extent(end) for end in (loop.start, loop.step)]
    if ends != [0, 1] or hands_on(loop) or not runs_side_by_side(loop) or len(loop.body) != 1:
        return None
    made = evaluated(loop.body.stmts[0])
    if not isinstance(made, Invoke) or variables(made.args).count(loop.loop_var) != 1:
        return None
    return made if loop.loop_var in made.args else None


def _tall_loop(stmt: ForStmt, made: Invoke, below: tuple[Expr, Expr], sizes: tuple[int, int]) -> ForStmt:
    """Return the loop over so many rows of taller blocks below others, called by the number of the uppermost in each.

    Others are told by how many blocks as they were written they are.
    """
    turn, block = Var("tall", ScalarType(INDEX)), Var(stmt.loop_var.name_hint, ScalarType(INDEX))
    turn.bounds = block.bounds = stmt.loop_var.bounds
    (done, rows), (width, times) = below, sizes
    row, column = scalar("mod", turn, rows), scalar("floordiv", turn, rows)
    number = scalar("add", scalar("add", done, scalar("mul", row, integer(width * times))), column)
    args = tuple(block if arg is stmt.loop_var else arg for arg in made.args)
    called = EvalStmt(replace(made, args=args), stmt.span)
    body = SeqStmts((AssignStmt(block, number, stmt.span), called))
    return replace(stmt, loop_var=turn, stop=scalar("mul", rows, integer(width)), body=body)


def _block(kernel: Function, at: int) -> _Block | None:
    """Return what a kernel computes, None where that is more than one tile of a product, or lies otherwise."""
    param, stmts = kernel.params[at], [*statements(kernel.body)]
    made = {stmt.var: stmt.value for stmt in stmts if isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call)}
    loops = [stmt for stmt in kernel.body if isinstance(stmt, ForStmt)]
    width = _width(kernel.body)
    if len(loops) != 1 or not width or sum_of(loops[0]) is None:
        return None
    (loop,) = loops
    store = evaluated(kernel.body.stmts[-1])
    first, total, target = loop.iter_args[0].init, loop.return_vars[0], _stored(store)
    if target is None or not isinstance(first, Var) or not isinstance(store, Call) or store.args[0] is not total:
        return None
    view = made.get(target)
    begun = made.get(first)
    if view is None or begun is None or begun.op.name != "tile.full" or view.op.name != "tensor.as_strided":
        return None
    own: set[Expr] = {target, first}
    if not all(stmt is loop or is_harmless(stmt, own) for stmt in kernel.body.stmts[:-1]):
        return None
    ways = Moves(param, made, width), Moves(param, made, below=True)
    found = (_placed(moves, loop, (first, target), view, width) for moves in ways)
    return next((block for block in found if block is not None), None)


def _placed(moves: Moves, loop: ForStmt, own: tuple[Var, Var], view: Call, width: int) -> _Block | None:
    """Return a block whose left matrix and result go on in the one below it, and whose right matrix is the same."""
    product = moves.made[_total(loop)]
    lhs, rhs = (window_of(moves.made, arguments(product)[name], 0) for name in ("lhs", "rhs"))
    shape, strides = (numbers_of(arguments(view)[name]) for name in ("shape", "strides"))
    type_ = loop.return_vars[0].type
    if lhs is None or rhs is None or shape is None or strides is None or not isinstance(type_, TileType):
        return None
    size = type_.dtype.get_byte()
    offset = arguments(view)["offset"]
    below = moves.of(offset) if isinstance(offset, Expr) else None
    is_whole = shape == type_.shape == type_.valid and shape[0] == lhs.length
    if not is_whole or below != shape[0] * strides[0] * size:
        return None
    if moves.of(lhs.offset) != lhs.nbytes or moves.of(rhs.offset) != 0:
        return None
    taller = frozenset({*own, lhs.view, lhs.tile})
    column = width if moves.below else 0
    return _Block(moves.var, moves.step, shape[0], column, taller, loop.iter_args[0].var)


def _total(loop: ForStmt) -> Var:
    """Return the sum that a loop hands on."""
    last = loop.body.stmts[-1]
    assert isinstance(last, YieldStmt) and isinstance(last.values[0], Var)
    return last.values[0]


def _stored(store: Expr | None) -> Var | None:
    """Return the window that all of a tile is stored in."""
    if not isinstance(store, Call) or store.op.name != "tile.store":
        return None
    given = arguments(store)
    target = given[store.op.spec.writes or ""]
    at_start = not any(numbers_of(given["offsets"]) or (1,))
    return target if isinstance(target, Var) and at_start else None


def _width(body: SeqStmts) -> int:
    """Return how many blocks lie side by side: what numbers are taken apart by; 0 where that is not one number."""
    calls = [e for stmt in statements(body) for e in expressions(stmt) if isinstance(e, Call) and e.op.name in PARTS]
    divisors = {int(e.args[1].value) if isinstance(e.args[1], ConstInt) else 0 for e in calls}
    return divisors.pop() if len(divisors) == 1 else 0 if divisors else 1


class _Taller(Rewriter):
    """A kernel whose tile has more rows."""

    def __init__(self, block: _Block, times: int) -> None:
        super().__init__(fresh=True)
        self.block, self.times = block, times

    def define(self, var: Var, type_: Type | None = None) -> Var:
        """Let the sum that is carried have more rows."""
        if type_ is None and var is self.block.carried and isinstance(var.type, TileType):
            rows, columns = var.type.shape
            shape = rows * self.times, columns
            type_ = TileType(shape, var.type.dtype, shape, var.type.memory)
        return super().define(var, type_)

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """See, load or make more rows."""
        if stmt.var not in self.block.taller or not isinstance(stmt.value, Call):
            return super().assign(stmt)
        made = resized(self, stmt.value, 0, self.block.rows * self.times)
        return (AssignStmt(self.define(stmt.var, made.type), made, stmt.span),)
