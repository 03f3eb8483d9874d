"""Binding: the arguments of a call, placed, described and checked whole before anything runs.

Every mistake is a TypeError (too many or too few, the wrong kind of thing, another element type) or a ValueError
(another shape, the wrong place, memory that cannot be written) that names the parameter, and nothing has been written.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from tilewright.backends.abi import Number
from tilewright.call.argument import CPU, Argument, share_memory
from tilewright.call.frameworks import NUMPY, TORCH, Framework, argument_of, check_readable, framework_of, is_tensor
from tilewright.call.packed import is_packed, memory, unpacked
from tilewright.call.placement import MISSING, placed
from tilewright.call.torch_state import INSTEAD, check_unrecorded, is_lazy, is_traced
from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Call, Const, Symbol, Var
from tilewright.core.extents import as_extent, symbols_in
from tilewright.core.program import Function
from tilewright.core.region import overlaps_itself
from tilewright.core.solving import GIVEN
from tilewright.core.types import Extent, ScalarType, Shape, TensorType, show_shape
from tilewright.dtypes import BOOL, FP64, INDEX, DataType, objection, round_scalar, show_number
from tilewright.records import record

Taken: TypeAlias = "Argument | Number"
"""An argument as a program takes it."""


@record
class Bound:
    """One value for each parameter of an entry, as the caller knows it and as the program takes it."""

    entry: Function
    directions: Sequence[ParamDirection]
    given: list[Any]
    values: list[Any]
    framework: Framework
    """How new arrays are made: like the first one given."""
    made: Sequence[int] = ()
    """The positions of outputs that were left out, and made."""

    def is_written(self, position: int) -> bool:
        """Return whether the program writes a parameter."""
        return self.directions[position] is not ParamDirection.In


def bind(
    entry: Function,
    directions: Sequence[ParamDirection],
    args: Sequence[Any],
    named: Mapping[str, Any] | None = None,
    specialized: Mapping[str, Number] | None = None,
) -> Bound:
    """Return the arguments of a call of `entry`, which writes as `directions` say; outputs left out are made.

    The code was made for the numbers in `specialized`: others are refused.
    """
    given = placed(entry, args, named or {})
    if is_traced() and any(map(is_tensor, given)):
        raise ValueError(f"torch traces or transforms this call of `{entry.name}`, and cannot look into it: {INSTEAD}")
    check_unrecorded((param.name_hint, value) for param, value in zip(entry.params, given, strict=True))
    return bind_described(entry, directions, given, {}, specialized)


def bind_described(
    entry: Function,
    directions: Sequence[ParamDirection],
    given: list[Any],
    described: Mapping[str, Argument],
    specialized: Mapping[str, Number] | None = None,
) -> Bound:
    """Return the arguments of a call that are placed already, and of which some are described."""
    values = [_lying(entry, param, value, described) for param, value in zip(entry.params, given, strict=True)]
    for position, (param, value, direction) in enumerate(zip(entry.params, given, directions, strict=True)):
        if direction is not ParamDirection.In and framework_of(value) is TORCH and is_lazy(value):
            value.data_ptr()  # which gives it memory of its own
            values[position] = _lying(entry, param, value, {})
    for name, number in (specialized or {}).items():
        _check_specialized(entry, values, name, number)
    extents = _extents(entry, values)
    for param, value in zip(entry.params, values, strict=True):
        if isinstance(value, Argument):
            _check_shape(param, value, extents)
    lying = [memory(g) if is_packed(g) else value for g, value in zip(given, values, strict=True)]
    for position, direction in enumerate(directions):
        if direction is not ParamDirection.In and isinstance(values[position], Argument):
            _check_written(entry.params, position, given[position], lying)
    arrays = [v for v, param in zip(given, entry.params, strict=True) if isinstance(param.type, TensorType)]
    framework = next((f for f in map(framework_of, arrays) if f is not None), NUMPY)
    device = next((value.device for value in values if isinstance(value, Argument)), CPU)
    made = [position for position, value in enumerate(given) if value is MISSING]
    for position in made:
        given[position] = _made(entry.params[position], framework, extents, device)
        values[position] = _argument(given[position], entry.params[position].name_hint)
    return Bound(entry, directions, given, values, framework, made)


def _argument(value: Any, name: str) -> Argument:
    """Return a tensor's memory; of a packed one, a copy with a byte for each element."""
    if not is_packed(value):
        return argument_of(value, name)
    check_readable(TORCH, value, name)
    return Argument.of_array(unpacked(value))


