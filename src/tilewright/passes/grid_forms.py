"""Grid forms: the ways to write a grid of tiles, brought into one.

A grid is loops around calls of kernels, which begin their tiles at multiples of the loops' variables. Authors also give
those multiples names, count all tiles with one variable and take it apart, launch blocks, or write the loops inside a
kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from tilewright.core.enums import ForKind, FunctionType, ParamDirection
from tilewright.core.expr import Call, ConstInt, Expr, GlobalVar, Invoke, Submit, Symbol, Var, integer
from tilewright.core.extents import as_extent
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter, loop_bounds
from tilewright.core.stmt import AssignStmt, EvalStmt, ForStmt, SeqStmts, Stmt
from tilewright.core.types import ScalarType, TensorType, TupleType
from tilewright.core.visitor import defined, expressions, invocations, statements, used, variables
from tilewright.dtypes import INDEX
from tilewright.passes.aliases import directions
from tilewright.passes.barriers import has_barrier
from tilewright.passes.last_use import reads
from tilewright.passes.launches import hands_on
from tilewright.passes.products import PRODUCTS, SUMS

PARTS = ("scalar.floordiv", "scalar.mod")
"""What gives the row and the column of a tile from its number."""

OFFSETS = ("scalar.mul", *PARTS)
"""What the places of tiles are computed with."""

ZERO, ONE = integer(0), integer(1)


def in_one_form(program: Program) -> Program:
    """Return a lowered program in which grids of products are loops around calls, as far as they can be."""
    if not any(_has_product(function.body) for function in program.function_list):
        return program
    written = program.with_functions([f.with_body(_WrittenOut().body(f.body)) for f in program.function_list])
    forms = _Forms(written)
    for name in written.function_names:
        if (function := forms.functions.get(name)) is not None:  # as it has become, if it is still there
            forms.rewrite(function)
    return written.with_functions([*forms.functions.values()])


def _has_product(body: SeqStmts) -> bool:
    found = (expr for stmt in statements(body) for expr in expressions(stmt))
    return any(isinstance(expr, Call) and expr.op.spec.name in (*PRODUCTS, *SUMS) for expr in found)


class _WrittenOut(Rewriter):
    """Statements in which offsets have no names."""

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Let what a name stands for take its place."""
        if not _is_offset(stmt.value):
            return super().assign(stmt)
        self.replaced[stmt.var] = self.expr(stmt.value)
        return ()


def _is_offset(value: Expr) -> bool:
    return isinstance(value, Call) and value.op.name in OFFSETS and value.type == ScalarType(INDEX)


