"""Launches: kernels written for statements of the host's, and the code that starts them.

A kernel exists twice: for addresses and distances between rows that are multiples of what is moved at once, and for
others. The host looks at what it passes and takes the one that fits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.stops import Exact
from tilewright.backends.cuda.host import launch_code, plane_code
from tilewright.backends.cuda.host.kernels import Kernels, KernelText, Launch, place_of
from tilewright.backends.cuda.host.launch_code import REFUSED, TABLE, Table
from tilewright.backends.cuda.host.map_code import described
from tilewright.backends.cuda.host.printing import Printing
from tilewright.backends.cuda.host.scratch import Scratch
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.parameters import Parameter, Parameters
from tilewright.backends.cuda.ttir.text import I32, I64, Value
from tilewright.native import llvm
from tilewright.native.llvm import PTR, i64

Write = Callable[[Kernel, Parameters, Value], None]
"""Writes a kernel, given its parameters and the number of the block as a scalar of 64 bits."""


CROWDED = "more blocks of this kernel wait for other ranks than are sure to run at the same time"
CROWDED_BY = "{0} blocks of this kernel wait for other ranks, and {1} are sure to run at the same time"


def launch(e: FunctionEmitter, name: str, count: llvm.Value, write: Write, grid: str, arguments: Sequence[str]) -> None:
    """Emit the launch of a kernel on so many blocks; `grid` and `arguments` say how the program calls them."""
    params = Parameters()
    k = Kernel(e.program.program, e.program.note, params.errors, e.checked)
    k.t.span = e.at.span
    block = k.t.convert("arith.extsi", k.t.op("tt.get_program_id x : i32", I32), I64)
    scratch = Scratch(params, block, count)
    unit = e.program
    assert isinstance(unit, Kernels)
    printing = Printing(params, unit.prints)
    k.t.room, k.t.reserve = unit.shared, partial(scratch.reserve, k)
    k.reserve, k.is_given = scratch.reserve, params.is_given
    k.printed, k.turn = printing.add, lambda: block
    write(k, params, block)
    params.align(k.facts.in_rows)
    text = KernelText.of(name, k, params, unit.schedule, count)
    number, maps = unit.kernel(text), params.maps if text.described else []
    unit.launches.append(Launch(number, place_of(e.at.span), grid, arguments))
    scratch.settle(e)
    printing.settle(e, count)
    plane_code.settle(e, params)
    launch_code.add_to(e.b.module)
    places, missing = described(e, number, maps)
    other = e.b.op("or", _is_unaligned(e, params.found), missing)
    row = e.b.op("add", i64(2 * number), e.b.convert("zext", e.b.compare("icmp ne", other, i64(0)), llvm.I64))
    note = i64(e.program.note(REFUSED, e.at.span))
    blocks = count if text.parts == 1 else e.b.op("mul", count, i64(text.parts))
    if k.facts.waits:
        _check_room(e, blocks)
    e.b.invoke("launch", e.context, row, blocks, _arguments(e, params.found, places), note)
    e.leave_after_an_error()
    printing.show(e, name)


def _check_room(e: FunctionEmitter, blocks: llvm.Value) -> None:
    """Emit that blocks which wait for other ranks are refused where they might keep those from running."""
    room = e.b.load(llvm.I64, e.b.offset(llvm.Value(PTR, f"@{TABLE}"), i64(Table.ROOM), llvm.I64), 8)
    e.fail(e.b.compare("icmp sgt", blocks, room), CROWDED, e.at, Exact(CROWDED_BY, lambda: (blocks, room)))
    e.leave_after_an_error()


def _arguments(e: FunctionEmitter, params: Sequence[Parameter], maps: Sequence[llvm.Value]) -> llvm.Value:
    """Emit the addresses of the words and descriptors that a kernel is given, and of a zero for what Triton may add."""
    b, count = e.b, len(params)
    words, places = b.slot(f"[{count + 1} x i64]"), b.slot(f"[{count + len(maps) + 2} x ptr]")
    b.store(i64(0), b.offset(words, i64(count), llvm.I64), 8)
    for number, parameter in enumerate(params):
        b.store(_word(e, parameter), b.offset(words, i64(number), llvm.I64), 8)
    held = [b.offset(words, i64(number), llvm.I64) for number in range(count)]
    zero = b.offset(words, i64(count), llvm.I64)
    for number, place in enumerate((*held, *maps, zero, zero)):
        b.store(place, b.offset(places, i64(number), PTR), 8)
    return places


def _word(e: FunctionEmitter, parameter: Parameter) -> llvm.Value:
    if parameter.word is None:
        table = llvm.Value(PTR, f"@{TABLE}")
        return e.b.load(llvm.I64, e.b.offset(table, i64(Table.ERROR_ADDRESS), llvm.I64), 8)
    if parameter.word.type == llvm.I1:
        return e.b.convert("zext", parameter.word, llvm.I32)
    return parameter.word


def _is_unaligned(e: FunctionEmitter, params: Sequence[Parameter]) -> llvm.Value:
    """Return bits, some of them set where some parameter is no multiple of what it would have to be."""
    b, found = e.b, i64(0)
    for parameter in params:
        if parameter.word is None or parameter.divisor == 1:
            continue
        word = parameter.word
        number = b.value(llvm.I64, f"ptrtoint {word} to i64") if word.type == PTR else word
        found = b.op("or", found, b.op("and", number, i64(parameter.divisor - 1)))
    return found
