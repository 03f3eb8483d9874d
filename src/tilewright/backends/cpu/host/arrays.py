"""Arrays: a few numbers in the arena; changing one gives a new array."""

from __future__ import annotations

from tilewright.backends.cpu.compute.convert import as_element
from tilewright.backends.cpu.compute.traced import Lanes, from_memory, to_memory
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.llvm_types import memory_type
from tilewright.backends.cpu.emit.stops import Exact
from tilewright.backends.cpu.emit.values import Array, Scalar
from tilewright.core.expr import Call
from tilewright.core.types import ArrayType
from tilewright.native.llvm import I1, I64, PTR, Value, i64


def array_bytes(type_: ArrayType) -> int:
    """Return how many bytes an array takes in memory."""
    return type_.extent * _element_bytes(type_)


def _element_bytes(type_: ArrayType) -> int:
    return int(memory_type(type_.dtype)[1:]) // 8


def fresh_array(e: FunctionEmitter, type_: ArrayType) -> Array:
    """Return an array with a place of its own and nothing in it."""
    part = e.arena.take(array_bytes(type_))
    array = Array(type_, e.address(part[0]))
    e.own(array, part)
    return array


def copy_array(e: FunctionEmitter, source: Array, target: Array) -> None:
    """Emit a copy of an array."""
    name = e.b.module.intrinsic("llvm.memmove.p0.p0.i64", "void", PTR, PTR, I64, "i1")
    e.b.invoke(name, target.pointer, source.pointer, i64(array_bytes(source.type)), Value(I1, "false"))


def clear_array(e: FunctionEmitter, array: Array) -> None:
    """Emit zeros for every element."""
    name = e.b.module.intrinsic("llvm.memset.p0.i64", "void", PTR, "i8", I64, "i1")
    e.b.invoke(name, array.pointer, Value("i8", "0"), i64(array_bytes(array.type)), Value(I1, "false"))


@lowers("array.create")
def _create(e: FunctionEmitter, call: Call, bound: Bound) -> Array:
    assert isinstance(call.type, ArrayType)
    array = fresh_array(e, call.type)
    clear_array(e, array)
    return array


@lowers("array.get_element")
def _get_element(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    array: Array = bound["array"]
    raw = e.b.load(memory_type(array.type.dtype), _address(e, call, array, bound["index"]), _element_bytes(array.type))
    return Scalar(from_memory(e.b, raw, array.type.dtype).value, array.type.dtype)


@lowers("array.update_element")
def _update_element(e: FunctionEmitter, call: Call, bound: Bound) -> Array:
    source, given = bound["array"], bound["value"]
    changed = fresh_array(e, source.type)
    copy_array(e, source, changed)
    lane = as_element(Lanes(e.b, given.value, given.dtype), source.type.dtype)
    e.b.store(to_memory(lane), _address(e, call, changed, bound["index"]), _element_bytes(source.type))
    return changed


def _address(e: FunctionEmitter, call: Call, array: Array, index: Scalar) -> Value:
    """Return where an element lies; an index outside the array is an error and means zero."""
    at, extent = e.index(index), i64(array.type.extent)
    if e.checked:
        outside, given = e.b.compare("icmp uge", at, extent), at
        exact = Exact(f"index {{0}} lies outside 0 to {array.type.extent}", lambda: (given,))
        e.fail(outside, f"an index lies outside 0 to {array.type.extent}", call, exact)
        at = e.b.select(outside, i64(0), at)
    return e.b.offset(array.pointer, at, memory_type(array.type.dtype))