class _Forms(Rewriter):
    """The functions of a program, each with the calls and loops in it brought into one form."""

    def __init__(self, program: Program) -> None:
        super().__init__()
        self.functions = {function.name: function for function in program.function_list}
        self.calls = Counter(call.op.name for f in program.function_list for call in invocations(f.body))
        self.uses: Counter[Var] = Counter()
        self.function = program.function_list[0]

    def rewrite(self, function: Function) -> None:
        """Rewrite one of the functions, which the kernels that become other ones come after."""
        self.function, self.uses = function, reads(function.body)
        self.functions[function.name] = replace(function, body=self.body(function.body))

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Write a loop for a launch of blocks that nobody waits for by name."""
        launch = stmt.value
        if not isinstance(launch, Submit) or self.uses[stmt.var] or (loop := self._blocks(launch)) is None:
            return super().assign(stmt)
        return self.for_loop(loop)

    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Take a count of tiles apart, and let a loop around statements have a call of a kernel inside."""
        nest = self._outlined(self._taken_apart(stmt) or stmt)
        return super().for_loop(nest)

    def _blocks(self, launch: Submit) -> ForStmt | None:
        """Return a loop over the blocks of a launch; its kernel is told the block's number."""
        call = self._launched(launch)
        kernel = self.functions[call.op.name]
        told = [stmt for stmt in kernel.body if _asks(stmt, "get_block_idx")]
        others = [stmt for stmt in statements(kernel.body) if _asks(stmt, "get_block")]
        plain = launch.predicate is None and not launch.dumps and self.calls[kernel.name] == 1
        hands_back = kernel.return_types and call.op is launch.op
        if not plain or launch.core_num is None or len(told) != 1 or len(others) != 1 or hands_back:
            return None
        (first,) = told
        if not isinstance(first, AssignStmt) or has_barrier(self.functions, kernel.body):
            return None
        rest = SeqStmts(tuple(stmt for stmt in kernel.body if stmt is not first))
        block = Var(first.var.name_hint, first.var.type, first.span, first.var.bounds)
        params, used = (first.var, *kernel.params), (ParamDirection.In, *kernel.param_directions)
        self.functions[kernel.name] = replace(
            kernel, params=params, param_directions=used, body=rest, func_type=FunctionType.InCore
        )
        if launch.op.name != kernel.name:
            del self.functions[launch.op.name]
        stmt = EvalStmt(replace(call, args=(block, *call.args)), launch.span)
        return _loop(block, launch.core_num, stmt)

    def _launched(self, launch: Submit) -> Invoke:
        """Return the call that each block of a launch is: of the function that it names, or what that only calls."""
        named = self.functions[launch.op.name]
        inner = _sole_call(named.body)
        if inner is None or self.calls[named.name] != 1:
            return Invoke(launch.op, launch.args, TupleType(()), launch.span)
        made = Rewriter(dict(zip(named.params, launch.args, strict=True))).expr(inner)
        assert isinstance(made, Invoke)
        return made

    def _taken_apart(self, loop: ForStmt) -> ForStmt | None:
        """Return loops over rows and columns for one over all tiles, where a kernel wants to know just those."""
        var, ends = loop.loop_var, [as_extent(end) for end in (loop.start, loop.stop, loop.step)]
        tiles, call = ends[1], _sole_call(loop.body)
        if call is None or call.args.count(var) != 1 or self.calls[call.op.name] != 1:
            return None
        kernel, at = self.functions[call.op.name], call.args.index(var)
        width = _width(kernel.body, kernel.params[at])
        if ends != [0, tiles, 1] or not isinstance(tiles, int) or not width or tiles % width:
            return None
        counts = {f"{var.name_hint}_row": tiles // width, f"{var.name_hint}_column": width}
        inner, outer = ([_counter(*each) for each in counts.items()] for _ in range(2))
        params = (*kernel.params[:at], *inner, *kernel.params[at + 1 :])
        used = (*kernel.param_directions[:at], ParamDirection.In, *kernel.param_directions[at:])
        body = _Parts(kernel.params[at], *inner).body(kernel.body)
        self.functions[kernel.name] = replace(kernel, params=params, param_directions=used, body=body)
        stmt = _called(kernel.name, (*call.args[:at], *outer, *call.args[at + 1 :]), call)
        for each, count in zip(reversed(outer), reversed(counts.values()), strict=True):
            stmt = replace(_loop(each, integer(count), stmt), kind=loop.kind)
        return stmt if isinstance(stmt, ForStmt) else None

    def _outlined(self, loop: ForStmt) -> ForStmt:
        """Return loops around a call of a kernel that does what the innermost did, where that multiplies."""
        inner = loop
        while len(inner.body) == 1 and isinstance(within := inner.body.stmts[0], ForStmt) and not hands_on(within):
            inner = within
        own = {var for stmt in statements(inner.body) for var in defined(stmt)}
        args = [var for var in reads(inner.body) if var not in own]
        if hands_on(loop) or not _has_product(inner.body) or (kernel := self._kernel(inner, args)) is None:
            return loop
        self.functions[kernel.name] = kernel
        return _with_innermost(loop, inner, _called(kernel.name, args, inner))

    def _kernel(self, loop: ForStmt, read: Sequence[Var]) -> Function | None:
        """Return what a loop does in each turn as a function of what it reads; None where that is more than memory."""
        carried = {n for var in read if isinstance(var.type, TensorType) for n in var.type.shape}
        named = {e for stmt in statements(loop.body) for e in expressions(stmt) if isinstance(e, Symbol)}
        is_plain = all(isinstance(var.type, (TensorType, ScalarType)) for var in read) and named <= carried
        if not is_plain or invocations(loop.body):
            return None
        name = f"{self.function.name}_turn{len(self.functions)}"
        params = [Var(v.name_hint, v.type, v.span, v.bounds) for v in read]
        body = Rewriter(dict(zip(read, params, strict=True)), fresh=True).body(loop.body)
        return Function(name, tuple(params), (), body, loop.span, FunctionType.InCore, directions(params, body))


def _with_innermost(loop: ForStmt, inner: ForStmt, stmt: Stmt) -> ForStmt:
    if loop is inner:
        return replace(loop, body=SeqStmts((stmt,)))
    (within,) = loop.body
    assert isinstance(within, ForStmt)
    return replace(loop, body=SeqStmts((_with_innermost(within, inner, stmt),)))


def _asks(stmt: Stmt, name: str) -> bool:
    """Return whether a statement asks for a number of the launch."""
    return any(isinstance(e, Call) and e.op.spec.name.startswith(name) for e in expressions(stmt))


def _sole_call(body: SeqStmts) -> Invoke | None:
    """Return the call that is all of a body."""
    stmt = body.stmts[0] if len(body) == 1 else None
    return stmt.expr if isinstance(stmt, EvalStmt) and isinstance(stmt.expr, Invoke) else None


def _called(name: str, args: Sequence[Expr], at: ForStmt | Invoke | Submit) -> Stmt:
    return EvalStmt(Invoke(GlobalVar(name), tuple(args), TupleType(()), at.span), at.span)


def _loop(var: Var, count: Expr, stmt: Stmt) -> ForStmt:
    return ForStmt(var, ZERO, count, ONE, SeqStmts((stmt,)), ForKind.Parallel, span=var.span)


def _counter(name: str, count: int) -> Var:
    return Var(name, ScalarType(INDEX), bounds=loop_bounds(ZERO, integer(count), ONE))


def _width(body: SeqStmts, var: Var) -> int:
    """Return the number that a count is taken apart by wherever it is read; 0 where it is read in other ways."""
    widths: list[int] = []
    for expr in (expr for stmt in statements(body) for expr in expressions(stmt)):
        match expr:
            case Call(args=(first, ConstInt(value=by))) if first is var and expr.op.name in PARTS and by > 0:
                widths.append(int(by))
            case _:
                pass
    count = sum(variables(used(stmt)).count(var) for stmt in statements(body))
    return widths[0] if len(widths) == count and len(set(widths)) == 1 else 0


class _Parts(Rewriter):
    """Statements in which a count was taken apart, with a variable for each part."""

    def __init__(self, whole: Var, row: Var, column: Var) -> None:
        super().__init__(fresh=True)
        self.whole, self.parts = whole, dict(zip(PARTS, (row, column), strict=True))

    def expr(self, expr: Expr) -> Expr:
        """Take a variable for a part."""
        if isinstance(expr, Call) and expr.args[:1] == (self.whole,) and expr.op.name in self.parts:
            return self.parts[expr.op.name]
        return super().expr(expr)
