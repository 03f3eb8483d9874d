"""The writer: lines of one generated function, the names they bind so far, and the choices behind them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeVar

from property.asking import type_of, value_of
from property.values import Interval, Value, dtype_of, fresh_root, is_tensor, is_tile

from tilewright import dtypes as dt
from tilewright.core.expr import Expr
from tilewright.core.printer import python_print_type
from tilewright.core.types import ScalarType, TensorType, TileType, Type, is_fully_valid
from tilewright.dtypes import DataType

T = TypeVar("T")
Draw = Callable[[int, int], int]
"""Chooses an integer between two, both included."""

DTYPES = (
    dt.FP32, dt.FP32, dt.FP32, dt.FP16, dt.BF16, dt.INT32, dt.INT32, dt.INT8, dt.INT16, dt.UINT8, dt.INT64, dt.UINT16,
    dt.UINT32, dt.UINT64, dt.BOOL,
)  # fmt: skip
"""The element types of generated tensors, the likelier ones more often."""


class Plane(Enum):
    """Where a statement stands: where kernels are dispatched, or inside one."""

    CONTROL = "control"
    KERNEL = "kernel"


@dataclass
class Writer:
    """One function being written. `budget` is how many more statements it may have."""

    draw: Draw
    plane: Plane
    budget: int
    extents: Sequence[int]
    """The extents shapes are made of; few, so that operands fit together."""
    statements: Mapping[Plane, Sequence[Callable[[Writer], object]]]
    """What may be written on each plane, the likelier statements more often."""
    symbols: Sequence[str] = ()
    """The dynamic extents the function may name."""
    lines: list[str] = field(default_factory=list[str])
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    indent: int = 0
    depth: int = 0
    """How many parallel loops are around."""
    loop: str = ""
    """The innermost loop as `break` sees it: `range`, `while`, another word, or nothing."""
    grouped: bool = False
    """Whether it is in a group, whose tasks are one."""
    carried: tuple[str, ...] = ()
    """The names the innermost loop carries explicitly."""
    risk: int = 0
    """In how many cases of a hundred an index or a divisor is a number nobody has looked at."""
    outputs: frozenset[int] = frozenset()
    """The buffers of the tensors that the function is given to write."""
    exits: int = 0
    """How many `break`s, `continue`s and early returns were written."""
    returns: str | None = None
    """What an early return returns, where one may stand."""
    added_to: set[str] = field(default_factory=set[str])
    """Tiles that may have a slice which is added to in place: they are not bound to another tile."""
    _names: int = 0

    def number(self, low: int, high: int) -> int:
        """Return a chosen integer; shrinking moves it towards `low`."""
        return self.draw(low, high)

    def chance(self, percent: int) -> bool:
        """Return True in about `percent` cases of a hundred; shrinking prefers False."""
        return self.number(0, 99) >= 100 - percent

    def pick(self, choices: Sequence[T]) -> T:
        """Return one of the choices; shrinking prefers the first."""
        return choices[self.number(0, len(choices) - 1)]

    def fresh(self, stem: str = "v") -> str:
        """Return a name nobody has used."""
        self._names += 1
        return f"{stem}{self._names}"

    def line(self, text: str) -> None:
        """Write one line."""
        self.lines.append("    " * self.indent + text)

    def body(self, most: int) -> None:
        """Write a few statements."""
        for _ in range(self.number(1, most)):
            if self.budget > 0:
                self.budget -= 1
                self.pick(self.statements[self.plane])(self)

    @contextmanager
    def block(self, head: str) -> Generator[dict[str, Value]]:
        """Write an indented block; what it binds is gone afterwards, and in the dictionary given."""
        self.line(head)
        before, inside = self.values, dict[str, Value]()
        self.values = dict(before)
        self.indent += 1
        written = len(self.lines)
        yield inside
        if len(self.lines) == written:
            self.line("pass")
        self.indent -= 1
        inside.update({name: value for name, value in self.values.items() if name not in before})
        self.values = before

    def make(self, text: str, stem: str = "v", *, keep: bool = False) -> Value | None:
        """Write `name = text` and return the value, or None where the front end refuses the expression."""
        found = value_of(text, self.values, self.symbols)
        type_ = type_of(found)
        if isinstance(type_, TensorType):
            return self._bind(text, type_, found, stem, roots=fresh_root(), writable=True)
        if type_ is None:
            return None
        return self._bind(text, type_, found, stem, keep=keep)

    def asks(self, text: str) -> Type | None:
        """Return the type an expression would have here, or None where the front end refuses it."""
        return type_of(value_of(text, self.values, self.symbols))

    def knows(self, text: str) -> bool:
        """Return whether the front end itself knows what an expression gives."""
        return isinstance(value_of(text, self.values, self.symbols), (bool, int, float))

    def act(self, text: str) -> bool:
        """Write a call for its effect; return whether the front end takes it."""
        if self.asks(text) is None:
            return False
        self.line(text)
        return True

    def bind(self, text: str, type_: Type, stem: str = "v", *, keep: bool = False, **facts: object) -> Value:
        """Write `name = text` and return the value; an old name of the same type may take it, unless `keep`."""
        return self._bind(text, type_, value_of(text, self.values, self.symbols), stem, keep=keep, **facts)

    def _bind(
        self, text: str, type_: Type, found: Expr | float | None, stem: str, *, keep: bool = False, **facts: object
    ) -> Value:
        name = self.fresh(stem) if keep or facts else self.name_for(type_, stem)
        literal = found if isinstance(found, (int, float)) else None
        depth = self.values[name].depth if name in self.values else self.depth
        value = Value(name, type_, depth, literal=literal, **facts)  # pyright: ignore[reportArgumentType]
        self.values[name] = value
        shown = isinstance(type_, (TileType, TensorType)) and is_fully_valid(type_) and self.chance(8)
        self.line(f"{name}: {python_print_type(type_)} = {text}" if shown else f"{name} = {text}")
        return value

    def name_for(self, type_: Type, stem: str, taken: Sequence[str] = ()) -> str:
        """Return a name for a value of a type: a new one, or one that is bound already."""
        old = [v.name for v in self.values.values() if self._takes(v, type_) and v.name not in taken]
        return self.pick(old) if old and self.chance(35) else self.fresh(stem)

    def _takes(self, value: Value, type_: Type) -> bool:
        """Return whether a name may be bound to another value of the same type."""
        is_free = not value.fixed and value.name not in self.added_to
        return is_free and value.type == type_ and value.depth == self.depth and not isinstance(type_, TensorType)

    def all(self, *claims: Callable[[Value], bool]) -> list[Value]:
        """Return the visible values of which every claim holds."""
        return [value for value in self.values.values() if all(claim(value) for claim in claims)]

    def tensors(self) -> list[Value]:
        """Return the tensors that may be read here."""
        return self.all(is_tensor, lambda v: v.readable)

    def targets(self) -> list[Value]:
        """Return the tensors that may be written anywhere here: inside a parallel loop, those made in it."""
        return self.all(is_tensor, lambda v: v.writable and v.depth == self.depth)

    def tiles(self) -> list[Value]:
        """Return the tiles."""
        return self.all(is_tile)

    def written(self, target: Value, *, whole: bool = False) -> None:
        """Note that a tensor was written; when all of it was, it may be read from here on."""
        if whole:
            for value in self.all(
                is_tensor, lambda v: v.name == target.name or (target.packed and v.roots == target.roots)
            ):
                self.values[value.name] = replace(value, readable=True)

    def index(self, high: int) -> tuple[str, Interval]:
        """Return an integer expression between 0 and `high`, with how far it reaches."""
        if self.risk and self.chance(self.risk):
            return self.scalar(dt.INDEX), (0, high)
        known = self.all(lambda v: v.reach is not None and 0 <= v.reach[0] and v.reach[1] <= high)
        if known and self.chance(50):
            value = self.pick(known)
            assert value.reach is not None
            return value.name, value.reach
        counts = self.all(lambda v: v.type == ScalarType(dt.INDEX))
        if high and counts and self.chance(40):
            text = self.pick(counts).name
            bounded = [f"{text} % {high + 1}", f"pl.min(pl.max({text}, 0), {high})"]
            return self.pick(bounded), (0, high)
        number = self.number(0, high)
        return str(number), (number, number)

    def scalar(self, dtype: DataType) -> str:
        """Return an expression of one scalar type: a literal, a name, or arithmetic on them."""
        literal = self.literal(dtype)
        values = self.all(lambda v: v.type == ScalarType(dtype))
        if not values or self.chance(30):
            return literal
        known, chosen = [v.name for v in values], self.pick(values)
        name = chosen.name
        if dtype == dt.BOOL or self.chance(50):
            return name
        other = self.pick([literal, *known])
        forms = [f"{name} + {other}", f"{name} - {other}", f"{name} * {other}", f"pl.min({name}, {other})"]
        forms += [f"pl.max({other}, {name})", f"{name} // 3", f"{name} % 5", f"-{name}"]
        forms += [f"{name} / 2"] if chosen.literal is None else []
        if dtype.is_int():
            forms += [f"{name} // {other}", f"{name} % {other}"] if self.risk and other in known else []
            forms += [f"{name} & {other}", f"{name} | {other}", f"{name} ^ {other}", f"~{name}"]
            forms += [f"{name} << {self.number(0, 3)}", f"{name} >> {self.number(0, 3)}"]
        return self.pick(forms)

    def literal(self, dtype: DataType) -> str:
        """Return a number of one scalar type."""
        if dtype == dt.BOOL:
            return self.pick(["False", "True"])
        low = 0 if dtype.is_unsigned_int() else -3
        return str(self.number(low, 7)) if dtype.is_int() else f"{self.number(-12, 12) / 4}"

    def condition(self) -> str:
        """Return a condition: one the compiler knows, one it may find out, or one only the run decides."""
        known = self.all(lambda v: v.is_scalar and dtype_of(v) not in (dt.BOOL, dt.TASK_ID) and v.literal is None)
        flags = self.all(lambda v: v.type == ScalarType(dt.BOOL))
        if flags and self.chance(25):
            return self.pick(flags).name
        if not known or self.chance(10):
            return self.pick(["1 < 2", "pl.const(3, pl.INT32) < 2"])
        value = self.pick(known)
        text = f"{value.name} {self.pick(['<', '<=', '>', '>=', '==', '!='])} {self.scalar(dtype_of(value))}"
        if self.chance(20):
            other = self.pick(known)
            return f"{text} {self.pick(['and', 'or'])} {other.name} > 1"
        return f"not ({text})" if self.chance(10) else text


@contextmanager
def inside(w: Writer, **changes: object) -> Generator[None]:
    """Change facts about where a writer is for a while."""
    before = {name: getattr(w, name) for name in changes}
    for name, value in changes.items():
        setattr(w, name, value)
    yield
    for name, value in before.items():
        setattr(w, name, value)
