"""Computed operands: right operands of products of few rows that are computed as the product reads them.

Weights that were quantized are widened, shifted and scaled on their way into a product. One of few rows reads each of
them once, so that what becomes of a weight need never be in memory: loads and what is made of them element by element,
for such products alone, are left to the products.
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
from tilewright.dtypes import BF16, FP16, FP32

FEW_ROWS = 8
"""Rows of the left matrix for which each row of the right one had better be read once, as it comes."""
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


def _few(stmt: Stmt) -> Var | None:
    """Return the right operand of a product of few rows of floats."""
    call = stmt.value if isinstance(stmt, AssignStmt) else None
    if not isinstance(call, Call) or call.op.name not in ("tile.matmul", "tile.matmul_acc"):
        return None
    left, right = (arguments(call)[name] for name in ("lhs", "rhs"))
    if not isinstance(left, Var) or not isinstance(right, Var):
        return None
    one, other = left.type, right.type
    if not isinstance(one, TileType) or not isinstance(other, TileType) or len(other.shape) != 2:
        return None
    is_few = one.shape[-2] <= FEW_ROWS and one.valid[-2] == one.shape[-2] and left is not right
    return right if is_few and one.dtype in FLOATS and other.dtype in FLOATS else None


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
        ends = {number: right for number, stmt in enumerate(self.stmts) if (right := _few(stmt)) is not None}
        found = {right: chain for right in ends.values() if (chain := self._chain(right)) and len(chain) > 1}
        while lost := [right for right, chain in found.items() if not self._is_sole(chain, found, ends)]:
            for right in lost:
                del found[right]
        return {var for chain in found.values() for var in chain}

    def _chain(self, var: Var) -> set[Var] | None:
        """Return a tile and all that it is made of, None where a product cannot compute that."""
        call = self.made.get(var)
        if call is None or not (_is_load(call) or _is_elementwise(call)):
            return None
        operands = [self._chain(tile) for tile in ([] if _is_load(call) else _tiles(call.args))]
        return None if None in operands else {var}.union(*(each for each in operands if each is not None))

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
