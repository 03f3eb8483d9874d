"""Whole sums: loops that multiply all parts of two tiles and add the products up, as one product of the tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.core.build import arguments, call, scalar
from tilewright.core.expr import ABSENT, Absent, Call, Expr, Var, constant, integer
from tilewright.core.extents import bounds
from tilewright.core.op import Kind
from tilewright.core.operands import Argument
from tilewright.core.program import Function
from tilewright.core.rewrite import Rewriter
from tilewright.core.stmt import AssignStmt, ForStmt, Stmt, YieldStmt
from tilewright.core.types import TileType, is_fully_valid
from tilewright.core.visitor import statements
from tilewright.passes.strided_steps import whole_turns
from tilewright.passes.tile_axes import is_number
from tilewright.records import record


def whole_sums(function: Function) -> Function:
    """Return a function in which loops over the parts of two tiles are products of the tiles."""
    if not any(isinstance(stmt, ForStmt) and len(stmt.iter_args) == 1 for stmt in statements(function.body)):
        return function
    return function.with_body(_Whole().body(function.body))


class _Whole(Rewriter):
    def for_loop(self, stmt: ForStmt) -> Sequence[Stmt]:
        """Let one product stand for a loop over its parts."""
        found = _sum_of_parts(stmt)
        if found is None:
            return super().for_loop(stmt)
        bound = {**arguments(found.call), "acc": stmt.iter_args[0].init, "lhs": found.lhs, "rhs": found.rhs}
        given = {**bound, "init_cond": found.begins}
        known = {name: self.expr(value) if isinstance(value, Expr) else value for name, value in given.items()}
        made = call(found.call.op.spec, known, found.call.span)
        return (AssignStmt(self.define(stmt.return_vars[0], made.type), made, stmt.span),)


@record
class _Parts:
    """A product of parts that is added up, the tiles that they are all of, and whether the sum begins with it."""

    call: Call
    lhs: Var
    rhs: Var
    begins: Argument


def _sum_of_parts(loop: ForStmt) -> _Parts | None:
    """Return what a loop sums that does nothing else."""
    *stmts, last = loop.body.stmts or (None,)
    turns = whole_turns(loop)
    if not turns or turns.start or not isinstance(last, YieldStmt) or len(loop.iter_args) != 1:
        return None
    made = {stmt.var: stmt.value for stmt in stmts if isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call)}
    (total,) = last.values
    product = made.pop(total) if isinstance(total, Var) and total in made else None
    if product is None or product.op.name != "tile.matmul_acc" or len(made) < len(stmts) - 1:
        return None
    given = arguments(product)
    lhs, rhs = (_whole_of(made, given[name], axis, loop, turns) for name, axis in (("lhs", 1), ("rhs", 0)))
    begins = _first(given.get("init_cond", ABSENT), made, loop.loop_var)
    if lhs is None or rhs is None or begins is None or given["acc"] is not loop.iter_args[0].var:
        return None
    parts = {given["lhs"], given["rhs"]}
    is_sole = all(var in parts or value.op.kind is Kind.SCALAR for var, value in made.items())
    return _Parts(product, lhs, rhs, begins) if is_sole else None


def _whole_of(made: Mapping[Var, Call], part: object, axis: int, loop: ForStmt, turns: range) -> Var | None:
    """Return the tile whose parts along an axis a loop takes one after the other, all of them."""
    cut = made.get(part) if isinstance(part, Var) else None
    if cut is None or cut.op.name != "tile.slice":
        return None
    given = arguments(cut)
    whole, starts = given["x"], getattr(given["offset"], "elements", ())
    if not isinstance(whole, Var) or whole in made or not isinstance(whole.type, TileType):
        return None
    is_plain = not given.get("drop_dims") and isinstance(given.get("valid_shape") or ABSENT, Absent)
    if not is_plain or len(starts) != 2 or not isinstance(cut.type, TileType) or not is_fully_valid(whole.type):
        return None
    is_cut = starts[axis] is loop.loop_var and is_number(starts[1 - axis], 0)
    shape = [turns.stop if side == axis else extent for side, extent in enumerate(cut.type.shape)]
    is_all = tuple(shape) == whole.type.shape and cut.type.shape[axis] == turns.step
    return whole if is_cut and is_all else None


def _first(begins: Argument, made: Mapping[Var, Call], count: Var) -> Argument:
    """Return whether the sum begins in the first turn, where it begins in no other; None where it may."""
    if begins is None or isinstance(begins, Absent):
        return ABSENT
    asked = made.get(begins) if isinstance(begins, Var) else begins
    if not isinstance(asked, Call) or asked.op.name != "scalar.eq" or not is_number(asked.args[1], 0):
        return None
    number = made.get(asked.args[0], asked.args[0]) if isinstance(asked.args[0], Var) else asked.args[0]
    if number is count:
        return constant(True)
    if not isinstance(number, Call) or number.op.name != "scalar.add" or count not in number.args:
        return None
    others = [arg for arg in number.args if arg is not count]
    reach = bounds(others[0]) if len(others) == 1 and others[0] not in made else None
    return scalar("eq", others[0], integer(0)) if reach is not None and reach[0] >= 0 else None
