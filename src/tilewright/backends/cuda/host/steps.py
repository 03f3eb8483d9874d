"""Steps: kernels of one turn that go from tensor to tensor, as a launch for each of them.

Compute on whole tensors that is cut into blocks is written that way: parallel loops, one after the other, between which
nothing but tensors goes on. As one kernel it would be one block of the GPU. So such a kernel is written out where it
is called: its loops are grids, the tensors that it makes the host's, and what stands between them kernels of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import prod

from tilewright.backends.cuda.host.assembled import in_place
from tilewright.backends.cuda.host.grids import SHARED
from tilewright.backends.cuda.host.regions import is_kernel, is_launched, nest
from tilewright.backends.cuda.host.row_grids import LARGE, MADE
from tilewright.core.enums import FunctionType
from tilewright.core.expr import Call, ConstInt, Expr, Invoke, Var
from tilewright.core.op import Effect, Kind
from tilewright.core.program import Function, Program
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import (
    AssignStmt,
    EvalStmt,
    ForStmt,
    IfStmt,
    InCoreScopeStmt,
    ReturnStmt,
    SeqStmts,
    Stmt,
    YieldStmt,
)
from tilewright.core.types import ScalarType, TileType
from tilewright.core.visitor import bodies, defined, evaluated, expressions, invocations, statements, used, variables
from tilewright.passes import inline, outline
from tilewright.passes.exits import returns_early
from tilewright.passes.outline import author_of

_OF_A_BLOCK = frozenset(f"{kind}.get_{what}" for kind in ("tile", "tensor") for what in ("block_idx", "block_num"))
"""Ops that ask for the block of a kernel, which would be another one."""


def in_steps(program: Program) -> Program:
    """Return a program whose host functions start the steps of kernels that are such, each as a grid of its own."""
    alone = _started_alone(program)
    stepped = {f.name: made for f in program.function_list if f.name in alone and (made := _stepped(program, f))}
    if not stepped:
        return program
    written_out = inline.run(program.with_functions([stepped.get(f.name, f) for f in program.function_list]))
    return outline.run(written_out)


def _started_alone(program: Program) -> set[str]:
    """Return the names of the kernels that host functions call, and that nobody calls inside of a grid."""
    hosts = [f for f in program.function_list if not is_kernel(f)]
    calls = [call for f in hosts for call in _calls_of_the_host(program, f.body)]
    found = {call.op.name for call in calls if isinstance(call, Invoke) and call.device is None}
    everywhere = [call for f in program.function_list for call in invocations(f.body)]
    others = [call for call in everywhere if not any(call is each for each in calls) or not isinstance(call, Invoke)]
    return found - {call.op.name for call in others}


def _calls_of_the_host(program: Program, body: SeqStmts) -> Iterator[Expr]:
    """Yield what the host calls itself, not in the turns of a grid."""
    for stmt in body:
        if isinstance(stmt, ForStmt) and is_launched(program, stmt):
            continue
        yield from (e for e in expressions(stmt) if isinstance(e, Invoke))
        for inner in bodies(stmt):
            yield from _calls_of_the_host(program, inner)


def _stepped(program: Program, function: Function) -> Function | None:
    """Return a kernel as statements of the host with a scope for each step; None where it is one step."""
    if not function.func_type.is_incore or returns_early(function.body) or not _can_be_apart(function):
        return None
    plain = function.with_body(_Unnamed().body(function.body))
    own = in_place(program.with_functions([plain if f is function else f for f in program.function_list]), plain)
    grids = [stmt for stmt in own if isinstance(stmt, ForStmt) and is_launched(program, stmt)]
    if not any(_is_large(program, loop) for loop in grids):
        return None
    name = "" if author_of(function.name, program.function_names) != function.name else function.name
    steps = _Steps(lambda loop: is_launched(program, loop), name).of(own)
    if not _crosses_nothing(steps):
        return None
    return replace(function, func_type=FunctionType.Inline, body=SeqStmts(tuple(steps)))


def _can_be_apart(function: Function) -> bool:
    """Return whether nothing in a kernel needs it to be one."""
    calls = [e for stmt in statements(function.body) for e in expressions(stmt) if isinstance(e, Call)]
    kinds = Kind.SCALAR, Kind.TILE, Kind.TENSOR
    return all(
        (call.op.kind in kinds or call.op.name == "system.device_assert") and call.op.name not in _OF_A_BLOCK
        for call in calls
    )


def _is_large(program: Program, loop: ForStmt) -> bool:
    """Return whether the turns of a loop make more elements together than one block is good for."""
    loops = nest(program, loop)
    turns = [_turns(each) for each in loops]
    made = [var.type for stmt in statements(loops[-1].body) for var in defined(stmt)]
    largest = max((prod(type_.shape) for type_ in made if isinstance(type_, TileType)), default=0)
    return largest > 0 and (None in turns or prod(filter(None, turns)) * largest > LARGE)


def _turns(loop: ForStmt) -> int | None:
    ends = [int(each.value) for each in (loop.start, loop.stop, loop.step) if isinstance(each, ConstInt)]
    return len(range(*ends)) if len(ends) == 3 and ends[2] else None


class _Unnamed(Rewriter):
    """Writes to tensors that have no result: what was written to is known by its own name afterwards."""

    def assign(self, stmt: AssignStmt) -> Sequence[Stmt]:
        """Let a write stand by itself."""
        value = self.expr(stmt.value)
        if not isinstance(value, Call) or value.op.spec.effect is not Effect.WRITE or value.op.spec.alias is None:
            return super().assign(stmt)
        self.replaced[stmt.var] = value.args[[p.name for p in value.op.spec.operands].index(value.op.spec.alias)]
        return (EvalStmt(value, stmt.span),)


class _Steps:
    """The statements of a kernel in order, those that are no statements of the host's in scopes."""

    def __init__(self, is_grid: Callable[[ForStmt], bool], name: str) -> None:
        self.is_grid, self.name = is_grid, name
        self.written: list[Stmt] = []
        self.open: list[Stmt] = []
        """What the next scope will hold."""

    def of(self, body: SeqStmts) -> list[Stmt]:
        """Return all steps of a kernel's body."""
        for stmt in body:
            self._add(stmt)
        self._close()
        return self.written

    def _add(self, stmt: Stmt) -> None:
        if isinstance(stmt, ForStmt) and self.is_grid(stmt):
            self._close()
            self.written.append(self._grid(stmt))
        elif _is_early(stmt) and not _names(self.open, defined) & _names([stmt], _read):
            self.written.append(stmt)
        elif _is_early(stmt) or _is_of_the_host(stmt):
            self._close()
            self.written.append(stmt)
        else:
            self.open.append(stmt)

    def _close(self) -> None:
        if self.open:
            self.written.append(self._scope(self.open))
        self.open = []

    def _scope(self, stmts: Sequence[Stmt]) -> Stmt:
        return InCoreScopeStmt(SeqStmts(tuple(stmts)), self.name, span=stmts[0].span)

    def _grid(self, loop: ForStmt) -> Stmt:
        inner = next(iter(loop.body), None)
        if len(loop.body) == 1 and isinstance(inner, ForStmt) and self.is_grid(inner):
            return replace(loop, body=SeqStmts((self._grid(inner),)))
        return replace(loop, body=SeqStmts((self._scope(loop.body.stmts),)))


