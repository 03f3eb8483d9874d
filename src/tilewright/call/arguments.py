"""Arguments: what a call is given, checked whole before anything runs.

Every mistake is a TypeError (too many or too few, the wrong kind of thing, another element type) or a ValueError
(another shape, the wrong place, memory that cannot be written) that names the parameter, and nothing has been written.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from tilewright.call.buffers import Buffer, NumpyBuffer, buffer_of, region_of
from tilewright.call.overlap import share_memory
from tilewright.call.packed import is_packed, pack, unpacked
from tilewright.call.placement import MISSING, placed
from tilewright.call.torch_state import INSTEAD, check_unrecorded, is_traced
from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Call, Const, Symbol, Var
from tilewright.core.program import Function
from tilewright.core.region import Region, overlaps_itself
from tilewright.core.types import Extent, ScalarType, Shape, TensorType, show_shape
from tilewright.dtypes import BOOL, INDEX, DataType, objection, round_scalar, show_number
from tilewright.records import record

Number: TypeAlias = "int | float | bool"


@record
class Arguments:
    """One value for each parameter, as the caller knows it and as the program takes it: a region or a number."""

    given: list[Any]
    values: list[Any]
    buffer: Buffer
    """How new arrays are made: like the first one given."""

    def finish(self, directions: Sequence[ParamDirection]) -> None:
        """Bring what was written to copies to the caller's tensors."""
        for given, value, direction in zip(self.given, self.values, directions, strict=True):
            if direction is not ParamDirection.In and is_packed(given):
                pack(value.data, given)


def bind(
    entry: Function,
    directions: Sequence[ParamDirection],
    args: Sequence[Any],
    named: Mapping[str, Any] | None = None,
    specialized: Mapping[str, Number] | None = None,
) -> Arguments:
    """Return the arguments of a call of `entry`, which writes as `directions` say; outputs left out are made.

    The code was made for the numbers in `specialized`: others are refused.
    """
    given = placed(entry, args, named or {})
    if is_traced() and any(buffer_of(value) is not None for value in given):
        raise ValueError(f"torch traces or transforms this call of `{entry.name}`, and cannot look into it: {INSTEAD}")
    check_unrecorded((param.name_hint, value) for param, value in zip(entry.params, given, strict=True))
    values = [_taken(param, value) for param, value in zip(entry.params, given, strict=True)]
    for name, number in (specialized or {}).items():
        _check_specialized(entry, values, name, number)
    extents = _extents(entry, values)
    for param, value in zip(entry.params, values, strict=True):
        if isinstance(value, Region):
            _check_shape(param, value, extents)
    for position, direction in enumerate(directions):
        if isinstance(values[position], Region):
            if direction is ParamDirection.In:
                values[position] = _protected(values[position])
            else:
                _check_written(entry.params, position, given[position], values)
    arrays = [v for v, param in zip(given, entry.params, strict=True) if isinstance(param.type, TensorType)]
    buffer = next((b for b in map(buffer_of, arrays) if b is not None), NumpyBuffer())
    for position, param in enumerate(entry.params):
        if given[position] is MISSING:
            given[position] = _made(param, buffer, extents)
            values[position] = _region(given[position], param.name_hint)
    return Arguments(given, values, buffer)


def _region(value: Any, name: str) -> Region:
    return region_of(value, name, unpacked if is_packed(value) else None)


def _taken(param: Var, value: Any) -> Any:
    """Return an argument as the program takes it, of the right kind, element type and rank."""
    if value is MISSING:
        return value
    if isinstance(param.type, ScalarType):
        return _number(param, param.type.dtype, value)
    assert isinstance(param.type, TensorType)
    region, name, rank = _region(value, param.name_hint), param.name_hint, len(param.type.shape)
    if region.data.dtype != param.type.dtype.numpy:
        raise _other_dtype(name, param.type.dtype, region)
    if region.data.ndim != rank:
        raise ValueError(f"`{name}` expects rank {rank}, got {region.data.ndim}")
    return region


def _other_dtype(name: str, wanted: DataType, region: Region) -> TypeError:
    try:
        return TypeError(f"`{name}` expects dtype {wanted}, got {region.dtype}")
    except TypeError as error:  # one that no tensor of the language has: it lists those that some have
        return TypeError(f"`{name}`: {error}")


def _number(param: Var, dtype: DataType, value: Any) -> Number:
    name = param.name_hint
    if isinstance(value, _Foreign):
        value = _plain(name, dtype, value)
    if buffer_of(value) is not None and getattr(value, "ndim", 1) > 0:
        raise TypeError(f"`{name}` is a scalar, got a tensor")
    try:
        value = value.item() if hasattr(value, "item") else value
    except (RuntimeError, TypeError, ValueError) as error:  # a torch tensor that holds no number, as on device meta
        raise TypeError(f"`{name}` is a scalar of {dtype}, got {type(value).__name__}: {error}") from error
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
        return ctypes.c_float
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
        if isinstance(value, Region) and isinstance(param.type, TensorType):
            for extent, have in zip(param.type.shape, value.data.shape, strict=True):
                if isinstance(extent, Symbol):
                    found.setdefault(extent.name, have)
    return found


def _check_shape(param: Var, region: Region, extents: dict[str, int]) -> None:
    assert isinstance(param.type, TensorType)
    wanted, declared = shape_of(param.type.shape, extents), show_shape(param.type.shape)
    if region.data.shape != wanted:
        meaning = "" if wanted == param.type.shape else f" = {list(wanted)}"
        raise ValueError(f"`{param.name_hint}` expects shape {declared}{meaning}, got {list(region.data.shape)}")


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
    if spec.interval is not None:  # exact, where numbers of the language wrap around
        exact, _ = spec.interval(*((value, value) for value in values))
        if not INDEX.limits[0] <= exact <= INDEX.limits[1]:
            raise ValueError(f"the extent {call} is {exact}, which is more than any memory holds")
    try:
        return spec.evaluate(call.type, **dict(zip((p.name for p in spec.operands), values, strict=True)))
    except ZeroDivisionError:
        raise ValueError(f"the extent {call} divides by zero") from None


def _protected(region: Region) -> Region:
    """Return a region that nobody writes to, not even what it holds already."""
    data: Any = region.data
    protected = data.view()
    protected.flags.writeable = False
    return Region(protected, region.valid)


def _check_written(params: Sequence[Var], position: int, given: Any, values: Sequence[Any]) -> None:
    """Raise when a tensor that is written cannot be, or when writing it would change another or itself."""
    name, written = params[position].name_hint, values[position].data
    buffer = buffer_of(given)
    objection = buffer.write_objection(given) if buffer is not None else ""
    if objection:
        raise ValueError(f"`{name}` {objection}")
    if overlaps_itself(written):
        raise ValueError(f"`{name}` is written, but several of its elements share memory: pass a tensor of its own")
    for other, (param, value) in enumerate(zip(params, values, strict=True)):
        if other != position and isinstance(value, Region) and share_memory(written, value.data):
            raise ValueError(
                f"`{name}` is written and shares memory with `{param.name_hint}`: pass arrays of their own"
            )


def _made(param: Var, buffer: Buffer, extents: dict[str, int]) -> Any:
    """Return a new output, zero-filled."""
    assert isinstance(param.type, TensorType)
    shape = shape_of(param.type.shape, extents)
    if any(extent < 0 for extent in shape):
        declared = show_shape(param.type.shape)
        raise ValueError(f"`{param.name_hint}` cannot have shape {declared} = {list(shape)}: an extent is negative")
    return buffer.zeros(shape, param.type.dtype)
