"""Wider tiles: the loops of a grid in other steps, around kernels whose tiles are as large."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilewright.core.build import arguments, call
from tilewright.core.enums import ForKind
from tilewright.core.expr import Call, Expr, GlobalVar, Invoke, MakeTuple, Submit, Var, integer
from tilewright.core.operands import Bound
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, ForStmt, SeqStmts, Stmt
from tilewright.core.types import TileType, Type
from tilewright.core.visitor import expressions, statements
from tilewright.errors import OutOfBoundsError
from tilewright.passes.made_axes import MADE
from tilewright.passes.tile_axes import Axis, multiple_of
from tilewright.passes.tile_grids import TileGrid

SHAPED = ("load", "slice", "reshape", *MADE)
"""Ops that are told the shape of the tile that they give."""


def wider_kernel(grid: TileGrid, number: int, numbered: int) -> Function:
    """Return one of the kernels of a grid with wider tiles."""
    function = grid.functions[number]
    params = {param: grid.stepped(param, var) for param, var in grid.params(number).items()}
    wider = Wider(params, grid.sizes(number), grid.loops_of(number))
    body = Rewriter().body(wider.body(function.body))  # what is known of the new tiles goes round the loops
    own = tuple(params.get(param, param) for param in function.params)
    return replace(function, name=f"{function.name}_wide{numbered}", params=own, body=body)


def in_other_steps(grid: TileGrid, body: SeqStmts, names: Mapping[str, str]) -> ForStmt:
    """Return the loops of a grid around calls of other kernels."""
    replaced = {var: grid.stepped(var, var) for var in grid.steps}
    named = _Renamed(replaced, names).body(body)
    for loop in grid.inside_out:
        if (var := loop.loop_var) in grid.steps:
            span = grid.spans[var]
            loop = replace(loop, loop_var=replaced[var], start=integer(span.start), stop=span.stop)
            loop = replace(loop, step=integer(grid.steps[var]), kind=ForKind.Parallel)
        named = SeqStmts((replace(loop, body=named),))
    (result,) = named
    assert isinstance(result, ForStmt)
    return result


def with_kernels(program: Program, kernels: Sequence[Function], functions: Sequence[Function]) -> Program:
    """Return a program of other functions, with more kernels and without those that nothing calls any more."""
    made = program.with_functions([*kernels, *functions])
    gone = _called(program) - _called(made)
    return made.with_functions([function for function in made.function_list if function.name not in gone])


def _called(program: Program) -> set[str]:
    """Return the functions that others call."""
    stmts = (stmt for function in program.function_list for stmt in statements(function.body))
    return {expr.op.name for stmt in stmts for expr in expressions(stmt) if isinstance(expr, (Invoke, Submit))}


class _Renamed(Rewriter):
    """Calls of other functions."""

    def __init__(self, replaced: Mapping[Var, Var], names: Mapping[str, str]) -> None:
        super().__init__(replaced)
        self.names = names

    def expr(self, expr: Expr) -> Expr:
        """Rename a call."""
        made = super().expr(expr)
        return replace(made, op=GlobalVar(self.names[made.op.name])) if isinstance(made, Invoke) else made


class Wider(Rewriter):
    """A kernel with some axes of its tiles longer, and some of its loops in other steps."""

    def __init__(self, params: Mapping[Var, Var], sizes: Mapping[Axis, int], loops: Mapping[Var, ForStmt]) -> None:
        super().__init__(params, fresh=True)
        self.sizes, self.loops = sizes, loops
        self.counting = {*params, *loops}

    def _shape(self, var: Var, shape: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.sizes.get((var, axis), extent) for axis, extent in enumerate(shape))

    def define(self, var: Var, type_: Type | None = None) -> Var:
        """Let a variable stand for one that may be wider."""
        if type_ is None and isinstance(var.type, TileType):
            shape = self._shape(var, var.type.shape)
            pairs = zip(var.type.valid, var.type.shape, shape, strict=True)
            valid = tuple(v if old == new else None for v, old, new in pairs)
            type_ = TileType(shape, var.type.dtype, valid, var.type.memory)
        return super().define(var, type_)

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Load or make a wider tile."""
        value = stmt.value
        if isinstance(value, Call) and value.op.spec.name in SHAPED and isinstance(stmt.var.type, TileType):
            shape = MakeTuple(tuple(map(integer, self._shape(stmt.var, stmt.var.type.shape))))
            given = arguments(value)
            name = "shapes" if value.op.spec.name == "load" else "shape"
            bound = {n: self.expr(x) if isinstance(x, Expr) else x for n, x in given.items()}
            made = _cut(value, {**bound, name: shape})
            return (AssignStmt(self.define(stmt.var, made.type), made, stmt.span),)
        return super().assign(stmt)

    def expr(self, expr: Expr) -> Expr:
        """Take a variable that counts elements for what was a multiple of one that counted tiles."""
        var, _ = multiple_of(expr)
        return self.replaced[var] if isinstance(var, Var) and var in self.counting else super().expr(expr)

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Take other steps."""
        return super().for_loop(self.loops.get(stmt.loop_var, stmt))


def _cut(old: Call, bound: Bound) -> Expr:
    """Return a call with other arguments; a load that is now known to be cut short says so."""
    try:
        return call(old.op.spec, bound, old.span)
    except OutOfBoundsError:
        return call(old.op.spec, {**bound, "clamp": True}, old.span)
