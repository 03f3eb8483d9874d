"""Strided blocks: launches whose blocks multiply windows of memory, several neighbours at once.

A block is a tile of a product. Where the one below it reads the same right matrix, and its left one and its result lie
behind this block's, both are one block of twice the rows: what is made of the right matrix is made once for them.
Blocks are counted along rows of them, or down columns, where as many are one as divide a column. Of blocks counted
along rows those beside each other are one, too, as many as divide a row: what is read of the left matrix is read once
for them. How many blocks a launch has is known when it runs: those that fill none of the tallest blocks run in blocks
of half their rows, then two by two, then beside each other alone, and those that fill none of these as they were
written, as do all of a launch that has too few for its threads.
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


def larger_blocks(program: Program, rows: int, columns: int) -> tuple[Program, list[str]]:
    """Return a program whose blocks are about so large where they may be, and a line for each kernel that changed."""
    walk = _Walk(program, rows, columns)
    functions = [function.with_body(walk.body(function.body)) for function in program.function_list]
    return program.with_functions([*walk.made, *functions]) if walk.made else program, walk.notes


@record
class _Block:
    """A kernel that computes a tile of a product: the parameter that counts, and how many blocks lie side by side."""

    param: Var
    width: int
    shape: tuple[int, int]
    column: int
    """How many blocks in a column follow each other, 0 where rows of blocks do."""
    row: int
    """How many blocks beside each other may be one, or divisors of that."""
    taller: frozenset[Var]
    """The windows and tiles that have as many rows."""
    wider: frozenset[Var]
    """Those that have as many columns."""
    carried: Var
    """The sum, as its loop carries it."""

    def sizes(self, rows: int, columns: int) -> list[tuple[int, int]]:
        """Return how many blocks below and beside each other are one, up to so many rows and columns of elements."""
        beside = max((n for n in range(1, columns // self.shape[1] + 1) if self.row % n == 0), default=1)
        found = [(times, beside) for times in _heights(rows // self.shape[0], self.column)]
        return [*found, (1, beside)] if beside > 1 else found

    def told(self, times: tuple[int, int]) -> str:
        """Return what becomes of its rows and columns where so many are one."""
        kinds = zip(("rows", "columns"), times, self.shape, strict=True)
        return ", ".join(f"{n * size} {kind} instead of {size}" for kind, n, size in kinds if n > 1)


class _Walk(Rewriter):
    def __init__(self, program: Program, rows: int, columns: int) -> None:
        super().__init__()
        self.program, self.rows, self.columns = program, rows, columns
        self.made: list[Function] = []
        self.notes: list[str] = []

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Let a launch of blocks run larger ones."""
        made = _sole_call(stmt)
        block = _block(self.program[made.op.name], made.args.index(stmt.loop_var)) if made is not None else None
        sizes = [] if block is None else block.sizes(self.rows, self.columns)
        if made is None or block is None or not sizes:
            return super().for_loop(stmt)
        threads = Var("threads", ScalarType(INDEX))
        loops: list[Stmt] = [
            AssignStmt(threads, call(OPS["system.available_thread_count"].spec, {}, stmt.span), stmt.span)
        ]
        done: Expr = stmt.start
        for times in sizes:
            larger = self._larger(self.program[made.op.name], block, times)
            rows, below = (Var(hint, ScalarType(INDEX)) for hint in ("rows", "below"))
            called = replace(made, op=GlobalVar(larger.name))
            loops += [
                AssignStmt(rows, _rows(scalar("sub", stmt.stop, done), threads, block.width, times), stmt.span),
                _loop(stmt, called, (done, rows), block.width, times),
                AssignStmt(below, _sum(done, rows, block.width * times[0]), stmt.span),
            ]
            done = below
        return *loops, replace(stmt, start=done)

    def _larger(self, kernel: Function, block: _Block, times: tuple[int, int]) -> Function:
        """Return a kernel with so many times the rows and columns."""
        kinds = zip(("tall", "wide"), times, strict=True)
        name = "".join([f"{kernel.name}_", *(f"{kind}{n}" for kind, n in kinds if n > 1)])
        larger = replace(kernel, name=name, body=_Larger(block, times).body(kernel.body))
        self.made.append(larger)
        self.notes.append(f"{kernel.name}: {block.told(times)}")
        return larger


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


def _sum(first: Expr, number: Expr, times: int) -> Expr:
    """Return a number and another one so many times."""
    return scalar("add", first, scalar("mul", number, integer(times)))


