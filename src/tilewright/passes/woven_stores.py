"""Woven stores: every other column that is stored, and those between them, are rows that are stored whole.

    out[r : r + 16, ::2] = a * c - b * s
    out[r : r + 16, 1::2] = a * s + b * c

become one store of what both put together, where nobody looks at `out` between the two.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.core.build import arguments
from tilewright.core.enums import MaskPattern
from tilewright.core.expr import Absent, Call, ConstInt, Expr, MakeTuple, Var, integer
from tilewright.core.operands import Argument
from tilewright.core.program import Function
from tilewright.core.stmt import AssignStmt, EvalStmt, SeqStmts, Stmt
from tilewright.core.types import TensorType, TileType
from tilewright.core.visitor import used, variables
from tilewright.errors import KernelError
from tilewright.passes.blocks import Blocks
from tilewright.records import record

LARGE = 1 << 20
"""Bytes of a tensor from which on rows are put together: a Zen 5 multiplies 4096 x 4096 pairs of floats as complex
numbers in 4.3 ms that way, and in 9.8 by every other column; of 128 x 768 both take the same."""


@record
class Comb:
    """Every other column of a matrix: in which row and column it begins, and how many of both it has."""

    tensor: Var
    row: Expr
    column: int
    shape: tuple[int, int]

    def meets(self, other: Comb) -> bool:
        """Return whether the columns of another are those just behind these."""
        return (other.tensor, other.row, other.column, other.shape) == (
            self.tensor,
            self.row,
            self.column + 1,
            self.shape,
        )


@record
class Store:
    """A store to a comb: which statement it is, and what is stored."""

    at: int
    comb: Comb
    tile: Var


def woven(function: Function, roots: Mapping[Var, Var]) -> Function:
    """Return a function that stores whole rows; `roots` has the same for all tensors that may share memory."""
    stmts = list(function.body)
    views = {s.var: s.value for s in stmts if isinstance(s, AssignStmt) and isinstance(s.value, Call)}
    stores = [found for at, stmt in enumerate(stmts) if (found := _store(at, stmt, views)) is not None]
    others: dict[int, Sequence[Stmt]] = {}
    """What takes the place of a statement, by its number."""
    for first, second in zip(stores, stores[1:], strict=False):
        even, odd = (first, second) if first.comb.meets(second.comb) else (second, first)
        is_pair = even.comb.meets(odd.comb) and first.at not in others
        if not is_pair or _is_seen(stmts[first.at + 1 : second.at], even.comb.tensor, roots):
            continue
        try:
            others |= {first.at: (), second.at: _together(even, odd, stmts[second.at])}
        except KernelError:  # elements that are put nowhere between others
            continue
    flat = [each for at, stmt in enumerate(stmts) for each in others.get(at, (stmt,))]
    return function.with_body(SeqStmts(tuple(flat))) if others else function


def _store(at: int, stmt: Stmt, views: Mapping[Var, Call]) -> Store | None:
    """Return what a statement stores of a comb, all of it; None for one that does anything else."""
    call = stmt.expr if isinstance(stmt, EvalStmt) else None
    if not isinstance(call, Call) or call.op.name != "tile.store":
        return None
    from tilewright.passes.store_targets import target_of  # few programs store to views

    tile = arguments(call)["tile"]
    target = target_of(stmt, tile) if isinstance(tile, Var) else None
    comb = _comb(target.tensor, views) if target is not None else None
    if comb is None or target is None or not isinstance(tile, Var) or not isinstance(tile.type, TileType):
        return None
    is_whole = tile.type.shape == tile.type.valid == comb.shape and _numbers(target.offsets) == (0, 0)
    return Store(at, comb, tile) if is_whole else None


def _comb(view: Var, views: Mapping[Var, Call]) -> Comb | None:
    """Return what a view sees, where that is every other column of some of a large matrix."""
    strided = views.get(view)
    if strided is None or strided.op.name != "tensor.strided" or arguments(strided)["steps"] != (1, 2):
        return None
    source = next((arg for arg in strided.args if isinstance(arg.type, TensorType)), None)
    part = views.get(source) if isinstance(source, Var) else None
    if part is None or part.op.name != "tensor.slice":
        return None
    given = arguments(part)
    tensor, offset, shape = given["x"], given["offset"], _shape(view)
    others = (given[name] for name in given if name not in ("x", "offset", "shape"))
    if (
        any(not _is_nothing(each) for each in others)
        or not isinstance(tensor, Var)
        or not isinstance(offset, MakeTuple)
    ):
        return None
    column = offset.elements[-1]
    if len(offset.elements) != 2 or shape is None or not isinstance(column, ConstInt) or not _is_large(tensor):
        return None
    return Comb(tensor, offset.elements[0], int(column.value), shape)


def _is_nothing(given: Argument) -> bool:
    return given is None or given is False or isinstance(given, Absent) or given == ()


def _shape(view: Var) -> tuple[int, int] | None:
    shape = view.type.shape if isinstance(view.type, TensorType) else ()
    rows, columns = shape if len(shape) == 2 else (None, None)
    return (rows, columns) if isinstance(rows, int) and isinstance(columns, int) else None


def _is_large(tensor: Var) -> bool:
    """Return whether a matrix is not known to be small."""
    if not isinstance(tensor.type, TensorType) or len(tensor.type.shape) != 2:
        return False
    known = _shape(tensor)
    return known is None or known[0] * known[1] * tensor.type.dtype.get_byte() >= LARGE


def _numbers(offsets: MakeTuple) -> tuple[int | None, ...]:
    return tuple(int(each.value) if isinstance(each, ConstInt) else None for each in offsets.elements)


def _is_seen(stmts: Sequence[Stmt], tensor: Var, roots: Mapping[Var, Var]) -> bool:
    """Return whether statements may look at a tensor, or are more than calls that make something."""
    root = roots.get(tensor, tensor)
    for stmt in stmts:
        call = stmt.value if isinstance(stmt, AssignStmt) else stmt.expr if isinstance(stmt, EvalStmt) else None
        if call is None:
            return True
        if isinstance(call, Call) and not call.op.spec.is_view:
            seen = [var for var in variables(used(stmt)) if isinstance(var.type, TensorType)]
            if any(roots.get(var, var) is root for var in seen):
                return True
    return False


def _together(even: Store, odd: Store, stmt: Stmt) -> list[Stmt]:
    """Return the store of both, put together."""
    assert isinstance(even.tile.type, TileType)
    b = Blocks(stmt.span, even.tile.name_hint)
    rows, columns = even.comb.shape
    shape = MakeTuple((integer(rows), integer(2 * columns)))
    whole = b.do("tile.full", shape=shape, dtype=even.tile.type.dtype, value=0)
    for store, pattern in ((even, MaskPattern.P0101), (odd, MaskPattern.P1010)):
        whole = b.do("tile.scatter_mask", dst=whole, src=store.tile, mask_pattern=pattern)
    b.store(whole, (even.comb.row, integer(even.comb.column)), even.comb.tensor)
    return b.stmts
