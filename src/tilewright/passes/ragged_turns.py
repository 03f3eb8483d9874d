"""Ragged turns: the last turn of a loop over chunks of columns, in which less is left than a chunk, by itself.

A chunk that may hang over the end of its tensor is brought into a tile that is filled up. In all turns but the last
it does not: those load what is there, as it is, and what a loop does to each row by itself it does row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.core.build import arguments, call
from tilewright.core.expr import Absent, Call, Const, Expr, MakeTuple, Var, integer
from tilewright.core.extents import fits
from tilewright.core.operands import Argument
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, ForStmt, Stmt
from tilewright.core.types import TensorType, TileType, is_fully_valid
from tilewright.core.visitor import statements


def run(program: Program) -> Program:
    """Return a lowered program whose padded loads hang over where they must, and are plain loads elsewhere."""
    functions = [_straight(function) for function in program.function_list]
    same = all(new is old for new, old in zip(functions, program.function_list, strict=True))
    return program if same else program.with_functions(functions)


def _straight(function: Function) -> Function:
    if not any(isinstance(s, AssignStmt) and _padded(s.value) is not None for s in statements(function.body)):
        return function
    return function.with_body(_Peeler().body(function.body))


def _padded(value: Expr) -> Call | None:
    """Return a load that fills up what is not there, and nothing else: no elements that a mask leaves out."""
    if not isinstance(value, Call) or value.op.name != "tile.load":
        return None
    pad, mask = (arguments(value)[name] for name in ("pad", "mask"))
    return value if not _is_absent(pad) and _is_absent(mask) else None


def _is_absent(value: Argument) -> bool:
    return value is None or isinstance(value, Absent)


def _is_inside(load: Call) -> bool:
    """Return whether a load surely finds all that it asks for."""
    given, source, tile = arguments(load), load.args[0].type, load.type
    if not isinstance(source, TensorType) or not isinstance(tile, TileType) or not is_fully_valid(source):
        return False
    offsets, wanted = given["offsets"], given["valid_shape"]
    if not isinstance(offsets, MakeTuple) or not _is_absent(wanted):
        return False
    return all(fits(at, n, extent) for at, n, extent in zip(offsets.elements, tile.shape, source.shape, strict=True))


class _Peeler(Rewriter):
    """Loops with their ragged turn apart, and loads that fill up nothing."""

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Load what is there as it is."""
        made = super().assign(stmt)
        if len(made) != 1 or not isinstance(made[0], AssignStmt) or (load := _padded(made[0].value)) is None:
            return made
        if not _is_inside(load):
            return made
        plain = call(load.op.spec, {**arguments(load), "pad": None}, load.span)
        return (AssignStmt(made[0].var, plain, stmt.span),)

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Make the turns in which nothing hangs over first, where these work on each row by itself."""
        end = _end_of_whole(stmt)
        if end is None:
            return super().for_loop(stmt)
        from tilewright.passes.row_turns import rows_of_turns  # few loops have a ragged turn

        copy = _Peeler(dict(self.replaced), dict(self.symbols), fresh=True)
        (whole,) = copy.for_loop(replace(stmt, stop=integer(end)))
        if not isinstance(whole, ForStmt) or rows_of_turns(whole) is None:
            return super().for_loop(stmt)
        pairs = zip(stmt.iter_args, whole.return_vars, strict=True)
        args = tuple(replace(arg, init=result) for arg, result in pairs)
        return whole, *super().for_loop(replace(stmt, start=integer(end), iter_args=args))


def _end_of_whole(stmt: ForStmt) -> int | None:
    """Return where a loop's variable is in its last turn, where chunks hang over in that one alone."""
    limits = [int(x.value) for x in (stmt.start, stmt.stop, stmt.step) if isinstance(x, Const)]
    if len(limits) != 3 or limits[2] <= 0 or len(stmt.iter_args) != 1:
        return None
    turns = range(*limits)
    loads = [load for s in stmt.body if isinstance(s, AssignStmt) and (load := _padded(s.value)) is not None]
    hangs = len(turns) > 2 and any(_hangs_over(load, stmt.loop_var, turns) for load in loads)
    return turns[-1] if hangs else None


def _hangs_over(load: Call, variable: Var, turns: range) -> bool:
    """Return whether a load hangs over the end of its tensor in the last turn alone, along the axis it counts."""
    offsets, source, tile = arguments(load)["offsets"], load.args[0].type, load.type
    if not isinstance(offsets, MakeTuple) or not isinstance(source, TensorType) or not isinstance(tile, TileType):
        return False
    for at, size, extent in zip(offsets.elements, tile.shape, source.shape, strict=True):
        if at is variable and isinstance(extent, int):
            return turns[-2] + size <= extent < turns[-1] + size
    return False
