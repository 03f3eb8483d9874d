"""Emulated tiles: functions that do to memory what AMX's instructions do to its registers, for processors without it.

With them every product can be tried in the layouts of AMX, wherever tests run. A function takes the room in which the
registers lie, their numbers, and for loads and stores an address and how far rows are apart.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.backends.cpu.compute.storage import first_lanes, load, splat, store
from tilewright.native.llvm import F32, I8, I32, I64, PTR, Builder, Module, Value, i64, vector

_ROOM, _POINTER, _APART = Value(PTR, "%room"), Value(PTR, "%pointer"), Value(I64, "%apart")
_SUMS, _LEFT, _RIGHT = Value(I8, "%sums"), Value(I8, "%left"), Value(I8, "%right")
_WIDTHS, _HEIGHTS, _REGISTERS = 16, 48, 64
"""Where the configuration has the bytes of rows and the rows of each register, and where those themselves begin."""
_LANES, _SIZE = 16, 1024
_WORDS, _NUMBERS = vector(I32, _LANES), vector(F32, _LANES)


def emulated(module: Module, name: str) -> str:
    """Return the name of the function that stands for an instruction, adding it to the module once."""
    function = f"emulated.{name}"
    if function not in module.defined:
        emit, params = _INSTRUCTIONS[name]
        b = Builder(module, function, (_ROOM, *params), attrs="noinline nounwind")
        emit(b)
        b.finish()
    return function


def _rows(b: Builder, register: Value) -> Value:
    """Return how many rows a register has."""
    at = b.op("add", b.convert("zext", register, I64), i64(_HEIGHTS))
    return b.convert("zext", b.load(I8, b.offset(_ROOM, at, I8), 1), I64)


def _words(b: Builder, register: Value) -> Value:
    """Return how many words each of its rows has."""
    at = b.op("add", b.op("mul", b.convert("zext", register, I64), i64(2)), i64(_WIDTHS))
    return b.op("udiv", b.convert("zext", b.load("i16", b.offset(_ROOM, at, I8), 2), I64), i64(4))


def _row(b: Builder, register: Value, row: Value) -> Value:
    """Return where a row of a register lies."""
    at = b.op("add", b.op("mul", b.convert("zext", register, I64), i64(_SIZE)), i64(_REGISTERS))
    return b.offset(_ROOM, b.op("add", at, b.op("mul", row, i64(4 * _LANES))), I8)


def _clear(b: Builder) -> None:
    with b.loop(i64(0), i64(_SIZE // 64), i64(1)) as row:
        b.store(splat(_WORDS, 0), _row(b, _SUMS, row), 4)


def _load(b: Builder) -> None:
    mask = first_lanes(b, _words(b, _SUMS), _LANES)
    _clear(b)
    with b.loop(i64(0), _rows(b, _SUMS), i64(1)) as row:
        place = b.offset(_POINTER, b.op("mul", row, _APART), I8)
        b.store(load(b, _WORDS, place, 1, mask), _row(b, _SUMS, row), 4)


def _store(b: Builder) -> None:
    mask = first_lanes(b, _words(b, _SUMS), _LANES)
    with b.loop(i64(0), _rows(b, _SUMS), i64(1)) as row:
        place = b.offset(_POINTER, b.op("mul", row, _APART), I8)
        store(b, b.load(_WORDS, _row(b, _SUMS, row), 4), place, 1, mask)


def _multiplying(products: Callable[[Builder, Value, Value, Value], Value], type_: str) -> Callable[[Builder], None]:
    """Return what emits an instruction that adds products of words to sums of a type."""

    def emit(b: Builder) -> None:
        with b.loop(i64(0), _rows(b, _SUMS), i64(1)) as row:
            sums = _row(b, _SUMS, row)
            loop = b.open_loop(i64(0), _words(b, _LEFT), i64(1), [b.load(type_, sums, 4)])
            word = b.load(I32, b.offset(_row(b, _LEFT, row), loop.index, I32), 4)
            words = b.load(_WORDS, _row(b, _RIGHT, loop.index), 4)
            (total,) = b.close_loop(loop, [products(b, b.splat(word, _LANES), words, loop.values[0])])
            b.store(total, sums, 4)

    return emit


def _pairs(b: Builder, left: Value, right: Value, total: Value) -> Value:
    for half in (0, 1):
        total = b.intrinsic("llvm.fmuladd", *(_half(b, words, half) for words in (left, right)), total)
    return total


def _half(b: Builder, words: Value, half: int) -> Value:
    """Return one of the two numbers of each word; those below the least normal one are zero."""
    placed = b.op("shl", words, splat(_WORDS, 16)) if half == 0 else b.op("and", words, splat(_WORDS, -65536))
    exponent = b.op("and", placed, splat(_WORDS, 0x7F800000))
    kept = b.select(b.compare("icmp eq", exponent, splat(_WORDS, 0)), splat(_WORDS, 0), placed)
    return b.convert("bitcast", kept, _NUMBERS)


def _bytes(left: str, right: str) -> Callable[[Builder, Value, Value, Value], Value]:
    """Return what adds the four products of bytes of each word, brought down with or without their signs."""

    def products(b: Builder, lhs: Value, rhs: Value, total: Value) -> Value:
        for byte in range(4):
            factors = [
                b.op(down, b.op("shl", words, splat(_WORDS, 24 - 8 * byte)), splat(_WORDS, 24))
                for down, words in ((left, lhs), (right, rhs))
            ]
            total = b.op("add", total, b.op("mul", *factors))
        return total

    return products


_SIGNED, _UNSIGNED = "ashr", "lshr"
_FACTORS = _SUMS, _LEFT, _RIGHT
_INSTRUCTIONS: dict[str, tuple[Callable[[Builder], None], tuple[Value, ...]]] = {
    "tilezero": (_clear, (_SUMS,)),
    "tileloadd64": (_load, (_SUMS, _POINTER, _APART)),
    "tilestored64": (_store, (_SUMS, _POINTER, _APART)),
    "tdpbf16ps": (_multiplying(_pairs, _NUMBERS), _FACTORS),
    "tdpbssd": (_multiplying(_bytes(_SIGNED, _SIGNED), _WORDS), _FACTORS),
    "tdpbsud": (_multiplying(_bytes(_SIGNED, _UNSIGNED), _WORDS), _FACTORS),
    "tdpbusd": (_multiplying(_bytes(_UNSIGNED, _SIGNED), _WORDS), _FACTORS),
    "tdpbuud": (_multiplying(_bytes(_UNSIGNED, _UNSIGNED), _WORDS), _FACTORS),
}
"""What each instruction does, and what it is told beside the room."""
