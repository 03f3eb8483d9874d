"""Unrolling: loops written out, one copy of the body per turn.

`pl.unroll` asks for it. A short loop that carries tiles and does nothing but simple arithmetic with them, as the sum
over the nine places of a 3x3 stencil, of part of a tile or of loads that overlap, or adds products of windows up, is
written out too: its turns are then fused, and what it carries stays in registers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from tilewright.core.build import arguments
from tilewright.core.enums import ForKind
from tilewright.core.expr import Absent, Call, Const, Expr, MakeTuple, Var, constant
from tilewright.core.op import Kind
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, ForStmt, IfStmt, Stmt, YieldStmt
from tilewright.core.types import ScalarType, TileType, Type
from tilewright.core.visitor import bodies, statements, variables
from tilewright.errors import KernelError

SHORT = 64
"""How many statements a loop may become when it is written out and nobody has asked for it."""
_FUSED = frozenset(("elementwise", "expansion", "mapped"))
_READING = frozenset(("full", "load", "read"))
"""The families, and the other ops, of which a group of row-by-row ops is made."""
_SUMMED = frozenset(("matmul_acc",))
"""What keeps in registers what the turns carry, too."""


def run(program: Program) -> Program:
    """Write out every `pl.unroll` loop, and the short ones."""
    return program.with_functions([_unrolled(function) for function in program.function_list])


def _unrolled(function: Function) -> Function:
    loops = (stmt for stmt in statements(function.body) if isinstance(stmt, ForStmt))
    if not any(loop.kind is ForKind.Unroll or _is_short(loop) for loop in loops):
        return function
    return function.with_body(_Unroller().body(function.body))


def _is_short(loop: ForStmt) -> bool:
    """Return whether a loop that carries tiles, and looks through windows, is a few statements when written out."""
    tiles = [arg.var.type for arg in loop.iter_args if isinstance(arg.var.type, TileType)]
    is_whole = bool(tiles) and all(map(_is_whole, tiles))
    return is_whole and _length(loop) <= SHORT and any(_is_window(stmt, loop) for stmt in statements(loop.body))


def _is_window(stmt: Stmt, loop: ForStmt) -> bool:
    """Return whether a statement sees part of a tile, or loads some of what it loaded in the turn before."""
    call = stmt.value if isinstance(stmt, AssignStmt) else None
    if not isinstance(call, Call) or not isinstance(call.type, TileType):
        return False
    offsets = arguments(call)["offsets"] if call.op.spec.name == "load" else None
    if not isinstance(offsets, MakeTuple) or not isinstance(loop.step, Const):
        return call.op.spec.is_view
    own = zip(offsets.elements[-len(call.type.shape) :], call.type.shape, strict=True)
    return any(_moves_with(start, loop.loop_var) and loop.step.value < extent for start, extent in own)


def _moves_with(start: Expr, var: Var) -> bool:
    """Return whether a number is a variable, or that and others that do not change with it."""
    if not isinstance(start, Call) or start.op.name not in ("scalar.add", "scalar.sub"):
        return start is var
    first, second = start.args
    return _moves_with(first, var) if var not in variables([second]) else first is not var and second is var


def _length(stmt: Stmt, counted: Collection[Var] = ()) -> int:
    """Return how many statements stand for one with its loops written out, too many where it is not simple.

    A branch on variables that are `counted` is the way that each turn takes.
    """
    if isinstance(stmt, ForStmt) and stmt.kind is ForKind.Sequential and _starts(stmt):
        turns, inside = turns_of(stmt), (*counted, stmt.loop_var)
        return SHORT + 1 if turns is None else len(turns) * sum(_length(each, inside) for each in stmt.body)
    if isinstance(stmt, IfStmt) and set(variables([stmt.condition])) <= {*counted}:
        return max(sum(_length(each, counted) for each in body) for body in bodies(stmt))
    if isinstance(stmt, AssignStmt) and _is_simple(stmt.value):
        return 1
    return 0 if isinstance(stmt, YieldStmt) else SHORT + 1


def _starts(loop: ForStmt) -> bool:
    """Return whether everything that a loop carries has a value before its first turn, and nothing is asked of it."""
    return not loop.attrs and not any(isinstance(arg.init, Absent) for arg in loop.iter_args)


def turns_of(loop: ForStmt) -> range | None:
    """Return what a loop's variable is in its turns, None where only the running program knows."""
    numbers = [int(limit.value) for limit in (loop.start, loop.stop, loop.step) if isinstance(limit, Const)]
    return range(*numbers) if len(numbers) == 3 and numbers[-1] else None


def _is_simple(value: Expr) -> bool:
    """Return whether a value is a number, a view, a product, or what a group computes in an instruction."""
    if not isinstance(value, Call) or value.op.kind is Kind.SCALAR:
        return isinstance(value.type, ScalarType)
    spec = value.op.spec
    if not _is_whole(value.type) or (spec.name == "load" and _has(value, "pad", "mask")):
        return False
    return spec.is_view or spec.name in _READING | _SUMMED or (spec.family in _FUSED and not spec.ulp)


def _is_whole(type_: Type) -> bool:
    """Return whether all of a tile is valid, so that no turn of a loop can leave out what others had."""
    return not isinstance(type_, TileType) or type_.valid == type_.shape


def _has(call: Call, *names: str) -> bool:
    given = arguments(call)
    return not all(isinstance(given[name], (Absent, type(None))) for name in names)


class _Unroller(Rewriter):
    is_short = False
    """Whether all this is part of a short loop: the loops in it are written out with it."""

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Replace an unrolled loop by its turns, each with the loop variable as a number."""
        start, stop, step = map(self.expr, (stmt.start, stmt.stop, stmt.step))
        turns = turns_of(replace(stmt, start=start, stop=stop, step=step))
        is_asked = stmt.kind is ForKind.Unroll
        if turns is None or not (is_asked or self.is_short or _is_short(stmt)):
            return super().for_loop(stmt)
        try:
            return self._written_out(stmt, turns, is_short=not is_asked)
        except KernelError:
            if is_asked:
                raise
            return super().for_loop(stmt)  # a turn that cannot be is for the running program to meet

    def _written_out(self, stmt: ForStmt, turns: range, is_short: bool) -> Sequence[Stmt]:
        assert isinstance(stmt.loop_var.type, ScalarType)
        values = tuple(self.expr(arg.init) for arg in stmt.iter_args)
        result: list[Stmt] = []
        for index in turns:
            turn = _Unroller(self.replaced, self.symbols, fresh=True)
            turn.is_short = is_short
            turn.replaced[stmt.loop_var] = constant(index, stmt.loop_var.type.dtype)
            turn.replaced.update(zip((arg.var for arg in stmt.iter_args), values, strict=True))
            stmts = turn.body(stmt.body).stmts
            if stmts and isinstance(stmts[-1], YieldStmt):
                values = stmts[-1].values
                stmts = stmts[:-1]
            result.extend(stmts)
        self.replaced.update(zip(stmt.return_vars, values, strict=True))
        return result
