"""The calling convention: values as words, and rooms for results.

A scalar is one word; a tensor an address, its shape, its strides and its valid extents; a tile an address and its valid
extents, its elements packed; an array an address. Between functions, extents that a type knows are not passed. A
function writes each result into a room its caller gives it: the words of a scalar or tensor, the elements of an array,
the valid extents of a tile with its elements 64 bytes after.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from tilewright.backends.cpu.compute.convert import as_scalar
from tilewright.backends.cpu.compute.copies import copy, packed
from tilewright.backends.cpu.compute.traced import Lanes
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.llvm_types import compute_type
from tilewright.backends.cpu.emit.memory import room_of
from tilewright.backends.cpu.emit.signature import Emitted
from tilewright.backends.cpu.emit.unit import OWN_SIZE
from tilewright.backends.cpu.emit.values import Array, Binding, Place, Scalar, Tensor, Tile, contiguous
from tilewright.core.types import ArrayType, Extent, ScalarType, TensorType, TileType, Type
from tilewright.errors import UnsupportedFeatureError
from tilewright.native.llvm import I64, PTR, Builder, Value, i64

HEAD = 64
"""Bytes in front of a tile's elements in its room."""


def entry_word_types(type_: Type) -> list[str]:
    """Return the types of the words in which a value passes between Python and an entry."""
    match type_:
        case ScalarType():
            return [compute_type(type_.dtype)]
        case TensorType():
            return [PTR, *[I64] * (2 * len(type_.shape))]
        case _:
            raise UnsupportedFeatureError(f"a program cannot take or return {type_}")


def word_types(type_: Type) -> list[str]:
    """Return the types of the words in which a value passes between functions."""
    match type_:
        case ScalarType():
            return [compute_type(type_.dtype)]
        case TensorType():
            return [PTR, *[I64] * (_unknown(type_.shape) + len(type_.shape) + _unknown(_live(type_)))]
        case TileType():
            return [PTR, *[I64] * _unknown(type_.valid)]
        case ArrayType():
            return [PTR]
        case _:
            raise UnsupportedFeatureError(f"passing {type_} has no native code yet")


def _unknown(extents: Sequence[Extent]) -> int:
    """Return how many extents have to be passed."""
    return sum(not isinstance(extent, int) for extent in extents)


def _live(type_: TensorType) -> Sequence[Extent]:
    """Return the valid extents of a tensor that its shape does not tell."""
    return () if type_.valid == type_.shape and None not in type_.shape else type_.valid


def _passed(extents: Sequence[Extent], values: Sequence[Value]) -> list[Value]:
    """Return the values of the extents that have to be passed."""
    return [value for extent, value in zip(extents, values, strict=False) if not isinstance(extent, int)]


def tensor_words(type_: TensorType, tensor: Tensor) -> list[Value]:
    """Return a tensor as the words of a parameter."""
    shape, valid = _passed(type_.shape, tensor.shape), _passed(_live(type_), tensor.valid)
    return [tensor.pointer, *shape, *tensor.strides, *valid]


def words_of(e: FunctionEmitter, binding: Any) -> list[Value]:
    """Return a value as words."""
    if isinstance(binding, Scalar):
        return [binding.value]
    if isinstance(binding, Tensor):
        return [binding.pointer, *binding.shape, *binding.strides, *binding.valid]
    if isinstance(binding, Array):
        return [binding.pointer]
    if isinstance(binding, tuple):
        return [word for element in cast("tuple[Any, ...]", binding) for word in words_of(e, element)]
    return [e.stored(binding).pointer, *binding.valid]


def argument_words(e: FunctionEmitter, binding: Any, type_: Type) -> list[Value]:
    """Return an argument as the words of its parameter."""
    if isinstance(binding, Scalar) and isinstance(type_, ScalarType):
        return [as_scalar(Lanes(e.b, binding.value, binding.dtype), type_.dtype)]
    if isinstance(binding, Tensor) and isinstance(type_, TensorType):
        return tensor_words(type_, binding)
    if isinstance(binding, Tile) and isinstance(type_, TileType):
        return [e.stored(packed(e, binding)).pointer, *_passed(type_.valid, binding.valid)]
    return words_of(e, binding)


def parameter(type_: Type, words: Iterator[Value], *, step: int = 1) -> Binding:
    """Return the value that a parameter's words stand for; what its type knows is constant.

    `step` is the last stride of a tensor, zero where only its words tell.
    """
    match type_:
        case ScalarType():
            return Scalar(next(words), type_.dtype)
        case TensorType():
            pointer = next(words)
            shape = _filled(type_.shape, words)
            strides = [next(words) for _ in shape]
            if strides and step:
                strides[-1] = i64(step)
            valid = _filled(_live(type_), words) or shape
            return Tensor(pointer, shape, tuple(strides), valid, type_.dtype, object())
        case TileType():
            pointer = next(words)
            return Tile(type_, _filled(type_.valid, words), Place(pointer, contiguous(type_.shape)))
        case ArrayType():
            return Array(type_, next(words))
        case _:
            raise UnsupportedFeatureError(f"passing {type_} has no native code yet")


