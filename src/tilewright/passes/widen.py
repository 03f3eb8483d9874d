"""Widening: grids of tiles in which matrices are multiplied, rewritten with tiles as the machine wants them.

What a kernel computes for one element of a product does not depend on the tile the element falls into, if all that
meets it is cut by the same loops. Then the tile is the compiler's to choose: small ones reload their operands and their
sums far too often. Turns of the loops over rows and columns are taken together, and so are steps of the inner
dimension. What is found to be otherwise stays as it was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tilewright.core.build import arguments, call
from tilewright.core.expr import Call, Const, Expr, GlobalVar, Invoke, MakeTuple, Submit, Var, integer
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter, loop_bounds
from tilewright.core.stmt import AssignStmt, EvalStmt, ForStmt, SeqStmts, Stmt
from tilewright.core.types import Extent, TensorType, TileType, Type
from tilewright.core.visitor import expressions, statements, variables
from tilewright.errors import KernelError
from tilewright.passes import simplify
from tilewright.passes.inner_steps import InnerSteps
from tilewright.passes.launches import runs_side_by_side
from tilewright.passes.spans import Span, span_of
from tilewright.passes.tile_axes import MADE, Axis, Class, TileAxes
from tilewright.records import record

GRAINS = ((1, 6), (16, 64))
"""What rows and columns of a tile are multiples of: those of tiles that leave no rest, and those of others."""
FEWEST = 8
"""How many turns there are at least for threads to share, as long as tiles are not small."""
SMALL = 64


@record
class Wanted:
    """The tile that a machine multiplies best: rows and columns of the product, and steps of the inner dimension."""

    rows: int = 256
    columns: int = 128
    depth: int = 256


@record
class Widened:
    """A program with other tiles, and what was changed, a line for each grid."""

    program: Program
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join((*(self.notes or ["every tile is as it was written"]), ""))


def widened(program: Program, wanted: Wanted) -> Widened:
    """Return a lowered program with its products in tiles of about the wanted size."""
    walk = _Walk(program, wanted)
    functions = [f.with_body(walk.body(f.body)) for f in program.function_list]
    if not walk.notes:
        return Widened(program)
    made = program.with_functions([*walk.made, *functions])
    gone = _called(program) - _called(made)
    left = [function for function in made.function_list if function.name not in gone]
    return Widened(simplify.run(made.with_functions(left)), tuple(walk.notes))


def _called(program: Program) -> set[str]:
    """Return the functions that others call."""
    stmts = (stmt for function in program.function_list for stmt in statements(function.body))
    return {expr.op.name for stmt in stmts for expr in expressions(stmt) if isinstance(expr, (Invoke, Submit))}


class _Walk(Rewriter):
    """The functions of a program, their grids of products rewritten."""

    def __init__(self, program: Program, wanted: Wanted) -> None:
        super().__init__()
        self.program, self.wanted = program, wanted
        self.made: list[Function] = []
        self.notes: list[str] = []

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Rewrite a grid; a loop that is none may have some inside."""
        loops, body = _nest(stmt)
        calls = [made for each in body if (made := _invoked(each)) is not None]
        grid = _Grid(self.program, loops, calls, self.wanted) if loops and calls and len(calls) == len(body) else None
        if grid is None or not grid.is_changed:
            return super().for_loop(stmt)
        try:
            kernels = {f.name: grid.kernel(number, len(self.notes)) for number, f in enumerate(grid.functions)}
        except KernelError:  # an op that wants its operands as they were
            return (stmt,)
        self.made += kernels.values()
        self.notes.append(str(grid))
        return (grid.rewritten(body, {name: kernel.name for name, kernel in kernels.items()}),)


def _nest(stmt: ForStmt) -> tuple[list[ForStmt], SeqStmts]:
    """Return loops around each other whose turns run side by side, and what the innermost does."""
    loops, body = list[ForStmt](), SeqStmts((stmt,))
    while len(body) == 1 and isinstance(inner := body.stmts[0], ForStmt) and runs_side_by_side(inner):
        loops.append(inner)
        body = inner.body
    return loops, body


