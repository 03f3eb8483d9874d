"""Building: statements of the IR, one after the other, under the span of what they stand for."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from tilewright.core import build
from tilewright.core.enums import ForKind
from tilewright.core.expr import Call, Const, Expr, TupleGetItem, Var, constant, integer
from tilewright.core.extents import bounds
from tilewright.core.stmt import AssignStmt, EvalStmt, ForStmt, IfStmt, SeqStmts, Stmt, WhileStmt
from tilewright.core.types import ScalarType, TileType, TupleType, Type
from tilewright.dtypes import INDEX, DataType, round_scalar
from tilewright.errors import KernelError
from tilewright.ops.registry import OPS
from tilewright.source import UNKNOWN, Span


class Statements:
    """Statements being written, under the span of what they stand for."""

    def __init__(self, span: Span = UNKNOWN, hint: str = "t") -> None:
        self.stmts: list[Stmt] = []
        self.span = span
        self.hint = hint
        """What values are called that nobody gave a name."""

    def emit(self, stmt: Stmt) -> None:
        """Write a statement."""
        self.stmts.append(stmt)

    def op(self, name: str, /, **given: Any) -> Expr:
        """Return an op applied to operands and options, those left out at their defaults."""
        spec = OPS[name].spec
        try:
            return build.call(spec, {p.name: p.default for p in spec.parameters} | given, self.span)
        except KernelError as error:
            build.locate(error, {}, self.span, {})
            raise

    def named(self, value: Expr) -> Expr:
        """Return a value as something that ops take."""
        return value

    def parts(self, value: Expr) -> tuple[Expr, ...]:
        """Return the values that an op gives at once."""
        whole = self.named(value)
        assert isinstance(whole.type, TupleType)
        return tuple(TupleGetItem(whole, i, each, self.span) for i, each in enumerate(whole.type.elements))

    def act(self, name: str, /, **given: Any) -> None:
        """Write an op for its effect."""
        self.emit(EvalStmt(self.op(name, **given), self.span))


class Builder(Statements):
    """Statements in blocks; the last block is the innermost."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = [self.stmts]
        self.made: dict[Expr, Call] = {}
        """What names stand for that never stand for anything else."""

    def emit(self, stmt: Stmt) -> None:
        """Write a statement into the innermost block."""
        self.blocks[-1].append(stmt)

    def bind(self, value: Expr) -> Expr:
        """Return a name for a value; what is a name or a number already is its own."""
        if not isinstance(value, Call):
            return value
        var = Var(self.hint, value.type, self.span, bounds(value) if isinstance(value.type, ScalarType) else None)
        self.emit(AssignStmt(var, value, self.span))
        self.made[var] = value
        return var

    def do(self, name: str, /, **given: Any) -> Expr:
        """Return the named result of an op."""
        return self.bind(self.op(name, **given))

    def load(self, view: Expr, shape: Sequence[int], valid: Sequence[Expr] | None = None) -> Expr:
        """Return what a view shows, from its start on; `valid` says how much where only the running program knows."""
        return self.do("tile.load", tensor=view, offsets=(0,) * len(shape), shapes=tuple(shape), valid_shape=valid)

    def store(self, view: Expr, tile: Expr, **options: Any) -> None:
        """Write a tile into a view of as many axes, from its start on."""
        self.act("tile.store", tile=tile, offsets=(0,) * len(tile_type(tile).shape), output_tensor=view, **options)

    def get(self, view: Expr, *at: Expr | int) -> Expr:
        """Return one element of memory."""
        return self.do("tensor.read", x=view, indices=at)

    def set(self, view: Expr, value: Expr, *at: Expr | int) -> None:
        """Set one element of memory."""
        self.act("tensor.write", x=view, indices=at, value=value)

    def assign(self, var: Var, value: Expr) -> None:
        """Let an existing variable stand for another value from here on."""
        self.emit(AssignStmt(var, value, self.span))

    def tile(self, name: str, *given: Any, **options: Any) -> Expr:
        """Return the named result of an op on tiles, as in `tile("add", a, b)`."""
        parameters = OPS[f"tile.{name}"].spec.parameters
        return self.do(f"tile.{name}", **{p.name: each for p, each in zip(parameters, given, strict=False)}, **options)

    # scalars

    def scalar(self, name: str, *given: Expr) -> Expr:
        """Return named scalar arithmetic, as in `scalar("add", a, b)`."""
        parameters = OPS[f"scalar.{name}"].spec.parameters
        return self.do(f"scalar.{name}", **{p.name: each for p, each in zip(parameters, given, strict=False)})

    def cast(self, value: Expr, dtype: DataType, mode: str = "trunc") -> Expr:
        """Return a scalar in another type."""
        assert isinstance(value.type, ScalarType)
        if value.type.dtype == dtype:
            return value
        if isinstance(value, Const) and not (dtype.is_int() and isinstance(value.value, float)):
            return constant(value.value if dtype.is_float() else round_scalar(value.value, dtype), dtype)
        reach = bounds(value)
        result = self.do("scalar.cast", x=value, target_type=dtype, mode=mode)
        if isinstance(result, Var) and reach and dtype.limits[0] <= reach[0] and reach[1] <= dtype.limits[1]:
            result.bounds = reach
        return result

    def index(self, value: Expr | int) -> Expr:
        """Return an integer as a number that counts or addresses."""
        return integer(value) if isinstance(value, int) else self.cast(value, INDEX)

    def add(self, a: Expr, b: Expr | int) -> Expr:
        """Return a sum of indices."""
        return self.scalar("add", a, self.index(b))

    def mul(self, a: Expr, b: Expr | int) -> Expr:
        """Return a product of indices."""
        return self.scalar("mul", a, self.index(b))

    def least(self, a: Expr, b: Expr) -> Expr:
        """Return the smaller of two indices."""
        if a == b:
            return a
        reaches = bounds(a), bounds(b)
        if reaches[0] and reaches[1] and reaches[0][1] <= reaches[1][0]:
            return a
        if reaches[0] and reaches[1] and reaches[1][1] <= reaches[0][0]:
            return b
        return self.scalar("min", a, b)

    # control

    @contextmanager
    def block(self) -> Generator[list[Stmt]]:
        """Collect the statements written inside."""
        self.blocks.append([])
        try:
            yield self.blocks[-1]
        finally:
            self.blocks.pop()

    @contextmanager
    def loop(
        self,
        start: Expr | int,
        stop: Expr | int,
        step: Expr | int = 1,
        hint: str = "i",
        kind: ForKind = ForKind.Sequential,
    ) -> Generator[Var]:
        """Write a counted loop around what is written inside; yield its variable."""
        first, last, pace = self.index(start), self.index(stop), self.index(step)
        low, high = bounds(first), bounds(last)
        reach = (low[0], max(low[0], high[1] - 1)) if low and high else None
        if reach and known(first) is not None and (known(pace) or 0) > 0:
            reach = (reach[0], reach[1] - (reach[1] - reach[0]) % (known(pace) or 1))
        var, span = Var(hint, ScalarType(INDEX), self.span, reach), self.span
        with self.block() as body:
            yield var
        self.emit(ForStmt(var, first, last, pace, SeqStmts(tuple(body)), kind, span=span))

    @contextmanager
    def when(self, condition: Expr) -> Generator[None]:
        """Write a branch around what is written inside."""
        span = self.span
        with self.block() as body:
            yield
        self.emit(IfStmt(condition, SeqStmts(tuple(body)), span=span))

    def either(self, condition: Expr, then: Sequence[Stmt], other: Sequence[Stmt]) -> None:
        """Write a branch of two collected blocks."""
        self.emit(IfStmt(condition, SeqStmts(tuple(then)), SeqStmts(tuple(other)) if other else None, span=self.span))

    def repeat(self, condition: Expr, body: Sequence[Stmt]) -> None:
        """Write a loop that runs a collected block while a condition holds."""
        self.emit(WhileStmt(condition, SeqStmts(tuple(body)), span=self.span))

    def variable(self, type_: Type, hint: str) -> Var:
        """Return a variable that nothing has been assigned to yet."""
        return Var(hint, type_, self.span)

    def held(self, value: Expr, hint: str) -> Var:
        """Return a variable that begins with a value."""
        var = self.variable(value.type, hint)
        self.assign(var, value)
        return var


def known(value: Expr) -> int | None:
    """Return an integer that is known before the program runs, or None."""
    return int(value.value) if isinstance(value, Const) and not isinstance(value.value, float) else None


def tile_type(value: Expr) -> TileType:
    """Return the type of a value that is a tile."""
    assert isinstance(value.type, TileType)
    return value.type


def element_of(value: Expr) -> DataType:
    """Return the element type of a tile, or the type of a number."""
    assert isinstance(value.type, (TileType, ScalarType))
    return value.type.dtype