def _is_early(stmt: Stmt) -> bool:
    """Return whether a statement of the host's touches no elements that are there, so that it can come earlier."""
    if isinstance(stmt, YieldStmt):
        return True
    if isinstance(stmt, IfStmt):
        numbers = all(isinstance(var.type, ScalarType) for var in stmt.return_vars)
        return numbers and all(_is_early(each) for body in bodies(stmt) for each in body)
    value = stmt.value if isinstance(stmt, AssignStmt) else None
    if not isinstance(value, Call):
        return False
    is_view = value.op.kind is Kind.TENSOR and value.op.spec.is_view
    return value.op.kind is Kind.SCALAR or is_view or value.op.name in ("tensor.dim", *MADE)


def _is_of_the_host(stmt: Stmt) -> bool:
    value = evaluated(stmt)
    return isinstance(stmt, ReturnStmt) or (isinstance(value, Call) and value.op.name in SHARED)


def _read(stmt: Stmt) -> Sequence[Var]:
    return variables(used(stmt))


def _names(stmts: Sequence[Stmt], of: Callable[[Stmt], Sequence[Var]]) -> set[Var]:
    return {var for stmt in statements(SeqStmts(tuple(stmts))) for var in of(stmt)}


def _crosses_nothing(steps: Sequence[Stmt]) -> bool:
    """Return whether nothing that is made in a scope is read outside of it."""
    scopes = [stmt for stmt in statements(SeqStmts(tuple(steps))) if isinstance(stmt, InCoreScopeStmt)]
    insides = [(_names([each], defined), _names([each], _read)) for each in scopes]
    host = _names([stmt for stmt in steps if not isinstance(stmt, (ForStmt, InCoreScopeStmt))], _read)
    return not any(
        made & host or any(made & read for other, (_, read) in enumerate(insides) if other != number)
        for number, (made, _) in enumerate(insides)
    )
