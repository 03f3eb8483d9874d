"""Structs and buffers: numbers that a function keeps under names or by index, each in a local array of its own."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.errors import OperandError
from tilewright.pto.declarations import Path, StructType
from tilewright.pto.module import Value
from tilewright.pto.traced.arguments import Argument, Arguments, listed, scalar_type
from tilewright.pto.traced.ops import emit, handles
from tilewright.pto.traced.scalars import as_type, static_int
from tilewright.pto.traced.tracer import Tracer
from tilewright.pto.traced.values import describe, is_sequence
from tilewright.pto.types import Opaque, Scalar


@dataclass(frozen=True)
class Struct:
    """A struct of a body: the array of one element that holds each scalar."""

    type: StructType
    places: dict[Path, tuple[Value, Scalar]]


@handles("declare_struct")
def _declare(t: Tracer, given: Arguments) -> Struct:
    argument = given.bind(t, "type")["type"]
    if not isinstance(argument.value, StructType):
        help = 'pto.struct_type(("count", pto.i32), ("total", pto.f32))'
        raise t.error(OperandError, argument.node, f"{describe(argument.value)} is no type of a struct", help=help)
    leaves = argument.value.leaves()
    return Struct(argument.value, {path: (_array(t, given, type_, (1,)), type_) for path, type_ in leaves})


def _array(t: Tracer, given: Arguments, type_: Scalar, shape: tuple[int, ...]) -> Value:
    extents = "".join(f"{extent}x" for extent in shape)
    array = Opaque(f"!pto.local_array<{extents}{type_}>")
    return t.writer.value("pto.declare_local_array", (), array, t.span(given.node))


def _place(t: Tracer, bound: dict[str, Argument]) -> tuple[Value, Scalar]:
    """Return where a path leads."""
    struct, path = bound["struct"], bound["path"]
    if not isinstance(struct.value, Struct):
        message = f"{describe(struct.value)} is no struct"
        raise t.error(OperandError, struct.node, message, help="make one with pto.declare_struct")
    parts = tuple(path.value) if is_sequence(path.value) else (path.value,)
    if isinstance(path.value, str):
        parts = tuple(path.value.split("."))
    if parts not in struct.value.places:
        known = ", ".join(".".join(map(str, each)) for each in struct.value.places)
        raise t.error(OperandError, path.node, f"this struct has no {path.value!r}", help=f"it has {known}")
    return struct.value.places[parts]


@handles("struct_get", "struct_set")
def _access(t: Tracer, given: Arguments) -> Value | None:
    """Read or write a scalar, which has exactly the type of its field."""
    is_read = given.word == "struct_get"
    bound = given.bind(t, "struct", "path", *(() if is_read else ("value",)))
    array, type_ = _place(t, bound)
    values = [] if is_read else [as_type(t, bound["value"].value, type_, bound["value"].node)]
    args = [Argument(each, given.node) for each in (array, 0, *values)]
    return emit(
        t, "pto.local_array_get" if is_read else "pto.local_array_set", Arguments(given.name, given.node, args=args)
    )


@handles("alloc_buffer")
def _buffer(t: Tracer, given: Arguments) -> Value:
    """Return a local array, which `pto.local_array_get(buffer, i)` and `pto.local_array_set(buffer, i, value)` know."""
    bound = given.bind(t, "shape", "dtype")
    shape = tuple(static_int(t, part.value, part.node, "the size of a buffer") for part in listed(bound["shape"]))
    return _array(t, given, scalar_type(t, bound["dtype"]), shape)
