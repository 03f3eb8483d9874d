"""Groups: calls that meet in pipes, each a coroutine that runs until it waits for another.

All of them run where the first one stands. A result that is one of the arguments is there before its call has run, for
the other calls to take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tilewright.backends.cpu.emit.arena import Part
from tilewright.backends.cpu.emit.function import FunctionEmitter
from tilewright.backends.cpu.emit.signature import Prepared
from tilewright.backends.cpu.emit.values import Binding
from tilewright.backends.cpu.host.abi import invoke, write_words
from tilewright.backends.cpu.host.parallel import Task
from tilewright.backends.cpu.host.pipes import NULL, define, word
from tilewright.core.expr import Invoke
from tilewright.core.stmt import AssignStmt
from tilewright.native import pipes as co
from tilewright.native.context import Context
from tilewright.native.llvm import I64, PTR, TRUE, Value, i64
from tilewright.native.rounds import GRID
from tilewright.passes.groups import Side, Sides

NO_MEMORY = "there is no memory for the functions of this group"


Prepare: TypeAlias = Callable[[FunctionEmitter, Invoke], Prepared]
Results: TypeAlias = Callable[[FunctionEmitter, Invoke, Prepared], Binding]


def run_together(e: FunctionEmitter, sides: Sides, prepare: Prepare, results: Results) -> None:
    """Emit the calls of a group, and leave what they give in `e.beside`."""
    define(e)
    frame = _frame(e, sides)
    calls: list[Prepared] = []
    parts: list[Part] = []
    for number, side in enumerate(sides.sides):
        calls.append(prepare(e, side.call))
        parts.append(_start(e, frame, number, side, calls[-1]))
        known = calls[-1].known()
        if isinstance(side.stmt, AssignStmt) and len(known) == 1 and known[0] is not None:
            e.bind(side.stmt.var, known[0])
    e.b.invoke("pipes.work", e.b.load(PTR, word(e, frame, co.SIDES), 8))
    e.b.invoke("pipes.end", frame)
    for part in parts:
        e.arena.give_back(part)
    e.leave_after_an_error()
    for side, call in zip(sides.sides, calls, strict=True):
        e.beside.setdefault(id(side.call), results(e, side.call, call))


def _frame(e: FunctionEmitter, sides: Sides) -> Value:
    """Emit the making of a frame with its sides behind it."""
    e.b.module.intrinsic("calloc", PTR, I64, I64)
    count = len(sides.sides)
    frame = e.b.call(PTR, "calloc", i64(co.FRAME_WORDS + 1 + count * co.SIDE_WORDS), i64(8))
    e.stop(e.b.compare("icmp eq", frame, NULL), NO_MEMORY, e.at)
    e.b.store(i64(sides.lanes), word(e, frame, co.LANES), 8)
    e.b.store(i64(count), word(e, frame, co.COUNT), 8)
    e.b.store(e.context, word(e, frame, co.CALLER), 8)
    return frame


def _start(e: FunctionEmitter, frame: Value, number: int, side: Side, call: Prepared) -> Part:
    """Emit a side that waits for its turn; return where its words lie."""
    base = co.FRAME_WORDS + 1 + number * co.SIDE_WORDS
    address, context = word(e, frame, base), word(e, frame, base + co.CONTEXT)
    task = _task(e, call, context)
    part = e.arena.take(8 * len(task.passed))
    data = e.address(part[0])
    write_words(e.b, data, task.passed)
    shared = (Context.PARALLEL, Context.LOOK, Context.SINCE, Context.THREADS, Context.WAITS, *[GRID] * e.in_rounds)
    fields = {
        co.FRAME: frame, co.LANE: i64(side.lane), co.INDEX: i64(number), co.TASK: Value(PTR, f"@{task.name}"),
        co.DATA: data, co.CONTEXT + Context.PIPES: address,
        **{co.CONTEXT + at: e.b.load(I64, word(e, e.context, at), 8) for at in shared},
    }  # fmt: skip
    for position, value in fields.items():
        e.b.store(value, word(e, address, position), 8)
    e.b.store(address, word(e, frame, co.SIDES + number), 8)
    if number:
        there = e.b.call("i1", "pipes.prepare", address)
        with e.b.when(e.b.op("xor", there, TRUE)):
            e.b.invoke("pipes.end", frame)
            e.stop(TRUE, NO_MEMORY, e.at)
    return part


def _task(e: FunctionEmitter, call: Prepared, context: Value) -> Task:
    """Write the task that makes a call."""
    task = Task(e, i64(1), [context, e.block_index, e.block_count, *call.words, *call.rooms], i64(1))
    own, block, count, *args = task.words
    inner = task.emitter([own, block, count])
    inner.is_concurrent, inner.in_rounds = e.is_concurrent, e.in_rounds
    invoke(inner, call.callee, block, count, args)
    task.finish(inner)
    return task
