"""Uses of ops, found by trying: what an op takes is what its type rule accepts.

Nothing here knows an op by name. The declaration says which parameters there are and, by their annotations, what might
be given for each; a use is a choice of one thing for every parameter that the op's own rule accepts. So a new op, and a
new keyword of an old one, is tried in every element type, alone and in pairs, as soon as it is declared.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from random import Random
from types import UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin

from tilewright import dtypes as dt
from tilewright.core.build import call
from tilewright.core.expr import MakeTuple, Var, constant, integer
from tilewright.core.op import REQUIRED, SCRATCH, Kind, Op, Parameter, Role
from tilewright.core.types import ScalarType, TensorType, TileType, Type, static_shape, tensor, tile
from tilewright.dtypes import DataType
from tilewright.errors import KernelError

M, K, N = 5, 7, 9
MATRICES = ((M, K), (K, N), (M, N), (K, M), (N, K), (M, 1), (1, K), (1, N), (K, K), (M, 32))
SHAPES = {2: MATRICES, 3: tuple((2, *shape) for shape in MATRICES), 1: ((K,), (256,))}
"""Shapes that fit together in products, sums and reductions, with and without an axis in front."""

ELEMENTS = (dt.FP32, dt.INT32, dt.UINT8, dt.UINT32)
"""Element types that operands have where they do not have that of the first one: sums, masks, indices."""

FIRST_TRIES, OTHER_RANK, TRIES = 4000, 400, 16
"""How many choices are tried at random before an op counts as refusing: the first time, the first time at another rank,
and once a use is known."""

KEPT = 6
"""How many uses are kept to start from."""


@dataclass(frozen=True)
class Given:
    """Something given for a parameter: as it is written, and as the type rule sees it."""

    text: str
    value: Any
    tensor: Var | None = None
    """The tensor parameter that it is, or that it is loaded from."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of that tensor."""
        assert self.tensor is not None and isinstance(self.tensor.type, TensorType)
        return static_shape(self.tensor.type.shape)


ABSENT = Given("", None)
"""A parameter that is left out."""

Choice: TypeAlias = dict[str, Given]
"""Something for each parameter."""


@dataclass(frozen=True)
class Use:
    """An op with something given for each parameter, and what that gives."""

    op: Op
    given: tuple[tuple[str, Given], ...]
    type: Type

    @property
    def text(self) -> str:
        """The call."""
        shown = ", ".join(f"{name}={given.text}" for name, given in self.given if given is not ABSENT)
        return f"pl.{self.op.name}({shown})"


@dataclass(frozen=True)
class Wish:
    """What a use should have: something for some parameters, element types of the first operands, a rank."""

    values: tuple[tuple[str, Given], ...] = ()
    dtypes: tuple[DataType, ...] = ()
    rank: int = 2