def _lying(entry: Function, param: Var, value: Any, described: Mapping[str, Argument]) -> Any:
    """Return an argument as the program takes it; a tensor on its side where the program was made for such ones."""
    taken = _taken(param, value, described)
    return taken.turned() if isinstance(taken, Argument) and param.name_hint in entry.turned else taken


def _taken(param: Var, value: Any, described: Mapping[str, Argument]) -> Any:
    """Return an argument as the program takes it, of the right kind, element type and rank."""
    if value is MISSING:
        return value
    if isinstance(param.type, ScalarType):
        return _number(param, param.type.dtype, value)
    assert isinstance(param.type, TensorType)
    name, rank = param.name_hint, len(param.type.shape)
    argument = described.get(name) or _argument(value, name)
    if argument.dtype.numpy_name != param.type.dtype.numpy_name:
        raise TypeError(f"`{name}` expects dtype {param.type.dtype}, got {argument.dtype}")
    if len(argument.shape) != rank:
        raise ValueError(f"`{name}` expects rank {rank}, got {len(argument.shape)}")
    return argument


def _number(param: Var, dtype: DataType, value: Any) -> Number:
    name = param.name_hint
    if isinstance(value, _Foreign):
        value = _plain(name, dtype, value)
    if is_tensor(value) and getattr(value, "ndim", 1) > 0:
        raise TypeError(f"`{name}` is a scalar, got a tensor")
    try:
        value = value.item() if hasattr(value, "item") else value
    except (RuntimeError, TypeError, ValueError) as error:  # a torch tensor that holds no number, as on device meta
        raise TypeError(f"`{name}` is a scalar of {dtype}, got {type(value).__name__}: {error}") from error
    if dtype == BOOL and isinstance(value, int):
        value = bool(value)
    if not isinstance(value, (bool, int, float)) or (isinstance(value, bool) != (dtype == BOOL)):
        raise TypeError(f"`{name}` is a scalar of {dtype}, got {type(value).__name__}")
    reason = "no float is an integer here" if dtype.is_int() and isinstance(value, float) else objection(value, dtype)
    if reason:
        raise TypeError(f"`{name}` is a scalar of {dtype}, which cannot hold {show_number(value)}: {reason}")
    if param.bounds is not None and not param.bounds[0] <= value <= param.bounds[1]:
        raise _out_of_bounds(name, *param.bounds, value)
    return round_scalar(value, dtype)


def _plain(name: str, dtype: DataType, value: Any) -> Number:
    """Return what a number of C holds; TypeError where it is of another type than the parameter."""
    wanted = _c_type(dtype)
    if type(value) is not wanted:
        raise TypeError(f"`{name}` is a scalar of {dtype}, which is {wanted.__name__} in C, got {type(value).__name__}")
    return value.value


def _c_type(dtype: DataType) -> type:
    """Return what ctypes calls an element type; numbers of half the precision come as whole ones."""
    if dtype == BOOL:
        return ctypes.c_bool
    if dtype.is_float():
        return ctypes.c_double if dtype == FP64 else ctypes.c_float
    return getattr(ctypes, f"c_{'' if dtype.is_signed_int() else 'u'}int{max(dtype.bits, 8)}")


_Foreign: type = ctypes.c_int.__mro__[1]  # what all the numbers of ctypes are


def _out_of_bounds(name: str, low: int, high: int, value: Number) -> ValueError:
    if low == high:  # what is left of a number that the kernel was compiled for
        return _other_number(name, low, value)
    return ValueError(f"`{name}` must lie within {low} to {high}, got {value}")


def _check_specialized(entry: Function, values: Sequence[Any], name: str, number: Number) -> None:
    for param, value in zip(entry.params, values, strict=True):
        if param.name_hint == name and isinstance(param.type, ScalarType):
            if repr(value) != repr(round_scalar(number, param.type.dtype)):  # NaN is itself, and -0.0 is not 0.0
                raise _other_number(name, number, value)


