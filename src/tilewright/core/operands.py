"""Operands: arguments matched to an op's parameters and checked, before any type rule sees them."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import TypeAlias, TypeGuard

from tilewright.core.expr import (
    ABSENT,
    Absent,
    Attribute,
    Const,
    ConstInt,
    Expr,
    MakeTuple,
    constant,
    integer,
    literal_type,
)
from tilewright.core.numbers import TypedNumber
from tilewright.core.op import OPS, REQUIRED, Kind, OpSpec, Parameter, Role, spec_of
from tilewright.core.types import ArrayType, ScalarType, ShapedType, TensorType, TileType
from tilewright.dtypes import BOOL, FP64, INT64, TASK_ID, DataType, Family, like, objection
from tilewright.errors import ArgumentCountError, AttributeValueError, MixedKindsError, OperandError

Argument: TypeAlias = "Expr | Attribute | tuple[Expr | Attribute, ...]"
Bound: TypeAlias = Mapping[str, Argument]

_KINDS: Mapping[type, Kind] = {TensorType: Kind.TENSOR, TileType: Kind.TILE}
_WORDS: Mapping[type, str] = {
    TensorType: "a tensor",
    TileType: "a tile",
    ScalarType: "a scalar",
    ArrayType: "an array",
}


def bind(spec: OpSpec, args: Sequence[Argument], kwargs: Mapping[str, Argument]) -> dict[str, Argument]:
    """Return the arguments by parameter name, defaults filled in; ArgumentCountError when they do not fit."""
    names = order_of(spec, args)
    if len(args) > len(names):
        message = f"`{spec.name}` expects at most {len(spec.parameters)} argument(s), got {len(args)}"
        raise ArgumentCountError(message, help=usage(spec))
    bound = dict(zip(names, args, strict=False))
    for given_name, value in kwargs.items():
        name = _parameter(spec, given_name)
        if name in bound:
            message = f"`{spec.name}` got `{name}` twice"
            raise ArgumentCountError(message, blame=[given_name], help=usage(spec))
        bound[name] = value
    given: dict[str, Argument] = {}
    for p in spec.parameters:
        value = bound.get(p.name, p.default)
        if value is REQUIRED:
            raise ArgumentCountError(f"`{spec.name}` is missing its argument `{p.name}`", help=usage(spec))
        if p.is_dtype and p.name in bound and not isinstance(value, DataType):
            value = _element_type(spec, p, value)
        if p.codes and type(value) is int and 0 <= value < len(p.codes):
            value = p.codes[value]
        if p.takes and p.name in bound and not isinstance(value, Expr):  # those of run time are refused elsewhere
            value = _option(p, value, f"{usage(spec)}; " if p.name in names[: len(args)] else "")
        given[p.name] = value
    return given


def _option(parameter: Parameter, value: Argument, placed: str) -> Argument:
    """Return a static option that is what its declaration says; AttributeValueError for anything else.

    One of another kind would be read as none: `atomic="add"` is not `AtomicType.Add`. What is `placed` among others was
    perhaps meant for one of those: the help begins with that.
    """
    takes = parameter.takes
    if bool in takes and isinstance(value, int) and value in (0, 1):
        return bool(value)
    if isinstance(value, takes):
        return value
    choices = [f"pl.{kind.__name__}.{each.name}" for kind in takes if issubclass(kind, Enum) for each in kind]
    help = f"one of {', '.join(choices)}" if choices else "True or False"
    raise AttributeValueError(f"{parameter.name} cannot be {value!r}", blame=[parameter.name], help=placed + help)


def called_op(spec: OpSpec, args: Sequence[Argument], kwargs: Mapping[str, Argument]) -> OpSpec:
    """Return the op that a call is of: some are another one where they are given a list."""
    listed = spec_of(spec.listed) if spec.listed is not None else None
    is_listed = "shape" in kwargs or (len(args) > 1 and isinstance(args[1], (list, tuple, MakeTuple)))
    return listed if listed is not None and is_listed else spec


def order_of(spec: OpSpec, args: Sequence[Argument]) -> tuple[str, ...]:
    """Return the names of what is given by position, in the first order where data and element types fit the op."""
    if not spec.orders:
        return spec.names
    own = spec.names
    parameters = {p.name: p for p in spec.parameters}
    for names in (own, *spec.orders):
        if all(_fits(parameters[name], value) for name, value in zip(names, args, strict=False)):
            return names
    return own


def _fits(parameter: Parameter, value: Argument) -> bool:
    if parameter.is_dtype:
        return isinstance(value, DataType) or like(value) is not None
    return parameter.role in (Role.VALUE, Role.EITHER) or not _is_data(value)


def _is_data(value: Argument) -> bool:
    return isinstance(value, Expr) and isinstance(value.type, (TensorType, TileType))


_TORCH_WORDS = {"dim": "axis", "keepdim": "keepdims"}
"""What torch calls parameters that are called here as in NumPy, whichever op they are of."""


def _parameter(spec: OpSpec, name: str) -> str:
    """Return the parameter that an argument is given for by name."""
    name_here = _TORCH_WORDS.get(name, name)
    found = next((p.name for p in spec.parameters if name in (p.name, *p.also) or name_here == p.name), None)
    if found is None:
        help = usage(spec) + _kin(spec)
        raise ArgumentCountError(f"`{spec.name}` has no parameter `{name}`", blame=[name], help=help)
    return found


def _kin(spec: OpSpec) -> str:
    """Return the one op that is named after another, if there is one: what an option is elsewhere may be it."""
    named = {each.spec.name for each in OPS.values() if each.spec.name.startswith(f"{spec.name}_")}
    return f"; pl.{named.pop()} is another op" if len(named) == 1 else ""


def _element_type(spec: OpSpec, parameter: Parameter, value: object) -> DataType | None:
    """Return what names an element type in another library as our own; OperandError for anything else."""
    if value is None and parameter.default is None:
        return None
    found = like(value)
    if found is None:
        message = f"`{parameter.name}` of `{spec.name}` must be an element type, got {value!r}"
        raise OperandError(message, blame=[parameter.name], help="for example pl.FP32 or x.dtype")
    return found


def usage(spec: OpSpec) -> str:
    """Return the call form of an op, as a help line."""
    shown = [p.name if p.default is REQUIRED else f"{p.name}={_literal(p.default)}" for p in spec.parameters]
    return f"{spec.name}({', '.join(shown)})"


def _literal(value: object) -> str:
    return value.name if isinstance(value, Enum) else repr(value)


def kind_of(spec: OpSpec, bound: Bound) -> Kind:
    """Return which of an op's kinds its operands ask for."""
    if len(spec.kinds) == 1:
        return spec.kinds[0]
    deciding = [spec.alias] if spec.alias else [p.name for p in spec.operands]
    found = {_KINDS[type(v.type)] for name in deciding if is_shaped(v := bound[name])}
    if len(found) > 1:
        raise MixedKindsError(
            f"`{spec.name}` cannot mix Tensor and Tile arguments",
            blame=[p.name for p in spec.operands if p.role in (Role.VALUE, Role.EITHER)],
        )
    kind = found.pop() if found else Kind.SCALAR
    return kind if kind in spec.kinds else spec.kinds[0]


