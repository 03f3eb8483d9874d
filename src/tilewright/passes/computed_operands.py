"""Computed operands: right operands of products of few rows that are computed as the product reads them.

Weights that were quantized are widened, shifted and scaled on their way into a product. One of few rows reads each of
them once, so that what becomes of a weight need never be in memory: loads and what is made of them element by element,
for such products alone, are left to the products. So are transposes of weights that lie output by output: few rows
meet each of those as they lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilewright.core.build import arguments
from tilewright.core.expr import Absent, Call, Expr, Var
from tilewright.core.op import Effect, Kind
from tilewright.core.program import Function
from tilewright.core.stmt import AssignStmt, SeqStmts, Stmt
from tilewright.core.types import TensorType, TileType
from tilewright.core.visitor import bodies, statements, used, variables
from tilewright.dtypes import BF16, FP16, FP32, DataType
from tilewright.passes.few_rows import FEW_ROWS

FEW_TURNED = 16
"""Rows that meet a right matrix as it lies on its side: turning it takes longer than to multiply so many."""
FLOATS = (FP32, FP16, BF16)


def computed_operands(function: Function) -> frozenset[Var]:
    """Return the tiles of a function that products compute as they read them, with what those are made of."""
    if not any(_few(stmt) for stmt in statements(function.body)):
        return frozenset()
    return frozenset(var for body in _bodies(function.body) for var in _Body(body).computed())


def _bodies(body: SeqStmts) -> Iterator[SeqStmts]:
    yield body
    for stmt in body:
        for inner in bodies(stmt):
            yield from _bodies(inner)


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
    return call if one.shape[-2] <= FEW_TURNED else None


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
    if call is None or not (_is_load(call) or _is_elementwise(call)):
        return None
    operands = [_chain(made, tile) for tile in ([] if _is_load(call) else _tiles(call.args))]
    return None if None in operands else {var}.union(*(each for each in operands if each is not None))


class _Body:
    """Some statements in order: what they make, and who reads it."""

    def __init__(self, body: SeqStmts) -> None:
        self.stmts = list(body)
        self.made: dict[Var, Call] = {}
        self.at: dict[Var, int] = {}
        self.readers: dict[Var, list[int]] = {}
        for number, stmt in enumerate(self.stmts):
            if isinstance(stmt, AssignStmt) and isinstance(stmt.value, Call):
                self.made[stmt.var], self.at[stmt.var] = stmt.value, number
            for var in _read(stmt):
                self.readers.setdefault(var, []).append(number)

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
        is_few = one.shape[-2] <= FEW_ROWS and one.valid[-2] == one.shape[-2]
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
        reach = [number for var in chain for number in (self.at[var], *self.readers.get(var, []))]
        return all(_only_computes(stmt) for stmt in self.stmts[min(reach) : max(reach)])


def _read(stmt: Stmt) -> list[Var]:
    """Return the variables that a statement reads, and those inside of it."""
    inner = [var for body in bodies(stmt) for each in body for var in _read(each)]
    return [*variables(used(stmt)), *inner]


def _tiles(args: Sequence[Expr]) -> list[Var]:
    return [arg for arg in args if isinstance(arg, Var) and isinstance(arg.type, TileType)]


def _is_load(call: Call) -> bool:
    """Return whether a call loads a matrix as it lies."""
    if call.op.name != "tile.load" or not isinstance(call.type, TileType) or len(call.type.shape) != 2:
        return False
    given, source = arguments(call), call.args[0].type
    plain = all(given.get(name) is None or isinstance(given.get(name), Absent) for name in ("mask", "pad"))
    return plain and isinstance(source, TensorType) and not source.layout.is_permuted


def _is_elementwise(call: Call) -> bool:
    """Return whether a call makes each element from those at its place, or from the same number."""
    if call.op.kind is not Kind.TILE or not isinstance(call.type, TileType) or len(call.type.shape) != 2:
        return False
    return call.op.spec.family == "elementwise" or call.op.spec.name in ("cast", "full")


def _only_computes(stmt: Stmt) -> bool:
    """Return whether a statement changes no tensor."""
    call = stmt.value if isinstance(stmt, AssignStmt) else None
    if not isinstance(call, Call):
        return False
    return call.op.kind is Kind.SCALAR or (call.op.kind is Kind.TILE and call.op.spec.effect is not Effect.WRITE)
