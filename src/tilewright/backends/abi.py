"""The calling convention: how tensors, numbers and results become the words that every entry takes.

An entry is a host function `entry(words, context)`. A number is one word, floats as the bits of a float32, doubles as
their own; a tensor is its address, its extents and its strides in elements, of which the last is 1, or what the entry
was made for. Arguments come in the order of the parameters, and behind them lies room for the words of the results.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from tilewright.core.types import TensorType, Type
from tilewright.dtypes import BOOL, FP64, DataType

Number: TypeAlias = "int | float | bool"

MOST_STEP = 8
"""How far apart neighbours may lie for code to be made for it: they are picked out of all that lie between them."""


def tensor_word_count(rank: int) -> int:
    """Return how many words a tensor of so many axes is."""
    return 1 + 2 * rank


def word_count(*types: Type) -> int:
    """Return how many words values of some types are."""
    return sum(tensor_word_count(len(type_.shape)) if isinstance(type_, TensorType) else 1 for type_ in types)


def word_places(types: Iterable[Type]) -> list[int]:
    """Return where the words of each value start."""
    places = [0]
    for type_ in types:
        places.append(places[-1] + word_count(type_))
    return places[:-1]


def scalar_word(dtype: DataType, value: Number) -> int:
    """Return a number as the word that an entry takes."""
    if dtype == FP64:
        return struct.unpack("<q", struct.pack("<d", value))[0]
    if dtype.is_float():
        return struct.unpack("<i", struct.pack("<f", value))[0]
    return int(bool(value)) if dtype == BOOL else signed(int(value))


def signed(word: int) -> int:
    """Return the signed number whose 64 bits a number's are."""
    word &= (1 << 64) - 1
    return word - (1 << 64) if word >> 63 else word


def tensor_words(address: int, shape: Sequence[int], strides: Sequence[int]) -> list[int]:
    """Return a tensor as the words that an entry takes; strides count elements."""
    return [address, *shape, *strides[:-1], *[1] * bool(shape)]


def scalar_result(dtype: DataType, word: int) -> Number:
    """Return the number that a word of a result is."""
    if dtype == FP64:
        return struct.unpack("<d", struct.pack("<Q", word & ((1 << 64) - 1)))[0]
    if dtype.is_float():
        return struct.unpack("<f", struct.pack("<I", word & 0xFFFFFFFF))[0]
    bits = word & ((1 << dtype.bits) - 1)
    if dtype == BOOL:
        return bool(bits)
    return bits - (1 << dtype.bits) if dtype.is_signed_int() and bits >> (dtype.bits - 1) else bits


def tensor_result(words: Sequence[int]) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Return address, shape and strides of the tensor that the words of a result are."""
    rank = len(words) // 2
    return words[0], tuple(words[1 : 1 + rank]), tuple(words[1 + rank :])
