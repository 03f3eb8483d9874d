"""Filled rows: a buffer that a loop fills row by row, to be stored whole, is the part of the tensor it is stored to.

    acc = pl.create_tile([64, 128], dtype=pl.FP32)
    for k in pl.range(64):
        acc = pl.gather_row(acc, x, [k, 0], [pl.read(index, [0, k]), 0], [1, 128])
    pl.store(acc, [r, 0], out)

becomes a loop that brings each row to its place in `out`, where that shares no memory with what the loop reads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.core.build import arguments, scalar
from tilewright.core.enums import ForKind
from tilewright.core.expr import Absent, Call, ConstInt, Expr, MakeTuple, Var, integer
from tilewright.core.extents import fits
from tilewright.core.operands import Argument
from tilewright.core.program import Function
from tilewright.core.stmt import AssignStmt, EvalStmt, ForStmt, SeqStmts, Stmt, YieldStmt
from tilewright.core.types import ScalarType, TensorType, static_shape
from tilewright.core.visitor import used, variables
from tilewright.errors import KernelError
from tilewright.named_tuples import NamedTuple
from tilewright.ops.families import shaped
from tilewright.ops.windows import NARROW
from tilewright.passes.blocks import ZERO, Blocks
from tilewright.passes.last_use import reads

if TYPE_CHECKING:
    from tilewright.passes.store_targets import Target

OUTSIDE = "a store does not fit its tensor"
_MAKERS = ("tile.create", "tensor.create_l1")


class Filled(NamedTuple):
    """A loop that fills a buffer: the call that fills a part of it in each turn, and the names the buffer goes by."""

    loop: ForStmt
    call: Call
    names: tuple[Var, ...]


def straightened(function: Function, roots: Mapping[Var, Var]) -> Function:
    """Return a function whose loops fill what their buffers are stored to; `roots` has the same for shared memory."""
    stmts, counts = list(function.body), reads(function.body)
    for at in range(len(stmts)):
        for end in (at + 3, at + 4):
            if rows := _straight(stmts[at:end], counts, roots):
                stmts[at:end] = rows
                break
    return function if len(stmts) == len(function.body) else function.with_body(SeqStmts(tuple(stmts)))


def _straight(stmts: Sequence[Stmt], counts: Counter[Var], roots: Mapping[Var, Var]) -> Sequence[Stmt]:
    """Return what takes the place of a buffer, its loop, its load where there is one, and its store; nothing else."""
    filled = _filled(*stmts[:2]) if len(stmts) > 2 else None
    if filled is None:
        return ()
    from tilewright.passes.store_targets import target_of  # few programs fill buffers

    loaded = _loaded(stmts[2], filled.names[-1]) if len(stmts) == 4 else filled.names[-1]
    target = target_of(stmts[-1], loaded) if loaded is not None else None
    own = reads(SeqStmts(tuple(stmts)))
    if loaded is None or target is None or any(own[name] != counts[name] for name in (*filled.names, loaded)):
        return ()
    root = roots.get(target.tensor, target.tensor)
    tensors = {v for stmt in filled.loop.body for v in variables(used(stmt)) if isinstance(v.type, TensorType)}
    is_apart = all(roots.get(v, v) is not root for v in tensors.difference(filled.names))
    try:
        return _rows(filled, target) if is_apart else ()
    except KernelError:  # rows of a tensor that the op takes none of
        return ()


def _filled(made: Stmt, loop: Stmt) -> Filled | None:
    """Return how a loop fills all of a new buffer, from the first row on; None where it does not, or does more."""
    if not isinstance(made, AssignStmt) or not isinstance(made.value, Call) or made.value.op.name not in _MAKERS:
        return None
    if not isinstance(loop, ForStmt) or loop.kind is not ForKind.Sequential or not loop.body.stmts:
        return None
    *steps, last = loop.body
    names = (made.var,)
    call = last.expr if isinstance(last, EvalStmt) else None
    if loop.iter_args and steps and isinstance(fill := steps.pop(), AssignStmt) and isinstance(last, YieldStmt):
        call, names = fill.value, (made.var, loop.iter_args[0].var, fill.var, *loop.return_vars)
        if [arg.init for arg in loop.iter_args] != [made.var] or last.values != (fill.var,):
            return None
    is_plain = all(isinstance(s, AssignStmt) and isinstance(s.var.type, ScalarType) for s in steps)
    if not is_plain or {v for s in steps for v in variables(used(s))}.intersection(names):
        return None
    return Filled(loop, call, names) if isinstance(call, Call) and _fills(call, loop, names[:2][-1]) else None


def _fills(call: Call, loop: ForStmt, buffer: Var) -> bool:
    """Return whether a call brings whole rows to where the turn of its loop is, as many as the loop steps over."""
    if call.op.spec.name != "gather_row":
        return False
    given, (rows, columns) = arguments(call), static_shape(shaped(buffer).shape)
    at, size = (_elements(given[name]) for name in ("dst_offset", "shapes"))
    if given["dst"] is not buffer or given["transpose"] or not isinstance(given["valid_shape"], Absent):
        return False
    turns = (loop.start, loop.stop, *at, *size)
    is_even = isinstance(loop.step, ConstInt) and rows % int(loop.step.value) == 0
    return is_even and turns == (ZERO, integer(rows), loop.loop_var, ZERO, loop.step, integer(columns))


def _elements(given: Argument) -> tuple[Expr, ...]:
    return given.elements if isinstance(given, MakeTuple) else ()


def _loaded(stmt: Stmt, buffer: Var) -> Var | None:
    """Return what a statement binds all of a buffer to."""
    call = stmt.value if isinstance(stmt, AssignStmt) else None
    if not isinstance(stmt, AssignStmt) or not isinstance(call, Call) or call.op.name != "tile.load":
        return None
    given, whole = arguments(call), shaped(buffer).shape
    is_plain = given["tensor"] is buffer and all(
        isinstance(given[name], (Absent, type(None))) for name in ("pad", "mask")
    )
    return stmt.var if is_plain and shaped(stmt.var).shape == shaped(stmt.var).valid == whole else None


def _rows(filled: Filled, target: Target) -> Sequence[Stmt]:
    """Return the loop that brings each row to where a store brings all of them, held to what fits there."""
    sizes = static_shape(shaped(filled.names[0]).shape)
    given, loop, b = arguments(filled.call), filled.loop, Blocks(target.call.span, filled.names[0].name_hint)
    for axis, (start, size) in enumerate(zip(target.offsets.elements, sizes, strict=True)):
        if not fits(start, size, shaped(target.tensor).shape[axis]):
            last = scalar("sub", b.extent(target.tensor, axis), integer(size))
            b.check(scalar("and_", scalar("ge", start, ZERO), scalar("le", start, last)), f"{OUTSIDE}\n{NARROW}")
    inner = Blocks(filled.call.span, b.hint)
    row, column = target.offsets.elements
    place = MakeTuple((scalar("add", row, loop.loop_var), column))
    inner.act("tensor.gather_row", **{**given, "dst": target.tensor, "dst_offset": place})
    steps = [stmt for stmt in loop.body if isinstance(stmt, AssignStmt) and isinstance(stmt.var.type, ScalarType)]
    body = SeqStmts((*steps, *inner.stmts))
    return [*b.stmts, replace(loop, body=body, iter_args=(), return_vars=())]
