"""Computed operands: right operands of products of few rows that are computed as the product reads them.

Weights that were quantized are widened, shifted and scaled on their way into a product. One of few rows reads each of
them once, so that what becomes of a weight need never be in memory: loads and what is made of them element by element,
for such products alone, are left to the products. So are transposes of weights that lie output by output: few rows
meet each of those as they lie.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.core.build import arguments
from tilewright.core.expr import Call, Var
from tilewright.core.program import Function
from tilewright.core.stmt import AssignStmt, Stmt
from tilewright.core.types import TileType
from tilewright.core.visitor import statements
from tilewright.dtypes import BF16, FP16, FP32, DataType
from tilewright.passes.few_rows import FEW_ROWS, rows_there
from tilewright.passes.left_tiles import Statements, all_bodies, is_elementwise, is_load, tiles_of

FEW_TURNED = 16
"""Rows that meet a right matrix as it lies on its side: turning it takes longer than to multiply so many."""
FLOATS = (FP32, FP16, BF16)


def computed_operands(function: Function) -> frozenset[Var]:
    """Return the tiles of a function that products compute as they read them, with what those are made of."""
    if not any(_few(stmt) for stmt in statements(function.body)):
        return frozenset()
    return frozenset(var for body in all_bodies(function.body) for var in _Products(body).computed())


def _few(stmt: Stmt) -> Call | None:
    """Return a product of few rows of one matrix."""
    call = stmt.value if isinstance(stmt, AssignStmt) else None
    if not isinstance(call, Call) or call.op.name not in ("tile.matmul", "tile.matmul_acc"):
        return None
    left, right = (arguments(call)[name] for name in ("lhs", "rhs"))
    if not isinstance(left, Var) or not isinstance(right, Var) or left is right:
        return None
    one, other = left.type, right.type
    if not isinstance(one, TileType) or not isinstance(other, TileType) or len(other.shape) != 2:
        return None
    return call if rows_there(one) <= FEW_TURNED else None


def turned_source(call: Call | None) -> Var | None:
    """Return the matrix that an op turns on its side."""
    if call is None or call.op.name not in ("tile.transpose", "tile.transpose_view"):
        return None
    source = call.args[0]
    is_matrix = isinstance(source.type, TileType) and len(source.type.shape) == 2
    given = arguments(call)
    axes = {axis % 2 for axis in (given.get("axis1", 0), given.get("axis2", 1)) if isinstance(axis, int)}
    return source if isinstance(source, Var) and is_matrix and len(axes) == 2 else None


def is_computed_turned(made: Mapping[Var, Call], left: Var, right: Var) -> bool:
    """Return whether few rows of a left matrix meet those of what is turned on its side to be the right one."""
    source = turned_source(made.get(right))
    if source is None or not isinstance(left.type, TileType) or not isinstance(right.type, TileType):
        return False
    one, other = left.type.dtype, right.type.dtype
    are_floats = one in FLOATS and other in FLOATS
    return (are_floats or _is_short(one) and _is_short(other)) and _chain(made, source) is not None


def _is_short(dtype: DataType) -> bool:
    return dtype.is_int() and dtype.bits <= 32


def _chain(made: Mapping[Var, Call], var: Var) -> set[Var] | None:
    """Return a tile and all that it is made of, None where a product cannot compute that."""
    call = made.get(var)
    if call is None or not (is_load(call) or is_elementwise(call)):
        return None
    operands = [_chain(made, tile) for tile in ([] if is_load(call) else tiles_of(call.args))]
    return None if None in operands else {var}.union(*(each for each in operands if each is not None))


class _Products(Statements):
    """Some statements in order: what the products among them compute."""

    def computed(self) -> set[Var]:
        """Return what products compute as they read it; what somebody else reads is in memory."""
        products = {number: call for number, stmt in enumerate(self.stmts) if (call := _few(stmt)) is not None}
        ends = {number: right for number, call in products.items() if isinstance(right := arguments(call)["rhs"], Var)}
        chains = {ends[number]: self._read(call) for number, call in products.items()}
        found = {right: chain for right, chain in chains.items() if len(chain) > 1}
        while lost := [right for right, chain in found.items() if not self._is_sole(chain, found, ends)]:
            for right in lost:
                del found[right]
        return {var for chain in found.values() for var in chain}

    def _read(self, product: Call) -> set[Var]:
        """Return what a product computes as it reads its right operand, which is part of it."""
        left, right = (arguments(product)[name] for name in ("lhs", "rhs"))
        assert isinstance(left, Var) and isinstance(right, Var)
        if is_computed_turned(self.made, left, right):
            source = turned_source(self.made.get(right))
            return {right} | ((_chain(self.made, source) if source is not None else None) or set())
        one, other = left.type, right.type
        assert isinstance(one, TileType) and isinstance(other, TileType)
        is_few = rows_there(one) <= FEW_ROWS and isinstance(one.valid[-2], int)
        are_floats = one.dtype in FLOATS and other.dtype in FLOATS
        return (_chain(self.made, right) or set()) if is_few and are_floats else set()

    def _is_sole(self, chain: set[Var], found: Mapping[Var, set[Var]], ends: Mapping[int, Var]) -> bool:
        """Return whether only products read what a chain makes, and find its tensors as they were when it began."""
        makers = {self.at[var] for each in found.values() for var in each}
        for var in chain:
            readers = self.readers.get(var, [])
            by_products = [number for number in readers if ends.get(number) is var]
            if len(by_products) > 1 or not all(number in makers or number in by_products for number in readers):
                return False
        return self.only_compute_during(chain)