def is_shaped(value: Argument) -> TypeGuard[Expr]:
    """Return whether an argument is a tensor or a tile."""
    return isinstance(value, Expr) and isinstance(value.type, (TensorType, TileType))


def check(spec: OpSpec, parameter: Parameter, bound: Bound) -> Expr:
    """Return one operand as an expression of a type the parameter takes; OperandError otherwise."""
    value = bound[parameter.name]
    if value is None or isinstance(value, Absent):
        if parameter.default is None:
            return ABSENT
        raise OperandError(f"`{spec.name}` needs its argument `{parameter.name}`", blame=[parameter.name])
    if parameter.role is Role.EXTENTS:
        with _blaming(parameter):
            return _extents(spec, parameter, value)
    if isinstance(value, (bool, int, float)):
        with _blaming(parameter):
            value = literal(spec, parameter, value, bound)
    if not isinstance(value, Expr) or not isinstance(value.type, parameter.types):
        raise _wrong(spec, parameter, " or ".join(_WORDS[t] for t in parameter.types), value)
    if isinstance(value.type, TensorType) and value.type.layout.is_permuted and not spec.takes_permuted:
        help = "pl.load(x, offsets, shapes, target_memory=pl.Mem.Mat) puts them in order"
        message = f"`{spec.name}` takes no tensor whose elements lie in the order {value.type.layout.value}"
        raise OperandError(message, blame=[parameter.name], help=help)
    if parameter.role is Role.INDEX and not _is_integer(value):
        raise _wrong(spec, parameter, "an integer", value)
    if parameter.role is Role.CONDITION and value.type != ScalarType(BOOL):
        raise _wrong(spec, parameter, "a condition", value)
    return value


@contextmanager
def _blaming(parameter: Parameter) -> Generator[None]:
    """Let a number that its type cannot hold be shown at the argument it came with."""
    try:
        yield
    except OperandError as error:
        error.blame = error.blame or (parameter.name,)
        raise


def _extents(spec: OpSpec, parameter: Parameter, value: Argument) -> MakeTuple:
    """Return one integer per axis; a single integer stands for one axis."""
    if isinstance(value, tuple):
        if not all(isinstance(v, (int, Expr)) and not isinstance(v, bool) for v in value):
            raise _wrong(spec, parameter, "a list of integers", value)
        value = MakeTuple(tuple(v if isinstance(v, Expr) else integer(v) for v in value if isinstance(v, (int, Expr))))
    elif isinstance(value, int) and not isinstance(value, bool):
        value = MakeTuple((integer(value),))
    elif isinstance(value, Expr) and not isinstance(value, MakeTuple) and _is_integer(value):
        value = MakeTuple((value,))
    if not isinstance(value, MakeTuple):
        raise _wrong(spec, parameter, "a list of integers", value)
    for element in value.elements:
        if not _is_integer(element):
            raise _wrong(spec, parameter, "a list of integers", element)
    return value


