"""Parameters: what an argument is and what an annotation says, brought together."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from tilewright.core.expr import Const, Expr, Symbol, literal_type
from tilewright.core.numbers import typed
from tilewright.core.types import Extent, ScalarType, TensorType, TileType, Type, show_shape, unplaced
from tilewright.dtypes import BOOL, UINT8, DataType, objection, show_number
from tilewright.errors import DTypeMismatchError, KernelError, OperandError, ShapeMismatchError
from tilewright.frontend.frames import Frame
from tilewright.frontend.functions import Parameter
from tilewright.frontend.kernels import Declared, Kernel, KernelParameter
from tilewright.frontend.signature import Dim, Known
from tilewright.frontend.translator import Translator
from tilewright.frontend.walk.walker import Value
from tilewright.records import record
from tilewright.source import UNKNOWN, Span

WINDOWS = "a host function makes windows: w = pld.window(pld.alloc_window_buffer(size), shape, dtype=...)"


@record
class Spec:
    """What a specialization knows about one argument: its type as a value of the IR, or the value itself."""

    type: Type | None = None
    known: Known | None = None
    alike: str | None = None
    """The argument it is shaped like."""


@record
class Site:
    """Where a kernel is called, and where each argument was written."""

    span: Span = UNKNOWN
    places: Mapping[str, Span] = field(default_factory=dict[str, Span])


def argument_spec(t: Translator, kernel: Kernel, name: str, value: Value, node: ast.expr | None) -> Spec:
    """Return what a call knows about one argument."""
    if isinstance(value, Const):
        value = value.value
    if isinstance(value, Expr):
        return Spec(unplaced(value.type))
    if any(isinstance(part, Expr) for part in _parts(value)):
        spans = [t.span(node)] if node is not None else []
        message = f"`{name}` of `{kernel.name}` is a tuple of values the program computes"
        raise OperandError(message, spans=spans, help="pass them one by one, or make the helper @pl.jit.inline")
    return Spec(known=Known(value))


def _parts(value: Value) -> Iterator[Value]:
    if isinstance(value, (tuple, list)):
        for part in value:  # pyright: ignore[reportUnknownVariableType]
            yield from _parts(part)
    else:
        yield value


def parameters(
    kernel: Kernel, specs: Mapping[str, Spec], declared: Sequence[Declared], frame: Frame, taken: list[int], site: Site
) -> Iterator[Parameter]:
    """Yield the parameters of the function a kernel becomes; values that are no numbers are not among them."""
    taken.clear()
    frame.names, frame.open = dict(_named_extents(kernel, specs, declared, frame)), {}
    types = _types(kernel, specs, declared, frame, site)
    for position, (parameter, says) in enumerate(zip(kernel.parameters, declared, strict=True)):
        type_ = types[parameter.name]
        if type_ is not None:
            taken.append(position)
            bounds = _bounds(specs[parameter.name], says, type_)
            yield Parameter(parameter.name, type_, says.direction, parameter.span, bounds)


def _types(
    kernel: Kernel, specs: Mapping[str, Spec], declared: Sequence[Declared], frame: Frame, site: Site
) -> dict[str, Type | None]:
    """Return each parameter's type; those that are like others come after these."""
    found: dict[str, Type | None] = {}
    places = enumerate(zip(kernel.parameters, declared, strict=True))
    for position, (parameter, says) in sorted(places, key=lambda place: specs[place[1][0].name].alike is not None):
        spec = specs[parameter.name]
        try:
            like = found[spec.alike] if spec.alike is not None else None
            type_ = like or _parameter_type(parameter.name, position, spec, says, frame)
            found[parameter.name] = _renamed(type_, position, frame)
            for axis, extent in enumerate(says.type.shape if isinstance(says.type, TensorType) else ()):
                if isinstance(extent, Symbol):
                    frame.state((position, axis), extent.name, parameter.span)
        except KernelError as error:
            _locate(error, kernel, parameter, site)
            raise
    return found


def _named_extents(
    kernel: Kernel, specs: Mapping[str, Spec], declared: Sequence[Declared], frame: Frame
) -> Iterator[tuple[Extent, str]]:
    """Yield extents of arguments as the caller has them, with the names that the kernel gives them."""
    for position, (parameter, says) in enumerate(zip(kernel.parameters, declared, strict=True)):
        given, stated = specs[parameter.name].type, says.type
        for axis, have in enumerate(given.shape if isinstance(given, TensorType) else ()):
            want = stated.shape[axis : axis + 1] if isinstance(stated, TensorType) else ()
            dynamic = frame.dynamic.get((position, axis))
            if dynamic is not None:
                yield have, dynamic.symbol
            elif want and isinstance(want[0], Symbol):
                yield have, want[0].name


def _locate(error: KernelError, kernel: Kernel, parameter: KernelParameter, site: Site) -> None:
    """Show a mistake at the argument, which is the caller's, or at the parameter when nobody wrote one."""
    place = site.places.get(parameter.name)
    if place is None:
        error.locate([parameter.span])
        error.function = kernel.name
    else:
        error.locate([place], [f"`{parameter.name}` is declared at {parameter.span}"])


def _renamed(type_: Type | None, position: int, frame: Frame) -> Type | None:
    """Return the type of an output like an input, with axes that have names of their own."""
    if not isinstance(type_, TensorType):
        return type_
    own = {axis: dynamic for (at, axis), dynamic in frame.dynamic.items() if at == position}
    shape = tuple(Symbol(own[axis].symbol) if axis in own else extent for axis, extent in enumerate(type_.shape))
    return type_ if shape == type_.shape else TensorType(shape, type_.dtype, shape, type_.layout)


