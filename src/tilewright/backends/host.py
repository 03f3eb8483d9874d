"""Host programs: the host functions of a program's code, loaded and called; every back end that makes any uses this.

Whoever only loads code that was made before pays for nothing else: no compiler is imported here.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NoReturn

from tilewright import settings
from tilewright.arrays import np
from tilewright.backends.interface import Code
from tilewright.core.program import Function, Program
from tilewright.core.region import Array, Region, whole
from tilewright.core.types import ScalarType, TensorType, Type
from tilewright.dtypes import BOOL, DataType
from tilewright.errors import ExecutionError
from tilewright.native.context import INTERRUPTED, Context, context_words
from tilewright.native.interrupts import look_address, raise_interrupt
from tilewright.native.loader import load
from tilewright.native.support import carried
from tilewright.native.threads import parallel_address
from tilewright.records import record


class HostProgram:
    """Runs a program's entries; tensors are written in place.

    Of the program only what its entries declare is asked for.
    """

    def __init__(self, program: Program, code: Code) -> None:
        self.program = program
        self.code = code
        self.emit = carried(code.objects)
        self.loaded = load(code.object)
        self.calls = {
            name: self.loaded.function(symbol, None, ctypes.c_void_p, ctypes.c_void_p)
            for name, symbol in code.symbols.items()
        }

    def run(self, name: str, args: Sequence[Any]) -> tuple[Any, ...]:
        """Return what an entry returns for `args`; ExecutionError for what the program did wrong."""
        function = self.program[name]
        given = [_Argument.of(p.type, value) for p, value in zip(function.params, args, strict=True)]
        words = [word for argument in given for word in argument.words]
        results = sum(map(_word_count, function.return_types))
        room = (ctypes.c_int64 * (len(words) + results))(*words)
        context = self._context()
        self.calls[name](room, context)
        try:
            if context[Context.ERROR]:
                self._fail(name, context[Context.ERROR])
            for argument in given:
                argument.write_back()
            return _results(function, room, len(words), given)
        finally:
            _free(context[Context.BUFFERS])

    def _context(self) -> Any:
        """Return the context of one run."""
        words = context_words(parallel_address(settings.num_threads(), self.emit), look_address(self.emit))
        return (ctypes.c_int64 * len(words))(*words)

    def prepared(self, name: str, args: Sequence[Any]) -> Callable[[], None]:
        """Return a run of an entry on `args`, to be made again and again: its code and hardly anything around it.

        Results are dropped, and so is what the program did wrong; an interrupt is not.
        """
        function, call = self.program[name], self.calls[name]
        given = [_Argument.of(p.type, value) for p, value in zip(function.params, args, strict=True)]
        words = [word for argument in given for word in argument.words]
        room = (ctypes.c_int64 * (len(words) + sum(map(_word_count, function.return_types))))(*words)
        context = self._context()
        places = ctypes.addressof(room), ctypes.addressof(context)

        def run(held: object = (room, context, given)) -> None:
            call(*places)
            if context[1] or context[2]:
                number, buffers = context[1:3]
                context[1:3] = 0, 0
                self.finish(name, number if number == INTERRUPTED else 0, buffers)

        return run

    def finish(self, name: str, number: int, buffers: int) -> None:
        """Free what a run that was started elsewhere has made, and raise what it did wrong."""
        _free(buffers)
        if number:
            self._fail(name, number)

    def address(self, name: str) -> int:
        """Return where the code of an entry lies."""
        return self.loaded.address(self.code.symbols[name])

    def _fail(self, name: str, number: int) -> NoReturn:
        """Raise what ended a run."""
        if number == INTERRUPTED:
            raise_interrupt()
        message, span = self.code.errors[number - 1]
        error = ExecutionError(message, spans=[span])
        error.function = name
        raise error


@record
class _Argument:
    """An argument on its way in: its words, and the packed copy of an array that code cannot address.

    Code reads rows of adjacent elements, each at an address that is a multiple of its size.
    """

    words: list[int]
    region: Region | None = None
    copy: Array | None = None

    @staticmethod
    def of(type_: Type, value: Any) -> _Argument:
        if isinstance(type_, ScalarType):
            return _Argument([scalar_word(type_.dtype, value)])
        assert isinstance(value, Region)
        data, size = value.data, value.data.itemsize
        adjacent = data.ndim == 0 or data.strides[-1] == size or data.shape[-1] <= 1
        regular = adjacent and data.flags.aligned and not any(s % size for s in data.strides)
        copy = None if regular else np.array(data, order="C")
        used = data if copy is None else copy
        strides = [s // size for s in used.strides[:-1]] + [1] * bool(used.ndim)
        return _Argument([used.ctypes.data, *used.shape, *strides], value, copy)

    def write_back(self) -> None:
        """Bring what the program wrote into a copy to the caller's array."""
        if self.region is not None and self.copy is not None and self.region.data.flags.writeable:
            self.region.data[...] = self.copy


def scalar_word(dtype: DataType, value: Any) -> int:
    """Return a number as the word that an entry takes."""
    if dtype.is_float():
        return struct.unpack("<i", struct.pack("<f", value))[0]
    return int(bool(value)) if dtype == BOOL else int(value) - (1 << 64 if int(value) >= 1 << 63 else 0)


def _word_count(type_: Type) -> int:
    """Return how many words a value is: a scalar one, a tensor its address, its shape and its strides."""
    return 1 + 2 * len(type_.shape) if isinstance(type_, TensorType) else 1


def _results(function: Function, room: Any, at: int, given: Sequence[_Argument]) -> tuple[Any, ...]:
    results: list[Any] = []
    for type_ in function.return_types:
        count = _word_count(type_)
        words: list[int] = list(room[at : at + count])
        at += count
        results.append(
            _number(type_.dtype, words[0]) if isinstance(type_, ScalarType) else _tensor(type_, words, given)
        )
    return tuple(results)


def _number(dtype: DataType, word: int) -> int | float | bool:
    if dtype.is_float():
        return struct.unpack("<f", struct.pack("<I", word & 0xFFFFFFFF))[0]
    bits = word & ((1 << dtype.bits) - 1)
    if dtype == BOOL:
        return bool(bits)
    return bits - (1 << dtype.bits) if dtype.is_signed_int() and bits >> (dtype.bits - 1) else bits


def _tensor(type_: Type, words: Sequence[int], given: Sequence[_Argument]) -> Region:
    """Return a result: the argument whose memory it is, or a copy of what the program made."""
    assert isinstance(type_, TensorType)
    rank = len(type_.shape)
    shape, strides = tuple(words[1 : 1 + rank]), words[1 + rank :]
    for argument in given:
        if argument.region is not None and argument.words[: 1 + rank] == [words[0], *shape]:
            return argument.region
    if not all(shape):
        return whole(np.zeros(shape, type_.dtype.numpy))
    size = type_.dtype.get_byte()
    steps = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    low, high = (sum(step for step in steps if (step < 0) == negative) for negative in (True, False))
    memory = ctypes.string_at(words[0] + low * size, (high - low + 1) * size)
    flat: Array = np.frombuffer(memory, type_.dtype.numpy)[-low:]
    view: Any = np.lib.stride_tricks.as_strided(flat, shape, [stride * size for stride in strides])
    return whole(np.array(view))


def _free(head: int) -> None:
    """Free the list of buffers a program made."""
    while head:
        following = ctypes.c_int64.from_address(head).value
        _libc_free()(head)
        head = following


@cache
def _libc_free() -> Callable[[int], None]:
    function = ctypes.CDLL(None).free
    function.argtypes, function.restype = [ctypes.c_void_p], None
    return function