@dataclass
class Sampler:
    """Finds uses of one op."""

    op: Op
    rng: Random
    known: dict[int, list[Choice]] = field(default_factory=dict[int, "list[Choice]"])
    """What was accepted last, by rank."""

    def __post_init__(self) -> None:
        """Read the declaration."""
        self.parameters = self.op.spec.parameters
        signature = inspect.signature(self.op.spec.function)
        self.annotations = {p.name: signature.parameters[p.name].annotation for p in self.parameters}
        self.operands = [p for p in self.parameters if p.role in (Role.VALUE, Role.EITHER)]
        self.positions = {p.name: position for position, p in enumerate(self.operands)}
        self.breadth = 25 if len([p for p in self.operands if p.default is REQUIRED]) > 2 else 1
        self.shaped: dict[tuple[str, DataType, tuple[int, ...]], Given] = {}
        self.accepted = sorted(self.op.spec.accepts, key=str)

    def uses(self, dtype_pairs: int, option_pairs: int) -> list[Use]:
        """Return a use for everything that can be wished for, where the op accepts one."""
        found = [self.use(wish) for wish in [*self._each_alone(), *self._pairs(dtype_pairs, option_pairs)]]
        return list({use.text: use for use in found if use is not None}.values())

    def _each_alone(self) -> Iterator[Wish]:
        for rank in SHAPES:
            yield from (Wish(rank=rank) for _ in range(3))
            yield from (Wish(dtypes=(dtype,), rank=rank) for dtype in self.accepted)
            for p in self.parameters:
                if p.role is not Role.VALUE or p.default is None:
                    yield from (Wish(((p.name, given),), rank=rank) for given in self._wished(p, rank))

    def _wished(self, p: Parameter, rank: int) -> list[Given]:
        if p.role is not Role.VALUE:
            return self.candidates(p, rank)
        return [self._shaped(p, dt.FP32, shape) for shape in SHAPES[rank]]

    def _pairs(self, dtype_pairs: int, option_pairs: int) -> Iterator[Wish]:
        if len(self.operands) > 1:
            pairs = [pair for pair in itertools.product(self.accepted, repeat=2) if pair[0] != pair[1]]
            yield from (Wish(dtypes=pair) for pair in self.rng.sample(pairs, min(dtype_pairs, len(pairs))))
        optional = [p for p in self.parameters if p.default is not REQUIRED]
        for first, second in itertools.combinations(optional, 2):
            for _ in range(option_pairs):
                rank = self.rng.choice([*SHAPES])
                yield Wish(tuple((p.name, self.rng.choice(self._wished(p, rank))) for p in (first, second)), rank=rank)

    def use(self, wish: Wish) -> Use | None:
        """Return a use that has what is wished for, or None where the op refuses whatever was tried."""
        if wish.rank in self.known and not self.known[wish.rank]:
            return None  # no operands of this rank were accepted the first time
        tries = TRIES if wish.rank in self.known else OTHER_RANK if any(self.known.values()) else FIRST_TRIES
        known = self.known.setdefault(wish.rank, [])
        for choice in itertools.chain(self._changed(known, wish), self._random(wish, tries * self.breadth)):
            try:
                result = call(self.op.spec, {name: given.value for name, given in choice.items()})
            except (KernelError, AssertionError):
                continue
            if choice not in known:
                known[:] = [choice, *known[: KEPT - 1]]
            return Use(self.op, tuple(choice.items()), result.type)
        return None

    def _changed(self, known: Sequence[Choice], wish: Wish) -> Iterator[Choice]:
        """Yield what was accepted before with only that changed which is wished for."""
        if not wish.values and not wish.dtypes:
            return
        for choice in [*known]:
            changed = choice | dict(wish.values)
            yield from self._retyped(changed, wish.dtypes) if wish.dtypes else [changed]

    def _retyped(self, choice: Choice, wished: Sequence[DataType]) -> Iterator[Choice]:
        """Yield a choice with other element types: those wished for, then the first one's or that of sums and masks."""
        shaped = [p for p in self.operands if choice[p.name].tensor is not None]
        rest = [[dtype] for dtype in wished] + [[wished[0], *ELEMENTS]] * max(0, len(shaped) - len(wished))
        for dtypes in itertools.product(*rest[: len(shaped)]):
            yield choice | {
                p.name: self._shaped(p, dtype, choice[p.name].shape) for p, dtype in zip(shaped, dtypes, strict=True)
            }

    def _random(self, wish: Wish, tries: int) -> Iterator[Choice]:
        """Yield what is wished for with anything else."""
        wished = dict(wish.values)
        for attempt in range(tries):
            any_dtype = self.rng.choice([dt.UINT8, *self.accepted]) if attempt % 2 else dt.FP32
            first = wish.dtypes[0] if wish.dtypes else any_dtype
            dtypes = [*wish.dtypes, *([first, *ELEMENTS] if attempt % 2 else [first])]
            form = self.rng.choice(self.op.spec.forms) if self.op.spec.forms else ()
            yield {p.name: wished.get(p.name) or self._any(p, wish, dtypes, p.name in form) for p in self.parameters}

    def _any(self, p: Parameter, wish: Wish, dtypes: Sequence[DataType], is_needed: bool) -> Given:
        is_needed = is_needed or self._is_needed(p)
        position = self.positions.get(p.name)
        if position is not None and (is_needed or p.default is not None):
            dtype = dtypes[position] if position < max(1, len(wish.dtypes)) else self.rng.choice(dtypes)
            return self._shaped(p, dtype, self.rng.choice(SHAPES[wish.rank]))
        if p.role is Role.INDEX and p.default is None and self.rng.random() < 0.5:
            return self.rng.choice(self.candidates(p, wish.rank))
        if p.default is not REQUIRED and not is_needed:
            return ABSENT if p.default is None else Given(_shown(p.default), p.default)
        return self.rng.choice(self.candidates(p, wish.rank))

    def _is_needed(self, p: Parameter) -> bool:
        """Return whether a scratch tile is given: tiles may have to bring one along."""
        may_be = p.name in SCRATCH and self.op.spec.scratch is not None and self.op.kind is Kind.TILE
        return may_be and self.rng.random() < 0.7

    def _shaped(self, p: Parameter, dtype: DataType, shape: tuple[int, ...]) -> Given:
        """Return a tensor, or a tile loaded from one; what the op writes has a name of its own."""
        key = (p.name, dtype, shape)
        if key not in self.shaped:
            self.shaped[key] = self._made(p, self.positions[p.name], dtype, shape)
        return self.shaped[key]

    def _made(self, p: Parameter, position: int, dtype: DataType, shape: tuple[int, ...]) -> Given:
        kind = f"{position}_{dtype}_{'x'.join(map(str, shape))}"
        if TileType in p.types and self.op.kind is Kind.TILE:
            return Given(f"t{kind}", Var(f"t{kind}", tile(shape, dtype)), Var(f"x{kind}", tensor(shape, dtype)))
        source = Var(f"{'w' if p.name == self.op.spec.writes else 'x'}{kind}", tensor(shape, dtype))
        return Given(source.name_hint, source, source)

    def candidates(self, p: Parameter, rank: int) -> list[Given]:
        """Return what might be given for a parameter that is no tensor or tile."""
        match p.role:
            case Role.NUMBER | Role.EITHER:
                numbers = [Given(str(n), n) for n in (2, 0, -3, 1.5)]
                scalars = [
                    Given(f"s_{d}", Var(f"s_{d}", ScalarType(d))) for d in (dt.FP32, dt.INT32, dt.UINT8, dt.FP16)
                ]
                return [*numbers, *scalars]
            case Role.INDEX:
                return [Given(str(n), integer(n)) for n in (0, 1, 2, 3, 64)] + [_index(2)]
            case Role.CONDITION:
                return [Given("True", constant(True)), Given("False", constant(False)), Given("flag", FLAG)]
            case Role.EXTENTS:
                return _extents(rank)
            case _:
                return [Given(_shown(v), v) for v in _options(self.annotations[p.name])]