def _is_integer(value: Expr) -> bool:
    return isinstance(value.type, ScalarType) and (value.type.dtype.is_int() or value.type.dtype == TASK_ID)


def _wrong(spec: OpSpec, parameter: Parameter, wanted: str, value: Argument) -> OperandError:
    got = str(value.type) if isinstance(value, Expr) else repr(value)
    help = next((help for word, help in _HELP.items() if word in wanted), "")
    given = value if isinstance(value, tuple) else (value,)
    if "list" in wanted and any(isinstance(each, float) for each in given):
        help = "`n // 2` is an integer, `n / 2` is not"
    if "tile" in wanted and isinstance(value, Expr) and isinstance(value.type, ScalarType):
        help = _for_numbers(spec)
    message = f"`{parameter.name}` of `{spec.name}` must be {wanted}, got {got}"
    return OperandError(message, blame=[parameter.name], help=parameter.help or help)


def _for_numbers(spec: OpSpec) -> str:
    """Return where a number goes that was given in place of a tile."""
    form = OPS.get(f"tile.{spec.name}s")
    taking = form.spec if form is not None else spec
    number = next((p.name for p in taking.operands if p.role is Role.NUMBER), None)
    made = "pl.tile_full(shape, dtype=pl.FP32, value=0.0) makes a tile of one number"
    return made if number is None else f"pl.{taking.name}(..., {number}=0.0) takes a number; {made}"


_HELP = {
    "tile": "pl.load makes a tile from a tensor",
    "tensor": "this works on buffers in memory: a parameter, or what pl.create_tensor gives",
    "list": "one integer per axis, for example [0, 0]",
    "integer": "use `//` to divide, or pl.cast(..., pl.INDEX)",
    "scalar": "a number, or a parameter annotated pl.Scalar[pl.INT32]",
    "condition": "compare first, for example `n > 0`",
}


def literal(spec: OpSpec, parameter: Parameter, value: int | float | bool, bound: Bound) -> Const:
    """Return a Python number in the type it meets: `pl.add(x, 1)` adds an fp16 one to an fp16 tile.

    The elements it meets have to hold it, unless its op decides what other numbers mean. A scalar it meets takes it
    where it can; it is a number of its own where not.
    """
    own = literal_type(value)
    if isinstance(value, TypedNumber):
        return constant(value, own)  # pyright: ignore[reportUnknownArgumentType]
    met = _met(bound) if own != BOOL and _meets(spec, parameter) else None
    if met is not None and parameter.keeps_bits:
        value = _unsigned(value, met.dtype)
    if met is not None and parameter.unheld and objection(value, met.dtype):
        return constant(value, FP64) if isinstance(value, float) else ConstInt(value, INT64)
    if isinstance(met, ScalarType) and (own.is_float() > met.dtype.is_float() or _outreaches(value, met.dtype)):
        return constant(value)
    return constant(value, own if met is None else met.dtype)


def _unsigned(value: float, dtype: DataType) -> float:
    """Return a negative integer as the unsigned one with the same bits, where elements have no sign."""
    if isinstance(value, int) and dtype.is_unsigned_int() and -(1 << (dtype.bits - 1)) <= value < 0:
        return value + (1 << dtype.bits)
    return value


def _meets(spec: OpSpec, parameter: Parameter) -> bool:
    """Return whether a number is data like the op's other operands; counts and positions are not."""
    return parameter.role in (Role.NUMBER, Role.EITHER) or spec.kinds == (Kind.SCALAR,)


def _outreaches(value: float, dtype: DataType) -> bool:
    return dtype.is_int() and not dtype.limits[0] <= value <= dtype.limits[1]


def _met(bound: Bound) -> ShapedType | ArrayType | ScalarType | None:
    """Return the type that numbers among `bound` take: of new elements, of the first tensor, tile or array, or scalar.

    A scalar of the running program goes before one that is known. A `mask` picks elements and is none of them.
    """
    made = bound.get("dtype")
    if isinstance(made, DataType):
        return TensorType((), made, ())
    data = [value for name, value in bound.items() if name != "mask" and isinstance(value, Expr)]
    types = [value.type for value in sorted(data, key=lambda value: isinstance(value, Const))]
    shaped = [t for t in types if isinstance(t, (TensorType, TileType, ArrayType)) and _counts(t.dtype)]
    return next(iter([*shaped, *[t for t in types if isinstance(t, ScalarType) and _counts(t.dtype)]]), None)


def _counts(dtype: DataType) -> bool:
    return dtype.family not in (Family.BOOL, Family.HANDLE)