def _other_number(name: str, wanted: Number, got: Number) -> ValueError:
    return ValueError(
        f"`{name}` is {wanted} in this program, which was compiled for that value, got {got}: "
        f"call the kernel itself, or compile it for {got}"
    )


def _extents(entry: Function, values: Sequence[Any]) -> dict[str, int]:
    """Return the value of each symbol, from the first argument that carries it."""
    found: dict[str, int] = {}
    for param, value in zip(entry.params, values, strict=True):
        if isinstance(value, Argument) and isinstance(param.type, TensorType):
            for extent, have in zip(param.type.shape, value.shape, strict=True):
                if isinstance(extent, Symbol):
                    found.setdefault(extent.name, have)
    for name, told in entry.solutions.items():
        value = values[told.position]
        if isinstance(value, Argument) and symbols_in(as_extent(told.value)) <= {*found, GIVEN.name}:
            found[name] = _extent(told.value, {**found, GIVEN.name: value.shape[told.axis]})
    return found


def _check_shape(param: Var, argument: Argument, extents: dict[str, int]) -> None:
    assert isinstance(param.type, TensorType)
    wanted, declared = shape_of(param.type.shape, extents), show_shape(param.type.shape)
    if argument.shape != wanted:
        meaning = "" if wanted == param.type.shape else f" = {list(wanted)}"
        raise ValueError(f"`{param.name_hint}` expects shape {declared}{meaning}, got {list(argument.shape)}")


def shape_of(shape: Shape, extents: dict[str, int]) -> tuple[int, ...]:
    """Return a shape with its symbols replaced; ValueError when an input does not decide one."""
    return tuple(_extent(extent, extents) for extent in shape)


def _extent(extent: Extent, extents: dict[str, int]) -> int:
    if isinstance(extent, int):
        return extent
    if isinstance(extent, Symbol) and extent.name in extents:
        return extents[extent.name]
    if isinstance(extent, Const):
        return int(extent.value)
    if isinstance(extent, Call):
        return _computed(extent, [_extent(arg, extents) for arg in extent.args])
    if extent is None:
        raise ValueError("no argument tells an extent that is annotated None: write a number or a pl.dynamic name")
    raise ValueError(
        f"no input decides the extent {extent}: pass the output, or name {extent} in an input's annotation too"
    )


def _computed(call: Call, values: Sequence[int]) -> int:
    """Return what a formula gives for some extents; ValueError where the code would compute something else."""
    spec = call.op.spec
    exact = spec.interval(*((value, value) for value in values)) if spec.interval is not None else None
    if exact is not None and not INDEX.limits[0] <= exact[0] <= INDEX.limits[1]:  # where numbers here wrap around
        raise ValueError(f"the extent {call} is {exact[0]}, which is more than any memory holds")
    try:
        return spec.evaluate(call.type, **dict(zip((p.name for p in spec.operands), values, strict=True)))
    except ZeroDivisionError:
        raise ValueError(f"the extent {call} divides by zero") from None


def _check_written(params: Sequence[Var], position: int, given: Any, values: Sequence[Any]) -> None:
    """Raise when a tensor that is written cannot be, or when writing it would change another or itself.

    `values` are the arguments where they lie in the caller's memory.
    """
    name, written = params[position].name_hint, values[position]
    framework = framework_of(given)
    objection = framework.write_objection(written) if framework is not None else ""
    if objection:
        raise ValueError(f"`{name}` {objection}")
    if overlaps_itself(written.shape, written.strides, written.dtype.get_byte()):
        raise ValueError(f"`{name}` is written, but several of its elements share memory: pass a tensor of its own")
    for other, (param, value) in enumerate(zip(params, values, strict=True)):
        if other != position and isinstance(value, Argument) and share_memory(written, value):
            raise ValueError(
                f"`{name}` is written and shares memory with `{param.name_hint}`: pass arrays of their own"
            )


def _made(param: Var, framework: Framework, extents: dict[str, int], device: str) -> Any:
    """Return a new output, zero-filled, where the inputs are."""
    assert isinstance(param.type, TensorType)
    shape = shape_of(param.type.shape, extents)
    if any(extent < 0 for extent in shape):
        declared = show_shape(param.type.shape)
        raise ValueError(f"`{param.name_hint}` cannot have shape {declared} = {list(shape)}: an extent is negative")
    return framework.zeros(shape, param.type.dtype, device)
