"""Ops: one record per operation, which every other part of the compiler asks.

A declaration in `tilewright.ops` makes one `OpSpec`: the public function, how its parameters are read, its type rule,
its meaning in NumPy, and its traits. An op that exists for tiles and for tensors is two `Op`s, `tile.add` and
`tensor.add`, sharing one spec. Nothing else in the code base lists ops.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import field
from enum import Enum, IntEnum
from functools import cache
from types import FunctionType, NoneType, UnionType
from typing import Any, TypeAlias, get_args

from tilewright.core import annotations as ann
from tilewright.core.types import ArrayType, ScalarType, TensorType, TileType
from tilewright.dtypes import FP64, DataType
from tilewright.forks import computed_once
from tilewright.records import mutable


class Kind(Enum):
    """What an op works on; the first half of its name."""

    SCALAR = "scalar"
    TILE = "tile"
    TENSOR = "tensor"
    ARRAY = "array"
    SYSTEM = "system"
    PREFETCH = "prefetch"
    DISTRIBUTED = "distributed"

    __hash__ = object.__hash__  # each is only equal to itself

    @property
    def is_data(self) -> bool:
        """Whether its ops compute; the others have a namespace of their own and no name in `pl`."""
        return self not in (Kind.SYSTEM, Kind.PREFETCH, Kind.DISTRIBUTED)


class Role(Enum):
    """How a parameter of an op is read."""

    VALUE = "a tensor, tile or array"
    NUMBER = "a scalar that meets elements"
    EITHER = "a value or a number"
    INDEX = "a scalar that counts or addresses"
    CONDITION = "a condition"
    EXTENTS = "one scalar per axis"
    ATTRIBUTE = "a static option"


class Effect(Enum):
    """What an op does to memory; everything keeps its order relative to writes."""

    PURE = "pure"
    READ = "read"
    WRITE = "write"
    ALLOCATE = "allocate"


class Undefined(Enum):
    """What an op makes of elements that nobody wrote."""

    REFUSED = "looking at one is an error"
    SPREADS = "an element computed from one is another"
    MOVES = "it goes where the others go"


Interval: TypeAlias = tuple[int, int]

ElementTypes: TypeAlias = Callable[[DataType, Sequence[DataType | ScalarType]], tuple[DataType, ...]]

REQUIRED: Any = inspect.Parameter.empty

SCRATCH = ("tmp", "tmp_tile")
"""What operands are called that only lend their memory."""


@mutable
class Parameter:
    """One parameter of an op."""

    name: str
    role: Role
    default: Any = REQUIRED
    types: tuple[type, ...] = ()
    """The IR types an operand may have."""
    is_dtype: bool = False
    """Whether it names an element type."""
    takes: tuple[type, ...] = ()
    """What a static option may be, of one that is a switch or an enumeration; rules read all others."""
    also: tuple[str, ...] = ()
    """Other names that a call may give it by."""
    converts: bool = False
    """Whether a number is converted to the elements it meets, instead of meeting them as it is."""
    keeps_bits: bool = False
    """Whether a negative number that meets unsigned elements stands for the one with the same bits."""
    unheld: bool = False
    """Whether a number may be one that the elements it meets cannot hold."""
    codes: tuple[str, ...] = ()
    """The names that numbers stand for, of an option that takes either."""
    help: str = ""
    """What to write instead of something that is none."""
    follows: bool = False
    """Whether other operands come first in deciding how much of the result is valid."""

    @property
    def is_operand(self) -> bool:
        """Whether the argument is part of the data flow."""
        return self.role is not Role.ATTRIBUTE


DOUBLE_ULP = 4
"""How many units of the last place a reference computed in doubles may be off, where the op is not exact."""


@mutable
class OpSpec:
    """Everything known about an op. `infer` and `evaluate` take the op's own parameters by name."""

    name: str
    kinds: tuple[Kind, ...]
    function: Callable[..., Any]
    parameters: tuple[Parameter, ...]
    infer: Callable[..., Any]
    evaluate: Callable[..., Any]
    family: str = "structured"
    reference: Callable[..., Any] | None = None
    """The meaning of one element, in NumPy functions; back ends apply it to their own values."""
    elements: ElementTypes | None = None
    """The type that each operand is converted to before `reference` sees it, from the result's element type and those
    of the operands; None: the result's."""
    combine: str = ""
    """The NumPy function that a reduction folds with."""
    start: Callable[[DataType], Any] | None = None
    """What folding nothing gives."""
    chained: bool = False
    """Whether `reference` goes over the operands from left to right, rounding after each of them."""
    stepwise: frozenset[DataType] = frozenset()
    """The element types in which a reduction rounds after every step; in others it may round as late as it likes."""
    effect: Effect = Effect.PURE
    alias: str | None = None
    """The operand whose buffer the result is."""
    writes: str | None = None
    """The operand whose buffer the op changes."""
    is_barrier: bool = False
    """Whether the blocks of a launch wait for each other in it."""
    is_fence: bool = False
    """Whether other ranks look at memory there: what is read or written before it has been, and no sooner after it."""
    takes_permuted: bool = False
    """Whether it takes tensors whose memory holds elements in an order of their own."""
    turns: bool = False
    """Whether neighbours along the last axis of the tensor it gives may lie apart, though its operand's do not."""
    undefined: Undefined = Undefined.REFUSED
    """What becomes of undefined elements of its operands."""
    unread: frozenset[str] = frozenset()
    """The operands of which only the type matters."""
    scratch: Callable[..., TileType | None] | None = None
    """The scratch tile that tiles have to bring along, from the other operands; None: none is needed."""
    takes_numbers: bool = False
    """Whether a call on numbers alone is one of the scalar op of the same name."""
    updates: str | None = None
    """The operand that the result takes the place of: an accumulator, which is added to where it lies."""
    touches: frozenset[str] = frozenset()
    """The tensors of which its meaning says itself which elements it reads; of others it reads all."""
    orders: tuple[tuple[str, ...], ...] = ()
    """Other orders in which its arguments may be written."""
    forms: tuple[tuple[str, ...], ...] = ()
    """The parameters that belong together, of an op that does one of several things: it is given those of one form."""
    listed: Callable[..., Any] | None = None
    """The op that it is where its second argument is a list, or called `shape`."""
    annotated: bool = False
    """Whether the annotation of the name it is assigned to may say its `shape` and `dtype`."""
    control_plane: bool = False
    """Whether an orchestration function may use it outside a kernel scope."""
    symbol: str = ""
    """The Python operator that spells it."""
    neutral: int | None = None
    """The right operand that changes nothing."""
    commutative: bool = False
    fold: Callable[..., Any] | None = None
    """What the op always gives, from its operands as `infer` sees them: an expression, or None."""
    interval: Callable[[Interval, Interval], Interval | None] | None = None
    """The least and largest result of a scalar op, from those of its operands, where they tell."""
    accepts: frozenset[DataType] = frozenset()
    ulp: float = 0
    """How far a back end's result may be from the exact one, in units of the last place."""
    domain: tuple[float, float] = (-8.0, 8.0)
    """Where tests sample operands."""
    example: str = ""
    """Statements of a kernel that uses the op, for the reference page and for tests."""
    expand: Callable[..., Any] | None = None
    """How a call is written in other ops, of which alone programs are made: from a writer and the op's parameters."""

    def element_types(self, result: DataType, given: Sequence[DataType | ScalarType]) -> tuple[DataType, ...]:
        """Return the type that each operand is computed with in, from the element type of the result and theirs."""
        return (result,) * len(given) if self.elements is None else self.elements(result, given)

    def accuracy(self, dtype: DataType) -> float:
        """Return how far a result of a type may be from the interpreter's, which is off by a few units as a double."""
        return self.ulp + DOUBLE_ULP if self.ulp and dtype == FP64 else self.ulp

    @property
    def is_view(self) -> bool:
        """Whether it gives a buffer as another value, and reads and writes none of its elements."""
        return self.alias is not None and self.effect is Effect.PURE

    @property
    def is_atomic(self) -> bool:
        """Whether it changes elements of a tensor in one step each, and gives what they were."""
        return self.family == "atomic"

    @property
    def computes(self) -> bool:
        """Whether it gives a new value and touches no buffer."""
        return self.alias is None and self.effect is Effect.PURE

    @property
    def has_a_name(self) -> bool:
        """Whether authors call it by its name: operators have a sign, and `pl.max` of numbers that of tiles."""
        shaped = OPS.get(f"tile.{self.name}") if self.kinds == (Kind.SCALAR,) else None
        return not self.symbol and (shaped is None or shaped.spec.expand is None)

    @property
    def doc(self) -> str:
        """The op's docstring."""
        return inspect.getdoc(self.function) or ""

    @computed_once
    def operands(self) -> tuple[Parameter, ...]:
        """The parameters that are part of the data flow, in order."""
        return tuple(p for p in self.parameters if p.is_operand)

    @computed_once
    def data(self) -> tuple[str, ...]:
        """The operands that elements of the result are made of, in the order in which they decide what is valid."""
        return _data(self.parameters)

    @computed_once
    def names(self) -> tuple[str, ...]:
        """The names of the parameters, in order."""
        return tuple(p.name for p in self.parameters)

    @computed_once
    def converted(self) -> tuple[str, ...]:
        """The numbers that become elements of what they meet."""
        return tuple(p.name for p in self.parameters if p.converts)

    @computed_once
    def options(self) -> tuple[Parameter, ...]:
        """The parameters that are static, in order."""
        return tuple(p for p in self.parameters if not p.is_operand)

    @computed_once
    def ops(self) -> Mapping[Kind, Op]:
        """The op at each of its kinds."""
        return {kind: OPS[f"{kind.value}.{self.name}"] for kind in self.kinds}


