"""Control flow: loops, branches and the ways out of them."""

from __future__ import annotations

from tilewright.backends.cpu.emit.function import FunctionEmitter, emits
from tilewright.backends.cpu.emit.values import Tensor, static
from tilewright.backends.cpu.emit.work import SMALL
from tilewright.backends.cpu.host.abi import leave_result
from tilewright.backends.cpu.host.loops import (
    Branch,
    Loop,
    bind_results,
    carried,
    counted_loop,
    hand_over,
    inside,
    rows_of_loop,
    turns_of,
)
from tilewright.backends.cpu.host.parallel import parallel_loop
from tilewright.core.stmt import BreakStmt, ContinueStmt, ForStmt, IfStmt, ReturnStmt, SeqStmts, WhileStmt, YieldStmt
from tilewright.native.llvm import i64


@emits(ForStmt)
def _for(e: FunctionEmitter, stmt: ForStmt) -> None:
    if parallel_loop(e, stmt):
        return
    stepped, count = turns_of(e, stmt)
    carriers = carried(e, stmt.iter_args)
    with rows_of_loop(e, stmt, carriers):
        counted_loop(e, stmt, (i64(0), count), carriers, stepped)
    bind_results(e, stmt.return_vars, carriers)


@emits(WhileStmt)
def _while(e: FunctionEmitter, stmt: WhileStmt) -> None:
    """Emit a loop that also ends with its program: what it waits for might never come."""
    b = e.b
    carriers = carried(e, stmt.iter_args)
    head, body, done = (b.label(hint) for hint in ("head", "body", "done"))
    b.do(f"br label %{head}")
    b.begin(head)
    for carrier, arg in zip(carriers, stmt.iter_args, strict=True):
        carrier.bind(e, arg.var)
    b.do(f"br i1 {e.scalar(stmt.condition).value.ref}, label %{body}, label %{done}")
    b.begin(body)
    e.worked(1 + e.program.work.body(stmt.body).units)
    inside(e, Loop(carriers, head, done), stmt.body)
    b.do(f"br label %{head}")
    b.begin(done)
    bind_results(e, stmt.return_vars, carriers)


@emits(IfStmt)
def _if(e: FunctionEmitter, stmt: IfStmt) -> None:
    b = e.b
    condition = e.scalar(stmt.condition).value
    from tilewright.backends.cpu.host.carriers import Carrier  # few programs have branches

    carriers = [Carrier.of(e, var, may_be_missing=bool(e.bound)) for var in stmt.return_vars]
    least = e.program.work.least(stmt).units
    then, other, after = (b.label(hint) for hint in ("then", "else", "endif"))
    b.do(f"br i1 {condition.ref}, label %{then}, label %{other}")
    for label, body in ((then, stmt.then_body), (other, stmt.else_body or SeqStmts())):
        b.begin(label)
        inside(e, Branch(carriers), body)
        if (more := e.program.work.body(body).units - least) >= SMALL:
            e.worked(more)
        b.do(f"br label %{after}")
    b.begin(after)
    bind_results(e, stmt.return_vars, carriers)


@emits(YieldStmt)
def _yield(e: FunctionEmitter, stmt: YieldStmt) -> None:
    if e.regions:
        hand_over(e, e.regions[-1], stmt.values)


def _innermost(e: FunctionEmitter) -> Loop:
    return next(region for region in reversed(e.regions) if isinstance(region, Loop))


@emits(BreakStmt)
def _break(e: FunctionEmitter, stmt: BreakStmt) -> None:
    loop = _innermost(e)
    hand_over(e, loop, stmt.values)
    e.leave(loop.done)


@emits(ContinueStmt)
def _continue(e: FunctionEmitter, stmt: ContinueStmt) -> None:
    loop = _innermost(e)
    hand_over(e, loop, stmt.values)
    e.leave(loop.following)


@emits(ReturnStmt)
def _return(e: FunctionEmitter, stmt: ReturnStmt) -> None:
    """Write results into their rooms; those that are parameters need none."""
    values, returned = [e.value(value) for value in stmt.values], e.program.returned[e.function.name]
    results = zip(e.function.return_types, values, returned, strict=True)
    for k, (type_, value, _) in enumerate(result for result in results if result[2] is None):
        if isinstance(value, Tensor) and value.strides:
            e.turned_results[k] |= static(value.strides[-1]) != 1
        leave_result(e, type_, value, e.rooms[k])
    e.leave(e.exit)
