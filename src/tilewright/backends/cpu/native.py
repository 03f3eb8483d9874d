"""Native programs: a program's object code loaded and called."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright import settings
from tilewright.arrays import np
from tilewright.backends.cpu.assemble import assemble
from tilewright.backends.cpu.loader import load
from tilewright.backends.cpu.abi import entry_word_types
from tilewright.backends.cpu.program import ProgramEmitter
from tilewright.backends.cpu.target import Target, host
from tilewright.backends.cpu.threads import parallel_address
from tilewright.core.program import Function, Program
from tilewright.core.region import Region, whole
from tilewright.core.types import ScalarType, TensorType, Type
from tilewright.dtypes import BOOL, DataType
from tilewright.errors import ExecutionError


@dataclass(frozen=True)
class NativeCode:
    """A program's code for one target, as text and as object."""

    text: str
    object: bytes
    symbols: dict[str, str]
    errors: list[tuple[str, Any]]


def compile_native(program: Program, target: Target | None = None) -> NativeCode:
    """Return a lowered program as native code with an entry for each function a caller can start."""
    emitter = ProgramEmitter(program, target or host())
    symbols = {function.name: emitter.entry(function) for function in program.entries}
    text = emitter.module.text()
    return NativeCode(text, assemble(text, emitter.target).object, symbols, emitter.errors)


class NativeProgram:
    """Runs a program's entries; tensors are written in place."""

    def __init__(self, program: Program, code: NativeCode) -> None:
        self.program = program
        self.code = code
        self.loaded = load(code.object)
        self.calls = {
            name: self.loaded.function(symbol, None, ctypes.c_void_p, ctypes.c_void_p)
            for name, symbol in code.symbols.items()
        }

    def run(self, name: str, args: Sequence[Any]) -> tuple[Any, ...]:
        """Return what an entry returns for `args`; ExecutionError for what the program did wrong."""
        function = self.program[name]
        arrays: list[tuple[Any, Any]] = []
        words = [w for p, a in zip(function.params, args, strict=True) for w in _words(p.type, a, arrays)]
        results = sum(len(entry_word_types(t)) for t in function.return_types)
        room = (ctypes.c_int64 * (len(words) + results))(*words)
        context = (ctypes.c_int64 * 3)(parallel_address(settings.num_threads()), 0, 0)
        self.calls[name](room, context)
        try:
            if context[1]:
                message, span = self.code.errors[context[1] - 1]
                error = ExecutionError(message, spans=[span])
                error.function = name
                raise error
            for copy, original in arrays:
                original[...] = copy
            return _results(function, room, len(words), args)
        finally:
            _free(context[2])


def _words(type_: Type, value: Any, arrays: list[tuple[Any, Any]]) -> list[int]:
    if isinstance(type_, ScalarType):
        return [_scalar_word(type_.dtype, value)]
    assert isinstance(value, Region)
    data, size = value.data, value.data.itemsize
    regular = data.ndim == 0 or data.strides[-1] == size or data.shape[-1] <= 1
    if not regular or any(s % size for s in data.strides):
        data = np.ascontiguousarray(data)
        if value.data.flags.writeable:
            arrays.append((data, value.data))
    strides = [s // size for s in data.strides]
    if strides:
        strides[-1] = 1
    return [data.ctypes.data, *data.shape, *strides]


def _scalar_word(dtype: DataType, value: Any) -> int:
    if dtype.is_float():
        return struct.unpack("<i", struct.pack("<f", value))[0]
    return int(bool(value)) if dtype == BOOL else int(value) - (1 << 64 if int(value) >= 1 << 63 else 0)


def _results(function: Function, room: Any, at: int, args: Sequence[Any]) -> tuple[Any, ...]:
    results: list[Any] = []
    for type_ in function.return_types:
        count = len(entry_word_types(type_))
        words = list(room[at : at + count])
        at += count
        results.append(_number(type_.dtype, words[0]) if isinstance(type_, ScalarType) else _tensor(type_, words, args))
    return tuple(results)


def _number(dtype: DataType, word: int) -> int | float | bool:
    if dtype.is_float():
        return struct.unpack("<f", struct.pack("<I", word & 0xFFFFFFFF))[0]
    bits = word & ((1 << dtype.bits) - 1)
    if dtype == BOOL:
        return bool(bits)
    return bits - (1 << dtype.bits) if dtype.is_signed_int() and bits >> (dtype.bits - 1) else bits


def _tensor(type_: Type, words: Sequence[int], args: Sequence[Any]) -> Region:
    """Return a result: the argument whose memory it is, or a copy of what the program made."""
    assert isinstance(type_, TensorType)
    rank = len(type_.shape)
    shape, strides = tuple(words[1 : 1 + rank]), words[1 + rank :]
    for arg in args:
        if isinstance(arg, Region) and arg.data.ctypes.data == words[0] and arg.data.shape == shape:
            return arg
    size = type_.dtype.get_byte()
    reach = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)) + 1 if all(shape) else 0
    memory = (ctypes.c_char * (reach * size)).from_address(words[0])
    flat = np.frombuffer(memory, type_.dtype.numpy)
    view = np.lib.stride_tricks.as_strided(flat, shape, [stride * size for stride in strides])
    return whole(view.copy())


def _free(head: int) -> None:
    """Free the list of buffers a program made."""
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    while head:
        following = ctypes.c_int64.from_address(head).value
        free(head)
        head = following
