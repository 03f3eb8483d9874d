"""Programs: every function of a program in one module, callable from outside.

An entry takes an array of 64-bit words (arguments, then room for results) and the context.
"""

from __future__ import annotations

from tilewright.backends.cpu.compute import convert as convert
from tilewright.backends.cpu.compute import copies as copies
from tilewright.backends.cpu.compute import groups as groups
from tilewright.backends.cpu.compute import tiles as tiles
from tilewright.backends.cpu.emit.durations import WORTH
from tilewright.backends.cpu.emit.function import HANDLERS, FunctionEmitter
from tilewright.backends.cpu.emit.signature import Signature
from tilewright.backends.cpu.emit.unit import Unit
from tilewright.backends.cpu.emit.values import Scalar, Tensor
from tilewright.backends.cpu.host import calls as calls
from tilewright.backends.cpu.host import control as control
from tilewright.backends.cpu.host import scalars as scalars
from tilewright.backends.cpu.host import tensors as tensors
from tilewright.backends.cpu.host.abi import (
    entry_word_types,
    from_outside,
    parameter,
    read_words,
    room_bytes,
    tensor_words,
    to_outside,
    word_types,
    write_words,
)
from tilewright.backends.cpu.host.functions import HEAD, emitter, made_results, write_body
from tilewright.backends.cpu.host.heap import NO_ARENA, Memory
from tilewright.backends.cpu.host.options import Options
from tilewright.backends.cpu.host.rare_ops import RARE
from tilewright.core.program import Function, Program
from tilewright.core.types import TensorType, Type
from tilewright.native.llvm import PTR, Builder, Value, i64, spelled
from tilewright.native.target import Target

HANDLERS.rare = RARE


class ProgramEmitter(Unit):
    """A program being written for a target, with entries that are called from outside."""

    def __init__(self, program: Program, target: Target, options: Options) -> None:
        worth = WORTH * options.small_alone
        super().__init__(program, target, options.checked, options.polled, worth, options.located)

    def entry(self, function: Function) -> str:
        """Write a function that is called from outside, its parameters read from words; return its symbol."""
        symbol, words = f"entry_{spelled(function.name)}", Value(PTR, "%words")
        b = Builder(self.module, symbol, [words, HEAD[0]], linkage="", attrs="nounwind")
        types = [type_ for p in function.params for type_ in entry_word_types(p.type)]
        given = iter(read_words(b, words, types))
        params = [from_outside(p.type, given) for p in function.params]
        done = b.label("done")
        memory = Memory(b, HEAD[0], self.note(NO_ARENA, function.span), done)
        e = emitter(self, function, b, Signature.plain(function))
        e.arena.base, e.block_index, e.block_count = memory.base, i64(0), i64(1)
        for room, type_ in zip(e.rooms, made_results(self, function), strict=True):
            b.do(f"{room.ref} = getelementptr i8, {memory.base}, i64 {e.arena.take(room_bytes(type_))[0]}")
        passed = [word for p, value in zip(function.params, params, strict=True) for word in _argument(p.type, value)]
        write_body(e, Signature.plain(function), passed)
        write_words(b, words, self._results(e, params), len(types))
        b.do(f"br label %{done}")
        b.begin(done)
        memory.fill(self.room(e.arena, function.span))
        memory.free()
        b.finish()
        self.settle(e.arena, function.span)
        return symbol

    def _results(self, e: FunctionEmitter, params: list[Scalar | Tensor]) -> list[Value]:
        """Return what an entry gives its caller: parameters, and what lies in its rooms."""
        rooms = iter(e.rooms)
        results = [
            params[position] if position is not None else _result(e.b, type_, next(rooms))
            for type_, position in zip(e.function.return_types, self.returned[e.function.name], strict=True)
        ]
        return [word for value in results for word in to_outside(value)]


def _argument(type_: Type, value: Scalar | Tensor) -> list[Value]:
    """Return a value from outside as functions pass it."""
    if isinstance(value, Scalar):
        return [value.value]
    assert isinstance(type_, TensorType)
    return tensor_words(type_, value)


def _result(b: Builder, type_: Type, room: Value) -> Scalar | Tensor:
    """Return what a function has left in a room."""
    value = parameter(type_, iter(read_words(b, room, word_types(type_))), step=0)
    assert isinstance(value, (Scalar, Tensor))
    return value