@mutable
class Op:
    """A spec at one kind: what a call in the IR refers to."""

    name: str
    kind: Kind
    spec: OpSpec = field(repr=False)

    def at(self, kind: Kind) -> Op:
        """Return the same operation on another kind of operand."""
        return OPS[f"{kind.value}.{self.spec.name}"]


OPS: dict[str, Op] = {}
"""Every op by its full name, in the order of declaration."""

_BY_FUNCTION: dict[Callable[..., Any], OpSpec] = {}

EAGER: ContextVar[Callable[[OpSpec, tuple[Any, ...], dict[str, Any]], Any] | None] = ContextVar("EAGER", default=None)
"""What computes ops that are called as plain Python, where a debugger looks on; elsewhere that is a mistake."""


def register(spec: OpSpec) -> OpSpec:
    """Add `spec` to the language at each of its kinds."""
    for kind in spec.kinds:
        name = f"{kind.value}.{spec.name}"
        if name in OPS and place_of(OPS[name].spec.function) != place_of(spec.function):
            raise ValueError(f"op {name} is declared twice")
        OPS[name] = Op(name, kind, spec)
    _BY_FUNCTION[spec.function] = spec
    return spec


def place_of(declared: Callable[..., Any]) -> tuple[object, ...]:
    """Return where a function is declared; a file whose import was interrupted declares it once more."""
    code = getattr(declared, "__code__", None)
    return declared.__module__, getattr(code, "co_firstlineno", None)


