"""Native programs: a program's object code loaded and called."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright import settings
from tilewright.arrays import np
from tilewright.backends.cpu.abi import entry_word_types
from tilewright.backends.cpu.assemble import assemble
from tilewright.backends.cpu.loader import load
from tilewright.backends.cpu.options import Options
from tilewright.backends.cpu.program import ProgramEmitter
from tilewright.backends.cpu.target import Target, host
from tilewright.backends.cpu.threads import parallel_address
from tilewright.core.enums import ParamDirection
from tilewright.core.program import Function, Program
from tilewright.core.region import Array, Region, whole
from tilewright.core.types import ScalarType, TensorType, Type
from tilewright.dtypes import BOOL, DataType
from tilewright.errors import ExecutionError
from tilewright.source import Span


@dataclass(frozen=True)
class NativeCode:
    """A program's code for one target, as text and as object."""

    text: str
    object: bytes
    symbols: dict[str, str]
    errors: list[tuple[str, Span]]


def compile_native(program: Program, target: Target | None = None, options: Options | None = None) -> NativeCode:
    """Return a lowered program as native code with an entry for each function a caller can start."""
    emitter = ProgramEmitter(program, target or host(), options or Options.current())
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
        given = [_Argument.of(p.type, value) for p, value in zip(function.params, args, strict=True)]
        _check_overlap(function, args)
        words = [word for argument in given for word in argument.words]
        results = sum(len(entry_word_types(t)) for t in function.return_types)
        room = (ctypes.c_int64 * (len(words) + results))(*words)
        context = (ctypes.c_int64 * 3)(parallel_address(settings.num_threads()), 0, 0)
        self.calls[name](room, context)
        try:
            if context[1]:
                raise self._error(name, context[1])
            for argument in given:
                argument.write_back()
            return _results(function, room, len(words), given)
        finally:
            _free(context[2])

    def _error(self, name: str, number: int) -> ExecutionError:
        message, span = self.code.errors[number - 1]
        error = ExecutionError(message, spans=[span])
        error.function = name
        return error


def _check_overlap(function: Function, args: Sequence[Any]) -> None:
    """Raise when an argument that is written shares memory with another: code assumes that they do not."""
    regions = [(p.name_hint, d, a) for p, d, a in zip(function.params, function.param_directions, args, strict=True)]
    for position, (name, direction, written) in enumerate(regions):
        if direction is ParamDirection.In or not isinstance(written, Region):
            continue
        for other_position, (other, _, region) in enumerate(regions):
            if (
                position != other_position
                and isinstance(region, Region)
                and np.shares_memory(written.data, region.data)
            ):
                raise ValueError(f"`{name}` is written and shares memory with `{other}`: pass arrays of their own")


@dataclass(frozen=True)
class _Argument:
    """An argument on its way in: its words, and the packed copy of an array whose rows are not contiguous."""

    words: list[int]
    region: Region | None = None
    copy: Array | None = None

    @staticmethod
    def of(type_: Type, value: Any) -> _Argument:
        if isinstance(type_, ScalarType):
            return _Argument([_scalar_word(type_.dtype, value)])
        assert isinstance(value, Region)
        data, size = value.data, value.data.itemsize
        regular = data.ndim == 0 or data.strides[-1] == size or data.shape[-1] <= 1
        copy = None if regular and not any(s % size for s in data.strides) else np.ascontiguousarray(data)
        used = data if copy is None else copy
        strides = [s // size for s in used.strides[:-1]] + [1] * bool(used.ndim)
        return _Argument([used.ctypes.data, *used.shape, *strides], value, copy)

    def write_back(self) -> None:
        """Bring what the program wrote into a copy to the caller's array."""
        if self.region is not None and self.copy is not None and self.region.data.flags.writeable:
            self.region.data[...] = self.copy


def _scalar_word(dtype: DataType, value: Any) -> int:
    if dtype.is_float():
        return struct.unpack("<i", struct.pack("<f", value))[0]
    return int(bool(value)) if dtype == BOOL else int(value) - (1 << 64 if int(value) >= 1 << 63 else 0)


def _results(function: Function, room: Any, at: int, given: Sequence[_Argument]) -> tuple[Any, ...]:
    results: list[Any] = []
    for type_ in function.return_types:
        count = len(entry_word_types(type_))
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
    size = type_.dtype.get_byte()
    reach = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)) + 1 if all(shape) else 0
    flat: Array = np.frombuffer(ctypes.string_at(words[0], reach * size), type_.dtype.numpy)
    view: Any = np.lib.stride_tricks.as_strided(flat, shape, [stride * size for stride in strides])
    return whole(np.array(view))


def _free(head: int) -> None:
    """Free the list of buffers a program made."""
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    while head:
        following = ctypes.c_int64.from_address(head).value
        free(head)
        head = following