FLAG = Var("flag", ScalarType(dt.BOOL))


def _index(value: int) -> Given:
    """Return a scalar that only the running program knows."""
    return Given(f"n{value}", Var(f"n{value}", ScalarType(dt.INDEX)))


@cache
def _extents(rank: int) -> list[Given]:
    """Return one number per axis: places, sizes and steps."""
    shapes = [shape for shapes in SHAPES.values() for shape in shapes[:5]]
    numbers = [(0,) * rank, (1,) * rank, (2,) * rank, *shapes, *SHAPES[rank], (1, 2, K, 1)]
    fixed = [Given(str(list(n)), MakeTuple(tuple(map(integer, n)))) for n in numbers]
    known = [[_index(value)] * rank for value in (0, 2)]
    return fixed + [Given(f"[{', '.join(i.text for i in e)}]", MakeTuple(tuple(i.value for i in e))) for e in known]


def _options(annotation: Any) -> list[Any]:
    """Return values of a type that a static option may have."""
    if get_origin(annotation) in (Union, UnionType):
        return [value for member in get_args(annotation) for value in _options(member)]
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return [*annotation]
    if annotation is DataType:
        return [*dt.STORABLE]
    if get_origin(annotation) is not None:  # several numbers
        return [(), (0,), (1,), (0, 1)]
    return _PLAIN.get(annotation, [])


_PLAIN: dict[Any, list[Any]] = {
    bool: [False, True],
    int: [*range(-3, 8)],
    float: [0.0, -1.5, float("inf"), float("-inf")],
    str: ["none", "rint", "round", "floor", "ceil", "trunc", "odd"],
    type(None): [None],
}
"""What is tried for options of plain types; an op takes of it what it likes."""


def _shown(value: Any) -> str:
    if isinstance(value, Enum):
        return f"pl.{type(value).__name__}.{value.name}"
    if isinstance(value, DataType):
        return f"pl.{value.symbol}"
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return f'float("{value}")'
    return f"[{', '.join(map(str, _numbers(value)))}]" if isinstance(value, tuple) else repr(value)


def _numbers(value: Any) -> tuple[int, ...]:
    return value
