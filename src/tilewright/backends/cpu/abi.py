"""The calling convention: values as words, and rooms for results.

A scalar is one word; a tensor an address, its shape, its strides and its valid extents; a tile an address and its valid
extents, its elements packed; an array an address. A function writes each result into a room its caller gives it: the
words of a scalar or tensor, the elements of an array, the valid extents of a tile with its elements 64 bytes after.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

from tilewright.backends.cpu.arrays import array_bytes, copy_array
from tilewright.backends.cpu.convert import as_element
from tilewright.backends.cpu.copies import copy, packed
from tilewright.backends.cpu.emit import FunctionEmitter, room_of
from tilewright.backends.cpu.llvm import I64, PTR, Builder, Value, i64
from tilewright.backends.cpu.traced import Lanes, compute_type
from tilewright.backends.cpu.values import Array, Binding, Place, Scalar, Tensor, Tile, contiguous, static
from tilewright.core.types import ArrayType, ScalarType, TensorType, TileType, Type
from tilewright.errors import UnsupportedFeatureError

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
            return [PTR, *[I64] * (3 * len(type_.shape))]
        case TileType():
            return [PTR, *[I64] * len(type_.shape)]
        case ArrayType():
            return [PTR]
        case _:
            raise UnsupportedFeatureError(f"passing {type_} has no native code yet")


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
        return [as_element(Lanes(e.b, binding.value, binding.dtype), type_.dtype).value]
    return words_of(e, packed(e, binding) if isinstance(binding, Tile) else binding)


def parameter(type_: Type, words: Iterator[Value], *, is_turned: bool = False) -> Binding:
    """Return the value that a parameter's words stand for; what its type knows is constant."""
    match type_:
        case ScalarType():
            return Scalar(next(words), type_.dtype)
        case TensorType():
            pointer, rank = next(words), len(type_.shape)
            shape, strides, valid = ([next(words) for _ in range(rank)] for _ in range(3))
            if rank and not is_turned:
                strides[-1] = i64(1)
            known, live = _known(type_.shape, shape), _known(type_.valid, valid)
            live = known if type_.valid == type_.shape and None not in type_.shape else live
            return Tensor(pointer, known, tuple(strides), live, type_.dtype, object())
        case TileType():
            pointer = next(words)
            valid = _known(type_.valid, [next(words) for _ in type_.shape])
            return Tile(type_, valid, Place(pointer, contiguous(type_.shape)))
        case ArrayType():
            return Array(type_, next(words))
        case _:
            raise UnsupportedFeatureError(f"passing {type_} has no native code yet")


def _known(extents: Sequence[Any], words: Sequence[Value]) -> tuple[Value, ...]:
    return tuple(i64(e) if isinstance(e, int) else word for e, word in zip(extents, words, strict=True))


def captured(binding: Any, words: Iterator[Value]) -> Binding:
    """Return a value in the task that reads its words; what was constant stays so."""
    if isinstance(binding, Scalar):
        return Scalar(next(words), binding.dtype)
    if isinstance(binding, Tensor):
        pointer = next(words)
        shape, strides, valid = (_kept(known, words) for known in (binding.shape, binding.strides, binding.valid))
        return Tensor(pointer, shape, strides, valid, binding.dtype, binding.root)
    if isinstance(binding, Array):
        return Array(binding.type, next(words), binding.owners)
    if isinstance(binding, tuple):
        return tuple(captured(element, words) for element in cast("tuple[Any, ...]", binding))
    assert isinstance(binding, Tile) and binding.place is not None
    place = Place(next(words), binding.place.strides)
    return Tile(binding.type, _kept(binding.valid, words), place, owners=binding.owners)


def _kept(known: Sequence[Value], words: Iterator[Value]) -> tuple[Value, ...]:
    return tuple(number if static(number) is not None else word for number, word in zip(known, words, strict=False))


def room_bytes(type_: Type) -> int:
    """Return how large the room of a result is."""
    match type_:
        case TileType():
            return HEAD + room_of(type_)
        case ArrayType():
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
        return parameter(type_, iter([e.b.offset(room, i64(HEAD), "i8"), *words]))
    if isinstance(type_, ArrayType):
        return Array(type_, room)
    return parameter(type_, iter(read_words(e.b, room, word_types(type_))), is_turned=is_turned)