def _role(classes: Sequence[Class]) -> int | None:
    """Return whether axes are the rows of products, 0, or their columns, 1; None for neither and for both."""
    roles = {role for found in classes for role in found.roles}
    summed = any(found.is_summed for found in classes)
    return roles.pop() if len(roles) == 1 and not summed else None


class _Grid:
    """Loops over tiles of a product, and the kernels that compute one tile of it."""

    def __init__(self, program: Program, loops: Sequence[ForStmt], calls: Sequence[Invoke], wanted: Wanted) -> None:
        self.loops, self.calls = loops, calls
        self.functions = [program[each.op.name] for each in calls]
        self.axes = [TileAxes(function.body) for function in self.functions]
        self.inner = [InnerSteps(axes, wanted.depth) for axes in self.axes]
        sums = max(1, *(each.sums for each in self.inner))
        sizes = max(SMALL, wanted.rows // sums), wanted.columns
        self.spans: dict[Var, Span] = {}
        self.steps: dict[Var, int] = {}
        for loop in loops:
            classes = [self._classes(number, loop) for number in range(len(calls))]
            role = _role([found for each in classes for found in each])
            span = self._span(loop, classes) if all(classes) else None
            if span is not None and role is not None:
                self.spans[loop.loop_var] = span
                self.steps[loop.loop_var] = span.wider(sizes[role], *GRAINS[role])
        self._leave_enough()

    @property
    def is_changed(self) -> bool:
        """Whether there is a product, and a better step for one of its loops."""
        wider = any(step != self.spans[var].step for var, step in self.steps.items())
        return bool(self.steps) and (wider or any(each.rewritten for each in self.inner))

    def _classes(self, number: int, loop: ForStmt) -> list[Class]:
        """Return what a loop cuts in one of the kernels, nothing where it does something else there as well."""
        made, function, axes = self.calls[number], self.functions[number], self.axes[number]
        params = [p for p, arg in zip(function.params, made.args, strict=True) if loop.loop_var in variables([arg])]
        if len(params) != 1 or loop.loop_var not in made.args or params[0] in axes.fixed or not axes.stores:
            return []
        (param,) = params
        found = axes.cut_by(param)
        step = loop.step.value if isinstance(loop.step, Const) else None
        sound = all(not c.is_fixed and c.sizes == {step} and all(x.offset is param for x in c.cuts) for c in found)
        stored = all(any(cut.offset is param for cut in cuts) for cuts in axes.stores)
        return found if sound and stored else []

    def _span(self, loop: ForStmt, classes: Sequence[Sequence[Class]]) -> Span | None:
        """Return what a loop covers of the tensors that the kernels are called with."""
        extents: list[Extent] = []
        for made, function, found in zip(self.calls, self.functions, classes, strict=True):
            given = {param: arg.type for param, arg in zip(function.params, made.args, strict=True)}
            extents += [_extent(given.get(cut.tensor), cut.axis) for each in found for cut in each.cuts]
        is_padded = any(cut.is_padded for found in classes for each in found for cut in each.cuts)
        return span_of(loop, extents, is_padded)

    def _leave_enough(self) -> None:
        """Make steps smaller again where too few turns would be left for threads to share."""
        known = {var: span for var, span in self.spans.items() if span.length is not None}
        while known:
            turns = 1
            for var, span in known.items():
                turns *= span.steps(self.steps[var])
            var = max(known, key=lambda var: self.steps[var])
            half = known[var].wider(self.steps[var] // 2, *GRAINS[1])
            if turns >= FEWEST or len(known) < len(self.loops) or self.steps[var] <= SMALL or half >= self.steps[var]:
                return
            self.steps[var] = half

    def kernel(self, number: int, grid: int) -> Function:
        """Return one of the kernels with wider tiles."""
        made, function, axes = self.calls[number], self.functions[number], self.axes[number]
        sizes = dict(self.inner[number].sizes)
        params: dict[Var, Var] = {}
        for param, arg in zip(function.params, made.args, strict=True):
            if isinstance(arg, Var) and arg in self.steps:
                params[param] = Var(param.name_hint, param.type, param.span, self._reach(arg))
                sizes |= {axis: self.steps[arg] for found in axes.cut_by(param) for axis in found.axes}
        wider = _Wider(params, sizes, self.inner[number].rewritten)
        body = Rewriter().body(wider.body(function.body))
        own = tuple(params.get(param, param) for param in function.params)
        return replace(function, name=f"{function.name}_wide{grid}", params=own, body=body)

    def _reach(self, var: Var) -> tuple[int, int] | None:
        span = self.spans[var]
        return loop_bounds(integer(span.start), span.stop, integer(self.steps[var]))

    def rewritten(self, body: SeqStmts, names: Mapping[str, str]) -> ForStmt:
        """Return the loops around calls of other kernels, the one with most turns outside."""
        replaced = {
            loop.loop_var: Var(loop.loop_var.name_hint, loop.loop_var.type, loop.loop_var.span, self._reach(loop.loop_var))
            for loop in self.loops
            if loop.loop_var in self.steps
        }
        named = _Renamed(replaced, names).body(body)
        turns = {var: span.steps(self.steps[var]) for var, span in self.spans.items()}
        for loop in sorted(reversed(self.loops), key=lambda loop: turns.get(loop.loop_var, 0)):
            if loop.loop_var in self.steps:
                span, var = self.spans[loop.loop_var], replaced[loop.loop_var]
                step = integer(self.steps[loop.loop_var])
                loop = replace(loop, loop_var=var, stop=span.stop, step=step)
            named = SeqStmts((replace(loop, body=named),))
        (result,) = named
        assert isinstance(result, ForStmt)
        return result

    def __str__(self) -> str:
        names = ", ".join(dict.fromkeys(function.name for function in self.functions))
        steps = [f"{v.name_hint} by {s} instead of {self.spans[v].step}" for v, s in self.steps.items()]
        inner = [line for each in self.inner for line in each.notes]
        return f"{names}: {', '.join(dict.fromkeys([*steps, *inner]))}"


class _Renamed(Rewriter):
    """Calls of other functions."""

    def __init__(self, replaced: Mapping[Var, Var], names: Mapping[str, str]) -> None:
        super().__init__(replaced)
        self.names = names

    def expr(self, expr: Expr) -> Expr:
        """Rename a call."""
        made = super().expr(expr)
        return replace(made, op=GlobalVar(self.names[made.op.name])) if isinstance(made, Invoke) else made


class _Wider(Rewriter):
    """A kernel with some axes of its tiles longer, and some of its loops in other steps."""

    def __init__(
        self, params: Mapping[Var, Var], sizes: Mapping[Axis, int], loops: Mapping[Var, ForStmt]
    ) -> None:
        super().__init__(params, fresh=True)
        self.sizes, self.loops = sizes, loops

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
        if isinstance(value, Call) and value.op.spec.name in ("load", *MADE) and isinstance(stmt.var.type, TileType):
            shape = MakeTuple(tuple(map(integer, self._shape(stmt.var, stmt.var.type.shape))))
            given = arguments(value)
            name = "shapes" if value.op.spec.name == "load" else "shape"
            bound = {n: self.expr(x) if isinstance(x, Expr) else x for n, x in given.items()}
            made = call(value.op.spec, {**bound, name: shape}, value.span)
            return (AssignStmt(self.define(stmt.var, made.type), made, stmt.span),)
        return super().assign(stmt)

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Take other steps."""
        return super().for_loop(self.loops.get(stmt.loop_var, stmt))


def _invoked(stmt: Stmt) -> Invoke | None:
    value = stmt.value if isinstance(stmt, AssignStmt) else stmt.expr if isinstance(stmt, EvalStmt) else None
    return value if isinstance(value, Invoke) else None


def _extent(type_: Type | None, axis: int) -> Extent:
    return type_.shape[axis] if isinstance(type_, TensorType) and type_.valid == type_.shape else None