def _bounds(spec: Spec, says: Declared, type_: Type) -> tuple[int, int] | None:
    """Return how far a number reaches: a specialized one has one value, another what its annotation promises."""
    if not isinstance(type_, ScalarType) or not type_.dtype.is_int() or type_.dtype == BOOL:
        return None
    return says.bounds if spec.known is None else (int(spec.known.value), int(spec.known.value))


def _parameter_type(name: str, position: int, spec: Spec, says: Declared, frame: Frame) -> Type | None:
    """Return a parameter's type: what the argument is, held against what the annotation says; None for no parameter."""
    if spec.known is not None:
        return known_type(name, spec.known.value, says)
    if isinstance(spec.type, TensorType):
        if says.type is not None and not isinstance(says.type, TensorType):
            help = "pass a number" if isinstance(says.type, ScalarType) else "kernels hand tensors and numbers on"
            raise OperandError(f"`{name}` is {says.type}, got a tensor", help=help)
        return tensor_type(name, position, spec.type, says.type, frame)
    if isinstance(spec.type, ScalarType) and says.is_tensor:
        raise OperandError(f"`{name}` is a tensor, got {spec.type}", help="pass a tensor")
    if isinstance(spec.type, ScalarType) and isinstance(says.type, ScalarType):
        from tilewright.frontend.invocations import fitting  # few kernels annotate numbers

        if problem := fitting(says.type, spec.type):
            raise DTypeMismatchError(f"`{name}` is {says.type}, got {spec.type}: {problem}", help="convert it first")
        return says.type
    if isinstance(spec.type, TileType) and says.is_tensor:
        raise OperandError(f"`{name}` is a tensor, got a tile", help="store it first, or make the helper inline")
    return spec.type


def known_type(name: str, value: Any, says: Declared) -> Type | None:
    """Return the type of a value that becomes part of the code, None for one that is no number."""
    if value is None:
        if (says.is_tensor or says.type is not None) and not says.is_optional:
            raise OperandError(f"`{name}` is not optional, got None", help="pass it, or annotate it `... | None`")
        return None
    if says.is_tensor:
        raise OperandError(f"`{name}` is a tensor, got {value!r}", help="pass a tensor")
    if not isinstance(says.type, ScalarType):
        return ScalarType(literal_type(value)) if isinstance(value, (bool, int, float)) else None
    if not isinstance(value, (bool, int, float)):
        raise OperandError(f"`{name}` is {says.type}, got {value!r}", help="pass a number")
    if not is_number_of(value, says.type.dtype):
        help = objection(value, says.type.dtype) or "convert it first"
        raise DTypeMismatchError(f"`{name}` is {says.type}, which cannot be {show_number(value)}", help=help)
    return says.type


def is_number_of(value: int | float | bool, dtype: DataType) -> bool:
    """Return whether a Python number can be a scalar parameter: bools and floats are no integers."""
    if dtype == BOOL:
        return not isinstance(value, float)
    is_kind = not isinstance(value, bool) and not (isinstance(value, float) and dtype.is_int())
    return is_kind and not objection(value, dtype)


def known_value(value: Any, says: Declared) -> Any:
    """Return a value as its annotation has it: a number of the type that it states, or whether it is true."""
    if isinstance(says.type, ScalarType) and isinstance(value, (int, float)):
        return typed(value, says.type.dtype)
    return value


def tensor_type(name: str, position: int, given: TensorType, stated: TensorType | None, frame: Frame) -> TensorType:
    """Return a tensor parameter's type; extents the argument decides remember that they do."""
    if stated is not None and stated.is_window and given.is_window and stated.dtype != given.dtype:
        raise _other_window(name, given, stated)
    if stated is not None and len(stated.shape) != len(given.shape):
        raise ShapeMismatchError(f"`{name}` has {len(stated.shape)} axes, got {len(given.shape)}: {given}")
    if stated is not None and stated.dtype != given.dtype:
        raise DTypeMismatchError(f"`{name}` is {stated.dtype}, got {given.dtype}", help="convert it with pl.cast")
    shape = tuple(
        _extent(name, position, axis, have, None if stated is None else (stated.shape[axis],), frame)
        for axis, have in enumerate(given.shape)
    )
    if stated is not None and stated.is_window and not given.is_window:
        raise OperandError(f"`{name}` must be a DistributedTensor (window-bound), got {given}", help=WINDOWS)
    layout, is_window = (given.layout, given.is_window) if stated is None else (stated.layout, stated.is_window)
    return TensorType(shape, given.dtype, shape, layout, is_window)


def _other_window(name: str, given: TensorType, stated: TensorType) -> DTypeMismatchError:
    """Return what is wrong with a window of another element type, which bytes alone are: a buffer."""
    is_buffer = given.dtype == UINT8 and len(given.shape) == 1
    got = "a window buffer, or one of bytes" if is_buffer else str(given.dtype)
    help = f"pld.window(buffer, {show_shape(stated.shape)}, dtype=pl.{stated.dtype.symbol}) is one"
    return DTypeMismatchError(f"`{name}` is a window of {stated.dtype}, got {got}", help=help)


def _extent(name: str, position: int, axis: int, have: Extent, stated: tuple[Extent] | None, frame: Frame) -> Extent:
    dynamic = frame.dynamic.get((position, axis))
    if dynamic is not None:
        return Symbol(dynamic.symbol)
    want = stated[0] if stated is not None else have
    if isinstance(want, int):
        if isinstance(have, int) and have != want:
            raise ShapeMismatchError(f"axis {axis} of `{name}` is {want}, got {have}", help="pass a window of it")
        return Dim.of(want, frame, position, axis)
    return want if stated is not None else frame.opened((position, axis), name, have)