def _filled(extents: Sequence[Extent], words: Iterator[Value]) -> tuple[Value, ...]:
    """Return extents, those that are passed taken from the words."""
    return tuple(i64(extent) if isinstance(extent, int) else next(words) for extent in extents)


def from_outside(type_: Type, words: Iterator[Value]) -> Scalar | Tensor:
    """Return the value that an entry's words stand for; all of a tensor is valid."""
    if isinstance(type_, ScalarType):
        return Scalar(next(words), type_.dtype)
    assert isinstance(type_, TensorType)
    pointer = next(words)
    shape, strides = (tuple(next(words) for _ in type_.shape) for _ in range(2))
    return Tensor(pointer, shape, strides, shape, type_.dtype, object())


def to_outside(value: Scalar | Tensor) -> list[Value]:
    """Return a value as an entry's words."""
    return [value.value] if isinstance(value, Scalar) else [value.pointer, *value.shape, *value.strides]


def captured(binding: Any, words: Iterator[Value]) -> Binding:
    """Return a value in the task that reads its words."""
    if isinstance(binding, Scalar):
        return Scalar(next(words), binding.dtype)
    if isinstance(binding, Tensor):
        pointer = next(words)
        shape, strides, valid = (tuple(next(words) for _ in binding.shape) for _ in range(3))
        return Tensor(pointer, shape, strides, valid, binding.dtype, binding.root)
    if isinstance(binding, Array):
        return Array(binding.type, next(words), binding.owners)
    if isinstance(binding, tuple):
        return tuple(captured(element, words) for element in cast("tuple[Any, ...]", binding))
    assert isinstance(binding, Tile) and binding.place is not None
    place = Place(next(words), binding.place.strides)
    return Tile(binding.type, tuple(next(words) for _ in binding.valid), place, owners=binding.owners)


def room_bytes(type_: Type) -> int:
    """Return how large the room of a result is."""
    match type_:
        case TileType():
            return HEAD + room_of(type_)
        case ArrayType():
            from tilewright.backends.cpu.host.arrays import array_bytes  # which few programs have

            return array_bytes(type_)
        case _:
            return 8 * len(word_types(type_))


def leave_result(e: FunctionEmitter, type_: Type, value: Any, room: Value) -> None:
    """Emit the writing of a result into its room."""
    if isinstance(value, Tile):
        target = Tile(value.type, value.valid, Place(e.b.offset(room, i64(HEAD), "i8"), contiguous(value.type.shape)))
        copy(e, value, target)
        write_words(e.b, room, value.valid)
    elif isinstance(value, Array):
        from tilewright.backends.cpu.host.arrays import copy_array

        copy_array(e, value, Array(value.type, room))
    else:
        write_words(e.b, room, argument_words(e, value, type_))


def write_words(b: Builder, room: Value, words: Sequence[Value], at: int = 0) -> None:
    """Emit stores of words one after the other."""
    for k, word in enumerate(words, at):
        b.store(word, b.offset(room, i64(k), I64), 8)


def read_words(b: Builder, room: Value, types: Sequence[str]) -> list[Value]:
    """Emit loads of words one after the other."""
    return [b.load(type_, b.offset(room, i64(k), I64), 8) for k, type_ in enumerate(types)]


def take_result(e: FunctionEmitter, type_: Type, room: Value, *, is_turned: bool) -> Binding:
    """Return what a call has left in a room."""
    if isinstance(type_, TileType):
        words = read_words(e.b, room, [I64] * len(type_.shape))
        return parameter(type_, iter([e.b.offset(room, i64(HEAD), "i8"), *_passed(type_.valid, words)]))
    if isinstance(type_, ArrayType):
        return Array(type_, room)
    return parameter(type_, iter(read_words(e.b, room, word_types(type_))), step=0 if is_turned else 1)


def invoke(e: FunctionEmitter, callee: Emitted, block: Value, count: Value, args: Sequence[Value]) -> None:
    """Emit a call whose arena is what follows the caller's own; one that fails may have given nothing."""
    e.arena.callees = max(e.arena.callees, callee.arena)
    arena = e.b.offset(e.arena.base, Value(I64, OWN_SIZE), "i8")
    e.b.invoke(callee.name, e.context, arena, block, count, *args)
    e.leave_after_an_error()