def add_spelling(function: Callable[..., Any], spec: OpSpec) -> None:
    """Let `function` name an op that is already declared; `spec` may narrow what it takes."""
    _BY_FUNCTION[function] = spec


def spec_of(function: object) -> OpSpec | None:
    """Return the spec whose public function this is, or None."""
    try:
        return _BY_FUNCTION.get(function)  # pyright: ignore[reportArgumentType, reportCallIssue]
    except TypeError:
        return None


def get_op(name: str) -> Op:
    """Return an op by its full name, as in `tile.add`; ValueError with the nearest spelling when there is none."""
    if name not in OPS:
        from difflib import get_close_matches  # mistakes alone pay for it

        hints = [f"; did you mean {near!r}?" for near in get_close_matches(name, OPS, 1)]
        raise ValueError("".join([f"no op is called {name!r}", *hints]))
    return OPS[name]


def specs() -> tuple[OpSpec, ...]:
    """Return every declared op once, in the order of declaration."""
    return tuple(dict.fromkeys(op.spec for op in OPS.values()))


_TYPES: Mapping[Any, tuple[type, ...]] = {
    ann.X: (TileType, TensorType),
    ann.Tensor: (TensorType,),
    ann.Tile: (TileType,),
    ann.Array: (ArrayType,),
    ann.Scalar: (ScalarType,),
}
"""The IR types behind each annotation a declaration can use."""


def parameters_of(function: FunctionType) -> tuple[Parameter, ...]:
    """Return how each parameter of a declaration is read, which its annotation decides."""
    code, values = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[: code.co_argcount]
    defaults = dict(zip(names[len(names) - len(values) :], values, strict=True)) | (function.__kwdefaults__ or {})
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return tuple(_parameter(name, function.__annotations__.get(name), defaults.get(name, REQUIRED)) for name in names)


def data_of(function: FunctionType) -> tuple[str, ...]:
    """Return the operands of a declaration that elements of the result are made of."""
    return _data(parameters_of(function))


def _data(parameters: Sequence[Parameter]) -> tuple[str, ...]:
    roles = (Role.VALUE, Role.NUMBER, Role.EITHER)
    found = [p for p in parameters if p.role in roles and p.name not in SCRATCH]
    return tuple(p.name for p in sorted(found, key=lambda p: p.follows))


def _parameter(name: str, annotation: Any, default: Any) -> Parameter:
    role, types, is_dtype, takes = _meaning(annotation)
    return Parameter(name, role, default, types, is_dtype, takes)


@cache
def _meaning(annotation: Any) -> tuple[Role, tuple[type, ...], bool, tuple[type, ...]]:
    """Return what an annotation says of a parameter; a few dozen serve all declarations."""
    members = {annotation, *get_args(annotation)}
    types = tuple(t for annotation, found in _TYPES.items() if annotation in members for t in found)
    role, is_dtype = _role(members, types), DataType in members
    return role, types, is_dtype, _static_types(annotation) if role is Role.ATTRIBUTE and not is_dtype else ()


def _static_types(annotation: Any) -> tuple[type, ...]:
    """Return the enumerations and switches that an annotation lists, with None.

    Nothing where it lists anything else, or enumerations that numbers stand for: rules read those.
    """
    members = get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)
    return members if all(member in (bool, NoneType) or _is_enumeration(member) for member in members) else ()


def _is_enumeration(member: Any) -> bool:
    return isinstance(member, type) and issubclass(member, Enum) and not issubclass(member, IntEnum)


def _role(members: set[Any], types: tuple[type, ...]) -> Role:
    is_number = members >= set(get_args(ann.Number))
    if types and types != (ScalarType,):
        return Role.EITHER if is_number else Role.VALUE
    if is_number:
        return Role.NUMBER
    if ann.Extents in members:
        return Role.EXTENTS
    if members >= set(get_args(ann.Index)):
        return Role.INDEX
    return Role.CONDITION if types else Role.ATTRIBUTE
