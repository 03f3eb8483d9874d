"""Control flow: loops, branches and what they carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.backends.cpu.emit import FunctionEmitter, emits
from tilewright.backends.cpu.llvm import Value, i64
from tilewright.backends.cpu.tiles import copy
from tilewright.backends.cpu.traced import compute_type
from tilewright.backends.cpu.values import Scalar, Tile
from tilewright.core.enums import ForKind
from tilewright.core.expr import Absent, Expr, Var
from tilewright.core.stmt import BreakStmt, ContinueStmt, ForStmt, IfStmt, ReturnStmt, SeqStmts, WhileStmt, YieldStmt
from tilewright.core.types import ScalarType, TileType
from tilewright.dtypes import INDEX
from tilewright.errors import UnsupportedFeatureError


@emits(ForStmt)
def _for(e: FunctionEmitter, stmt: ForStmt) -> None:
    if stmt.kind is ForKind.Parallel and not stmt.iter_args and e.program.parallel(e, stmt):
        return
    start, stop, step = (e.index(e.value(x)) for x in (stmt.start, stmt.stop, stmt.step))
    if not step.ref.isdigit() or step.ref == "0":
        raise UnsupportedFeatureError(
            "a loop whose step is not a positive constant has no native code yet", spans=[stmt.span]
        )
    slots, starts = carried(e, [arg.var for arg in stmt.iter_args], [arg.init for arg in stmt.iter_args], stmt)
    loop = e.b.open_loop(start, stop, step, starts)
    bind_carried(e, [arg.var for arg in stmt.iter_args], slots, loop.values)
    e.bindings[stmt.loop_var] = Scalar(loop.index, INDEX)
    following = turn(e, stmt.body, slots)
    results = e.b.close_loop(loop, following)
    bind_carried(e, stmt.return_vars, slots, results)


def carried(
    e: FunctionEmitter, variables: Sequence[Var], inits: Sequence[Expr], stmt: Any
) -> tuple[list[Any], list[Value]]:
    """Return a slot for each carried tile, filled with its start, and the starts of carried scalars."""
    slots: list[Any] = []
    starts: list[Value] = []
    for var, init in zip(variables, inits, strict=True):
        if isinstance(var.type, TileType):
            slot = e.fresh(var.type, tuple(i64(extent) for extent in var.type.shape))
            slot.owners = [*variables]
            if any(not isinstance(v, int) for v in var.type.valid):
                raise UnsupportedFeatureError(
                    "carrying a tile of unknown valid extent has no native code yet", spans=[stmt.span]
                )
            slot.valid = tuple(i64(v) for v in var.type.valid if isinstance(v, int))
            if not isinstance(init, Absent):
                copy(e, e.value(init), slot)
            slots.append(slot)
        elif isinstance(var.type, ScalarType):
            slots.append(var.type.dtype)
            value = Scalar(i64(0), INDEX) if isinstance(init, Absent) else e.value(init)
            starts.append(value.value)
        else:
            raise UnsupportedFeatureError(f"carrying {var.type} has no native code yet", spans=[stmt.span])
    return slots, starts


def bind_carried(e: FunctionEmitter, variables: Sequence[Var], slots: Sequence[Any], values: Sequence[Value]) -> None:
    """Let variables stand for slots and for what a loop carries in registers."""
    remaining = iter(values)
    for var, slot in zip(variables, slots, strict=True):
        if isinstance(slot, Tile):
            slot.owners.append(var)
            e.bindings[var] = slot
        else:
            e.bindings[var] = Scalar(next(remaining), slot)


def turn(e: FunctionEmitter, body: SeqStmts, slots: Sequence[Any]) -> list[Value]:
    """Emit a loop's body; return the scalars of the next turn, its tiles having been copied to their slots."""
    last = body.stmts[-1] if body.stmts else None
    if any(isinstance(s, (BreakStmt, ContinueStmt)) for s in _exits(body)):
        raise UnsupportedFeatureError("break and continue have no native code yet", spans=[body.stmts[0].span])
    following: list[Value] = []

    def close() -> None:
        if isinstance(last, YieldStmt):
            following.extend(hand_on(e, last.values, slots))

    stmts = SeqStmts(body.stmts[:-1]) if isinstance(last, YieldStmt) else body
    e.body(stmts, close)
    return following


def _exits(body: SeqStmts) -> list[Any]:
    found: list[Any] = []
    for stmt in body:
        if isinstance(stmt, (BreakStmt, ContinueStmt)):
            found.append(stmt)
        elif isinstance(stmt, IfStmt):
            found += _exits(stmt.then_body) + (_exits(stmt.else_body) if stmt.else_body else [])
    return found


def hand_on(e: FunctionEmitter, values: Sequence[Expr], slots: Sequence[Any]) -> list[Value]:
    """Copy yielded tiles to their slots; return yielded scalars."""
    scalars: list[Value] = []
    moves: list[tuple[Tile, Tile]] = []
    for value, slot in zip(values, slots, strict=True):
        given = e.value(value)
        if isinstance(slot, Tile):
            if given is not slot:
                e.stored(given)
                moves.append((given, slot))
        else:
            scalars.append(given.value)
    sources = [source for source, _ in moves]
    for position, (source, slot) in enumerate(moves):
        if any(other is source and other is s for other in sources for _, s in moves[:position]):
            raise UnsupportedFeatureError("carried tiles that trade places have no native code yet")
        copy(e, source, slot)
    return scalars


@emits(IfStmt)
def _if(e: FunctionEmitter, stmt: IfStmt) -> None:
    condition = e.value(stmt.condition).value
    then, other, after = e.b.label("then"), e.b.label("else"), e.b.label("endif")
    slots: list[Any] = []
    for var in stmt.return_vars:
        if isinstance(var.type, TileType):
            slot = e.fresh(var.type, tuple(i64(v) if isinstance(v, int) else i64(0) for v in var.type.valid))
            if any(not isinstance(v, int) for v in var.type.valid):
                raise UnsupportedFeatureError(
                    "a branch yielding a tile of unknown valid extent has no native code yet", spans=[stmt.span]
                )
            slot.owners.append(var)
            slots.append(slot)
        elif isinstance(var.type, ScalarType):
            slots.append(var.type.dtype)
        else:
            raise UnsupportedFeatureError(f"a branch yielding {var.type} has no native code yet", spans=[stmt.span])
    e.b.do(f"br i1 {condition.ref}, label %{then}, label %{other}")
    ends: list[tuple[str, list[Value]]] = []
    for label, body in ((then, stmt.then_body), (other, stmt.else_body or SeqStmts())):
        e.b.begin(label)
        values = turn(e, body, slots)
        ends.append((e.b.block, values))
        e.b.do(f"br label %{after}")
    e.b.begin(after)
    merged: list[Value] = []
    for position, dtype in enumerate(s for s in slots if not isinstance(s, Tile)):
        type_ = compute_type(dtype)
        arms = ", ".join(f"[ {values[position].ref}, %{block} ]" for block, values in ends)
        merged.append(e.b.value(type_, f"phi {type_} {arms}"))
    bind_carried(e, stmt.return_vars, slots, merged)


@emits(WhileStmt)
def _while(e: FunctionEmitter, stmt: WhileStmt) -> None:
    raise UnsupportedFeatureError("while loops have no native code yet", spans=[stmt.span])


@emits(ReturnStmt)
def _return(e: FunctionEmitter, stmt: ReturnStmt) -> None:
    e.program.give_back(e, [e.value(value) for value in stmt.values], stmt)