def _rows(blocks: Expr, threads: Expr, width: int, times: tuple[int, int]) -> Expr:
    """Return how many rows of larger blocks there are, none where some thread would be left without a block."""
    below, beside = times
    rows = scalar("floordiv", blocks, integer(width * below))
    turns = scalar("mul", rows, integer(width // beside))
    return scalar("mul", rows, scalar("min", scalar("floordiv", turns, threads), integer(1)))


def _sole_call(loop: ForStmt) -> Invoke | None:
    """Return the call that is all a loop over blocks does."""
    ends = [as_extent(end) for end in (loop.start, loop.step)]
    if ends != [0, 1] or hands_on(loop) or not runs_side_by_side(loop) or len(loop.body) != 1:
        return None
    made = evaluated(loop.body.stmts[0])
    if not isinstance(made, Invoke) or variables(made.args).count(loop.loop_var) != 1:
        return None
    return made if loop.loop_var in made.args else None


def _loop(stmt: ForStmt, made: Invoke, below: tuple[Expr, Expr], width: int, times: tuple[int, int]) -> ForStmt:
    """Return the loop over so many rows of larger blocks below others, called by the number of the first in each.

    Others are told by how many blocks as they were written they are.
    """
    turn, block = Var("turn", ScalarType(INDEX)), Var(stmt.loop_var.name_hint, ScalarType(INDEX))
    turn.bounds = block.bounds = stmt.loop_var.bounds
    done, rows = below
    row, column = scalar("mod", turn, rows), scalar("floordiv", turn, rows)
    number = _sum(_sum(done, row, width * times[0]), column, times[1])
    args = tuple(block if arg is stmt.loop_var else arg for arg in made.args)
    called = EvalStmt(replace(made, args=args), stmt.span)
    body = SeqStmts((AssignStmt(block, number, stmt.span), called))
    return replace(stmt, loop_var=turn, stop=scalar("mul", rows, integer(width // times[1])), body=body)


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
    lhs, rhs = (window_of(moves.made, arguments(product)[name], at) for at, name in enumerate(("lhs", "rhs")))
    shape, strides = (numbers_of(arguments(view)[name]) for name in ("shape", "strides"))
    type_ = loop.return_vars[0].type
    if lhs is None or rhs is None or shape is None or strides is None or not isinstance(type_, TileType):
        return None
    steps = [extent * stride * type_.dtype.get_byte() for extent, stride in zip(shape, strides, strict=True)]
    offset = arguments(view)["offset"]
    is_whole = shape == type_.shape == type_.valid and shape == (lhs.length, rhs.length)
    if not is_whole or not isinstance(offset, Expr):
        return None
    offsets = (lhs.offset, rhs.offset, offset)
    if [moves.of(each) for each in offsets] != [lhs.nbytes, 0, steps[0]]:
        return None
    beside = Moves(moves.var, moves.made, below=True)
    goes_on = not moves.below and [beside.of(each) for each in offsets] == [0, rhs.nbytes, steps[1]]
    taller, wider = (frozenset({*own, window.view, window.tile}) for window in (lhs, rhs))
    column, row = width if moves.below else 0, width if goes_on else 1
    return _Block(moves.var, moves.step, (shape[0], shape[1]), column, row, taller, wider, loop.iter_args[0].var)


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


class _Larger(Rewriter):
    """A kernel whose tile has so many times the rows and columns."""

    def __init__(self, block: _Block, times: tuple[int, int]) -> None:
        super().__init__(fresh=True)
        self.block = block
        rows, columns = (n * size for n, size in zip(times, block.shape, strict=True))
        self.shape = rows, columns

    def define(self, var: Var, type_: Type | None = None) -> Var:
        """Let the sum that is carried be larger."""
        if type_ is None and var is self.block.carried and isinstance(var.type, TileType):
            type_ = TileType(self.shape, var.type.dtype, self.shape, var.type.memory)
        return super().define(var, type_)

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """See, load or make more rows and columns."""
        grown = zip((self.block.taller, self.block.wider), self.shape, strict=True)
        extents = {axis: extent for axis, (own, extent) in enumerate(grown) if stmt.var in own}
        if not extents or not isinstance(stmt.value, Call):
            return super().assign(stmt)
        made = resized(self, stmt.value, extents)
        return (AssignStmt(self.define(stmt.var, made.type), made, stmt.span),)
