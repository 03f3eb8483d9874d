"""Facts: what is in a kernel that its schedule depends on, gathered while it is written.

Blocks are loaded by descriptors where their tiles are factors of products, and results of such kernels stored by them,
where nothing in the kernel writes to what it reads: it would not be seen through them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from tilewright.backends.cuda.ttir.needs import coarse, rough, summed
from tilewright.backends.cuda.ttir.values import ANY
from tilewright.core.build import arguments
from tilewright.core.expr import Call, Expr, Invoke, Submit, Var
from tilewright.core.program import Program
from tilewright.core.stmt import AssignStmt, SeqStmts
from tilewright.core.types import TileType
from tilewright.core.visitor import expressions, statements
from tilewright.dtypes import FP32
from tilewright.records import mutable

LOAD = "tile.load"
HALF = 16
ONE_PRODUCT = 2
"""Factors of a kernel that computes one product."""
SEVERAL = 2
"""Sums of a kernel from which on a thread is better with more of a row: each time, warps wait for each other."""
_PRODUCTS = "tile.matmul", "tile.gemv", "tile.batch_matmul"
_TURNS = {"tile.transpose": "x", "tile.transpose_view": "tile", "tile.move": "tile"}
"""Ops that hand a tile to the matrix units as it lies, and the operand that it is."""


@mutable
class Facts:
    """What has been found in a kernel so far."""

    largest: int = 1
    """How many elements the largest of its tiles has."""
    products: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    """The rows and columns of its matrix products."""
    factors: set[Call] = field(default_factory=set[Call])
    """Loads whose tiles are multiplied."""
    rough: set[Call] = field(default_factory=set[Call])
    """Calls beside products whose results need not be exact to fp32."""
    summed: set[Call] = field(default_factory=set[Call])
    """Exponentials of which nothing but sums of rows is made."""
    coarse: set[Call] = field(default_factory=set[Call])
    """Products of 8-bit floats that need not be more exact than bfloat16."""
    block_bytes: int = 0
    """How much is loaded by descriptors, if each is used once."""
    described: set[object] = field(default_factory=set[object])
    """The tensors that it could load by descriptors."""
    stored: set[object] = field(default_factory=set[object])
    """The tensors that it writes to."""
    put: set[object] = field(default_factory=set[object])
    """The tensors that it could write to by descriptors."""
    loaded: set[object] = field(default_factory=set[object])
    """The tensors that it reads."""
    load: tuple[int, int] = (0, 1)
    """How many bytes the largest of its loads moves, and of how many an element is."""
    sums: set[Call] = field(default_factory=set[Call])
    """Its sums."""
    in_rows: set[object] = field(default_factory=set[object])
    """The tensors of which it moves neighbours, several at once where they are aligned."""

    shortened: set[Sequence[int]] = field(default_factory=set[Sequence[int]])
    """The shapes of tiles that half floats are made of."""
    is_large: bool = False
    """Whether products go through memory."""
    is_ragged: bool = False
    """Whether it multiplies blocks that may reach past their plane, where a descriptor would find the next one."""
    prints: bool = False
    """Whether it prints."""
    reaches: bool = False
    """Whether it touches memory of other ranks, or signals them: nothing is loaded ahead of that."""
    waits: bool = False
    """Whether its blocks wait for other ranks, and so have to run at the same time as theirs."""

    def look(self, program: Program, body: SeqStmts) -> None:
        """Look at statements that are about to be written."""
        self.factors.update(factors(program, body))
        self.summed.update(summed(body))
        self.sums.update(sums(program, body))
        if self.factors:
            self.shortened.update(shortened(program, body))
            self.rough.update(rough(body))
            self.coarse.update(coarse(body))

    @property
    def floats(self) -> int:
        """How many elements the largest of its loads has, none where they are of less than 32 bits."""
        size, each = self.load
        return size // each if each >= FP32.get_byte() else 0

    @property
    def is_apart(self) -> bool:
        """Whether nothing that it reads is what it writes."""
        return not self.reaches and not self.loaded & self.stored and ANY not in self.loaded | self.stored

    @property
    def is_described(self) -> bool:
        """Whether it can load by descriptors."""
        if self.reaches or self.prints or self.is_ragged or ANY in self.stored or (self.put and ANY in self.loaded):
            return False
        return bool(self.described) and not self.described & self.stored and not self.put & self.loaded


def factors(program: Program, body: SeqStmts) -> Iterator[Call]:
    """Yield the loads in statements, and in what they call, that give a product one of its factors."""
    made = {stmt.var: stmt.value for stmt in statements(body) if isinstance(stmt, AssignStmt)}
    for expr in (expr for stmt in statements(body) for expr in expressions(stmt)):
        if isinstance(expr, (Invoke, Submit)):
            yield from factors(program, program[expr.op.name].body)
        elif isinstance(expr, Call) and expr.op.name.startswith(_PRODUCTS):
            given = arguments(expr)
            found = (_source(made, given[side]) for side in ("lhs", "rhs") if side in given)
            yield from (call for call in found if call is not None)


def sums(program: Program, body: SeqStmts) -> Iterator[Call]:
    """Yield the sums in statements, and in what they call."""
    for expr in (expr for stmt in statements(body) for expr in expressions(stmt)):
        if isinstance(expr, (Invoke, Submit)):
            yield from sums(program, program[expr.op.name].body)
        elif isinstance(expr, Call) and expr.op.spec.family == "reduction" and expr.op.spec.combine == "add":
            yield expr


def shortened(program: Program, body: SeqStmts) -> Iterator[Sequence[int]]:
    """Yield the shapes of tiles that statements, and what they call, make half floats of."""
    for expr in (expr for stmt in statements(body) for expr in expressions(stmt)):
        if isinstance(expr, (Invoke, Submit)):
            yield from shortened(program, program[expr.op.name].body)
        elif isinstance(expr, Call) and expr.op.name == "tile.cast" and isinstance(expr.type, TileType):
            if expr.type.dtype.bits <= HALF:
                yield expr.type.shape


def _source(made: dict[Var, Expr], value: object) -> Call | None:
    """Return the load that a value comes from, turned or not, or as the one plane that it is."""
    while isinstance(value, Var):
        value = made.get(value)
        if isinstance(value, Call) and (value.op.name in _TURNS or _is_plane(value)):
            value = arguments(value)[_TURNS.get(value.op.name, "x")]
    return value if isinstance(value, Call) and value.op.name == LOAD else None


def _is_plane(call: Call) -> bool:
    """Return whether a tile is a matrix that has lost axes of one."""
    if call.op.name != "tile.reshape":
        return False
    whole, matrix = call.args[0].type, call.type
    assert isinstance(whole, TileType) and isinstance(matrix, TileType)
    return len(matrix.shape) == 2 and whole.shape == (1,) * (len(whole.shape) - 2) + matrix.shape
