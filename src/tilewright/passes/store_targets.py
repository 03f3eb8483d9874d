"""Store targets: what is gathered for the next statement to store is written where that goes, not to a tile."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tilewright.core.build import arguments
from tilewright.core.enums import AtomicType
from tilewright.core.expr import Absent, Call, MakeTuple, Var
from tilewright.core.stmt import AssignStmt, SeqStmts, Stmt
from tilewright.core.types import TensorType
from tilewright.core.visitor import evaluated
from tilewright.ops.families import shaped
from tilewright.records import record


@record
class Target:
    """Where a store writes to: a tensor, from some offsets on."""

    call: Call
    tensor: Var
    offsets: MakeTuple


_STORES = {"tile.store": ("tile", "output_tensor", "offsets"), "tensor.assemble": ("source", "target", "offset")}
"""The ops that store, and their names for what is stored and where."""


def target_of(stmt: Stmt, stored: Var) -> Target | None:
    """Return where a statement writes all of a variable, as it is; None for one that does anything else."""
    call = evaluated(stmt)
    names = _STORES.get(call.op.name) if isinstance(call, Call) else None
    if not isinstance(call, Call) or names is None:
        return None
    given = arguments(call)
    source, tensor, offsets = (given.pop(name) for name in names)
    is_plain = given.pop("atomic") is not AtomicType.Add and all(
        isinstance(v, (Absent, type(None))) for v in given.values()
    )
    if source is not stored or not is_plain or not isinstance(tensor, Var) or not isinstance(offsets, MakeTuple):
        return None
    return Target(call, tensor, offsets) if shaped(tensor).dtype == shaped(stored).dtype else None


def straight(
    gather: AssignStmt,
    body: SeqStmts,
    may_meet: Callable[[Var, Var], bool],
    turned: Collection[Var],
    loads: Sequence[Call] = (),
    read_in_place: Sequence[Var] = (),
) -> tuple[Stmt, Target] | None:
    """Return the statement that a gather writes for, and where: in other memory, along rows, than it reads from.

    Of `loads` that it reads in place, one of the very elements that are stored may be among them.
    """
    after = next((following for stmt, following in zip(body, body.stmts[1:], strict=False) if stmt is gather), None)
    target = target_of(after, gather.var) if after is not None else None
    if after is None or target is None or target.tensor in turned or not isinstance(gather.value, Call):
        return None
    calls = [gather.value, *(load for load in loads if not _is_there(load, gather, target))]
    read = [*read_in_place, *(arg for call in calls for arg in call.args if isinstance(arg.type, TensorType))]
    apart = all(isinstance(arg, Var) and not may_meet(arg, target.tensor) for arg in read)
    return (after, target) if apart else None


def _is_there(load: Call, gather: AssignStmt, target: Target) -> bool:
    """Return whether a load reads the very elements that are stored."""
    given = arguments(load)
    return (
        shaped(load).shape == shaped(gather.var).shape
        and given["tensor"] is target.tensor
        and given["offsets"] == target.offsets
    )
