"""Lanes: the loop over the vector lanes of a core group, which is written out, and what stands only in it."""

from __future__ import annotations

import ast

from tilewright.core.enums import SplitMode
from tilewright.core.expr import Expr, Var, integer
from tilewright.core.op import OpSpec
from tilewright.core.stmt import AssignStmt
from tilewright.core.types import TensorType
from tilewright.errors import DirectiveError, MisplacedDirectiveError
from tilewright.frontend.state import Lane
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Value
from tilewright.ops.lanes import LANES


def each_lane(t: Translator, node: ast.For, mode: SplitMode) -> None:
    """Write a body out once for each lane."""
    assert isinstance(node.target, ast.Name)
    lane, strict = Lane(mode, t.scope.block), t.strict_ssa
    t.lane = lane
    for lane.number in range(LANES):
        t.assign(node.target.id, lane.number, node.target)
        t.execute(node.body)
        t.strict_ssa = False  # a name that one lane binds, the other binds again
    t.lane, t.strict_ssa = None, strict


def check_mode(t: Translator, spec: OpSpec, node: ast.Call) -> None:
    """Raise where an op that knows the running lane is given a mode, which the loop over them has."""
    for keyword in node.keywords:
        if keyword.arg == "mode":
            message = f"pl.{spec.name} does not take a mode: the loop over pl.split_aiv() has it"
            raise t.error(DirectiveError, keyword.value, message, help="drop mode=")


def in_lane(t: Translator, spec: OpSpec, bound: dict[str, Value], node: ast.Call) -> Value | None:
    """Return what an op that knows the running lane gives, None for others; what it is not told is filled in."""
    lane = t.lane
    if lane is not None:
        for value in bound.values():
            if isinstance(value, Var) and id(value) in lane.pending:
                message = f"`{value.name_hint}` is gathered from both lanes, and there after the loop over them"
                raise t.error(MisplacedDirectiveError, node, message, help="use it below the loop")
    if spec.name == "get_subblock_idx":
        return None if lane is None else integer(lane.number)
    if spec.name not in ("aiv_shard", "aic_gather"):
        return None
    if lane is None:
        _check_given(t, spec, bound, node)
        return None
    if any(keyword.arg == "split" for keyword in node.keywords):
        message = f"pl.{spec.name} takes no split= inside the loop over pl.split_aiv(), which says how"
        raise t.error(DirectiveError, node, message, help="drop split=")
    bound["split"] = lane.mode.value
    if spec.name == "aiv_shard":
        bound["lane"] = lane.number if bound["lane"] is None else bound["lane"]
        return None
    return _gather(t, lane, bound, node)


def _check_given(t: Translator, spec: OpSpec, bound: dict[str, Value], node: ast.Call) -> None:
    """Raise where an op that belongs to the loop over lanes stands outside, and is not told what that would know."""
    value = bound["x"]
    is_tensor = isinstance(value, Expr) and isinstance(value.type, TensorType)
    if spec.name == "aiv_shard" and is_tensor and bound["split"] and bound["lane"] is None:
        message = "split= of pl.aiv_shard is tile-only: a tensor is shared in a loop over pl.split_aiv()"
        raise t.error(DirectiveError, node, message, help="load a tile, or write the loop")
    if bound["split"] is None or (bound["split"] != 0 and bound.get("lane", 0) is None):
        message = f"pl.{spec.name} stands in a loop over pl.split_aiv()"
        help = "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):"
        raise t.error(MisplacedDirectiveError, node, message, help=help)


def _gather(t: Translator, lane: Lane, bound: dict[str, Value], node: ast.Call) -> Value | None:
    """Keep what lane 0 gives; let lane 1 join both, or have what lane 0 gave where nothing is split."""
    if t.scope.block != lane.block:
        help = "bind the value in the branch or loop, and gather it below"
        raise t.error(MisplacedDirectiveError, node, "pl.aic_gather stands right in the loop over lanes", help=help)
    given = t.expr(bound["x"], node)
    if lane.number == 0:
        kept = _kept(t, given, node)
        lane.gathered[id(node)] = kept
        bound["x"] = kept
        return None
    bound["x"], bound["other"] = lane.gathered[id(node)], given
    return None


def _kept(t: Translator, value: Expr, node: ast.Call) -> Var:
    """Return a variable that lane 1 does not assign again."""
    if isinstance(value, Var) and id(value) not in t.variables:
        return value
    kept = Var("lane0", value.type, t.span(node))
    t.emit(AssignStmt(kept, value, t.span(node)))
    return kept


def note_pending(t: Translator, spec: OpSpec, result: Expr, node: ast.Call) -> Value:
    """Return what an op gives; what lane 0 gathers only stands in for what both lanes do."""
    if spec.name != "aic_gather" or t.lane is None or t.lane.number or t.lane.mode is SplitMode.NONE:
        return result
    stand_in = t.placed(result, node)
    t.lane.pending.add(id(stand_in))
    return stand_in
