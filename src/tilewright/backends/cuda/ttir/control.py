"""Control flow: loops and branches of a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.backends.cuda.schedule import SPECIALIZED
from tilewright.backends.cuda.ttir import carried, extents
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import refused, statement
from tilewright.backends.cuda.ttir.text import I64, Value
from tilewright.backends.cuda.ttir.values import Binding, Extent
from tilewright.core.expr import Absent, Call, Invoke, Submit, Var
from tilewright.core.stmt import ForStmt, IfStmt, ReturnStmt, SeqStmts, YieldStmt
from tilewright.core.types import TensorType
from tilewright.core.visitor import expressions, statements
from tilewright.source import Span


@statement(ReturnStmt)
@statement(YieldStmt)
def _given(k: Kernel, stmt: ReturnStmt | YieldStmt) -> tuple[Binding, ...]:
    return tuple(k.value(value) for value in stmt.values)


@statement(ForStmt)
def _for(k: Kernel, stmt: ForStmt) -> tuple[Binding, ...]:
    """Write a loop; one that counts down, or by what only the running kernel knows, counts its turns."""
    if any(isinstance(arg.init, Absent) for arg in stmt.iter_args):
        raise refused("a loop that binds a name for the first time", stmt.span)
    start, stop, step = (k.index(k.scalar(expr)) for expr in (stmt.start, stmt.stop, stmt.step))
    is_plain = isinstance(step, int) and step > 0
    ends = (start, stop, step) if is_plain else (0, turns(k, start, stop, step, stmt.span), 1)
    low, high, by = (extents.held(k.t, end) for end in ends)
    vars, index, touched = [arg.var for arg in stmt.iter_args], k.t.fresh(I64), (k.read, k.written)
    starts = carried.values(k, vars, [k.value(arg.init) for arg in stmt.iter_args])
    inside, outside = carried.fresh(k, vars), carried.fresh(k, vars)
    pairs = ", ".join(f"{now} = {first}" for now, first in zip(inside, starts, strict=True))
    carries = f" iter_args({pairs}) -> ({_types(inside)})" if vars else ""
    k.read, k.written = set(k.read), set(k.written)
    before = len(k.facts.products)
    with k.t.block(f"{_named(outside)}scf.for {index} = {low} to {high} step {by}{carries} : i64 {{") as tail:
        if _stores(stmt.body):
            k.barrier()
        turn: Extent = index if is_plain else extents.plus(k.t, start, extents.times(k.t, index, step))
        k.bindings[stmt.loop_var] = k.counted(turn)
        carried.bind(k, vars, inside)
        _hand_on(k, vars, k.body(stmt.body))
        if len(k.facts.products) > before:
            tail.described = SPECIALIZED
    k.read, k.written = k.read | touched[0], k.written | touched[1]
    carried.bind(k, stmt.return_vars, outside)
    return ()


def turns(k: Kernel, start: Extent, stop: Extent, step: Extent, span: Span) -> Extent:
    """Return how many turns a loop has; a step of zero is an error and means none."""
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int) and step:
        return max(-((start - stop) // step), 0)
    t, zero = k.t, k.t.integer(0)
    by, distance = extents.held(t, step), extents.held(t, extents.minus(t, stop, start))
    is_zero = t.compare("cmpi eq", by, zero)
    k.fail(is_zero, "a loop's step cannot be zero", span)
    count = t.simple("arith.ceildivsi", distance, t.select(is_zero, t.integer(1), by))
    return t.select(is_zero, zero, t.simple("arith.maxsi", count, zero))


@statement(IfStmt)
def _if(k: Kernel, stmt: IfStmt) -> tuple[Binding, ...]:
    condition, vars = k.scalar(stmt.condition), stmt.return_vars
    outside = carried.fresh(k, vars)
    results = f" -> ({_types(outside)})" if vars else ""
    touched = k.read, k.written
    with k.t.block(f"{_named(outside)}scf.if {condition.value}{results} {{"):
        k.read, k.written = set(touched[0]), set(touched[1])
        _hand_on(k, vars, k.body(stmt.then_body))
        then = k.read, k.written
        k.read, k.written = set(touched[0]), set(touched[1])
        k.t.between("} else {")
        _hand_on(k, vars, k.body(stmt.else_body or SeqStmts()))
        k.read, k.written = k.read | then[0], k.written | then[1]
    carried.bind(k, vars, outside)
    return ()


def _hand_on(k: Kernel, vars: Sequence[Var], given: Sequence[Binding]) -> None:
    if vars:
        found = carried.values(k, vars, given)
        k.t.do(f"scf.yield {', '.join(map(str, found))} : {_types(found)}")


def _named(values: Sequence[Value]) -> str:
    return f"{', '.join(map(str, values))} = " if values else ""


def _types(values: Sequence[Value]) -> str:
    return ", ".join(value.type for value in values)


def _stores(body: SeqStmts) -> bool:
    """Return whether statements may write to memory."""
    found = (expr for stmt in statements(body) for expr in expressions(stmt))
    return any(
        isinstance(expr, (Invoke, Submit))
        or (isinstance(expr, Call) and bool(expr.op.spec.writes) and isinstance(expr.type, TensorType))
        for expr in found
    )
