"""Atomic updates: elements and rows of a tensor changed where indices say, by whichever block comes first.

Of several in one place, each changes what those before it in the tile left; they come in any order where nobody can
tell.
"""

from __future__ import annotations

from tilewright.backends.cuda.ttir.changes import Change
from tilewright.backends.cuda.ttir.folds import whole
from tilewright.backends.cuda.ttir.indexed import aligned, places_of, surviving
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.matches import turns
from tilewright.backends.cuda.ttir.places import Places
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.text import I32, Value
from tilewright.backends.cuda.ttir.tiles import arithmetic, operand, tile_type, zeros
from tilewright.backends.cuda.ttir.values import Tile
from tilewright.core.expr import Call
from tilewright.core.stmt import AssignStmt
from tilewright.core.visitor import statements, used, variables
from tilewright.ops.atomics import EXCHANGE, SWAP


@recipe("tile:atomic")
def _update(k: Kernel, call: Call, bound: Bound) -> Tile:
    tensor, combine = bound["x"], call.op.spec.combine
    arithmetic(k, tensor.dtype)
    type_, valid, found = places_of(k, call, bound)
    given = operand(k, bound["values"], type_)
    compare = operand(k, bound["compare"], type_) if "compare" in bound else None
    change = Change(combine, tensor, given, compare)
    k.writes(tensor)
    if _is_read(k, call) or combine == SWAP:
        old = _in_turn(k, change, found)
    else:
        change.applied(k, found.addresses, surviving(k, found) if combine == EXCHANGE else found.live)
        old = zeros(k, given)
    return k.tile(old, tile_type(call), valid)


def _is_read(k: Kernel, call: Call) -> bool:
    """Return whether anybody reads what a call gives."""
    every = [stmt for function in k.program.function_list for stmt in statements(function.body)]
    made = [stmt.var for stmt in every if isinstance(stmt, AssignStmt) and stmt.value is call]
    return any(var in made for stmt in every for var in variables(used(stmt)))


def _in_turn(k: Kernel, change: Change, found: Places) -> Value:
    """Return what elements were, each changed after those before it that are in the same place."""
    t, like = k.t, change.given
    turn = turns(t, found.heads, found.heads_live)
    ends = t.select(found.heads_live, turn, t.integer(-1, I32, turn.shape))
    low, last, by = t.integer(0, I32), whole(t, ends, "arith.maxsi"), t.integer(1, I32)
    high = t.simple("arith.addi", last, by)
    made, kept, now = t.fresh(like.element, like.shape), t.fresh(like.element, like.shape), t.fresh(I32)
    start = zeros(k, like)
    head = f"{made} = scf.for {now} = {low} to {high} step {by} iter_args({kept} = {start}) -> ({kept.type}) : i32 {{"
    with t.block(head):
        here = aligned(k, found, t.compare("cmpi eq", turn, t.splat(now, turn.shape)))
        live = t.simple("arith.andi", found.live, here)
        old = t.select(live, change.applied(k, found.addresses, live), kept)
        t.do("gpu.barrier")
        t.do(f"scf.yield {old} : {old.type}")
    return made
