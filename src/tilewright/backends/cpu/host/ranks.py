"""Ranks: windows, the parts of peers, and signals between ranks.

In front of a window's memory lies the address of its domain's record (`native/domains.py`): who this is, how many
there are, and where each one's part starts. A part of a peer is then a tensor like any other, a signal one atomic
instruction, and the same code serves threads of a process and processes that share memory. Where they share none, parts
are copies, and whoever the record names is told of signals.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.backends.cpu.compute.addresses import moved
from tilewright.backends.cpu.compute.copies import inside
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.polls import poll_of
from tilewright.backends.cpu.emit.stops import Exact
from tilewright.backends.cpu.emit.values import Scalar, Tensor
from tilewright.backends.cpu.host.domains import LOST, are_shared, record_of, tell, word_of
from tilewright.core.enums import NotifyOp, WaitCmp
from tilewright.core.expr import Call
from tilewright.dtypes import INT32
from tilewright.native.context import NUMBERS
from tilewright.native.domains import PAUSE, TURNS, Record, Touch
from tilewright.native.llvm import I1, I32, I64, PTR, TRUE, Value, i64
from tilewright.ops.signals import SIGNS

NO_PEER = "the peer is no rank of the domain"
NO_CELL = "this is no cell of the window"
ENDED = "this wait was ended before its cell was what it waits for"


@lowers("distributed.rank")
def _rank(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    return Scalar(e.b.convert("trunc", word_of(e, bound["ctx"], Record.RANK), I32), INT32)


@lowers("distributed.nranks")
def _nranks(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    return Scalar(e.b.convert("trunc", word_of(e, bound["ctx"], Record.COUNT), I32), INT32)


@lowers("distributed.copies")
def _copies(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    return Scalar(e.b.convert("trunc", word_of(e, bound["ctx"], Record.COPIES), I32), INT32)


@lowers("distributed.part")
def _part(e: FunctionEmitter, call: Call, bound: Bound) -> Tensor:
    return _part_of(e, call, bound["target"], e.index(bound["peer"]))


def _part_of(e: FunctionEmitter, call: Call, window: Tensor, peer: Value) -> Tensor:
    """Return the part of a window that a peer holds; one that is none is an error, and ends the function."""
    if e.checked:
        count = word_of(e, window, Record.COUNT)
        exact = Exact("peer {0} is no rank of the domain, which has {1}", lambda: (peer, count))
        e.stop(e.b.compare("icmp uge", peer, count), NO_PEER, call, exact)
    place = e.b.op("add", peer, i64(Record.PARTS))
    return replace(window, pointer=e.b.load(PTR, e.b.offset(record_of(e, window), place, I64), 8))


def _cell(e: FunctionEmitter, call: Call, window: Tensor, bound: Bound) -> Value:
    offsets = e.indices(bound["offsets"])
    fits = inside(e, offsets, [i64(1)] * len(offsets), window.shape)
    if fits is not None:
        e.stop(e.negated(fits), NO_CELL, call)
    return moved(e, window, offsets)


@lowers("distributed.notify")
def _notify(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[()]:
    """Change a cell of a peer, after all that was written before."""
    e.flush()
    cell = _cell(e, call, _part_of(e, call, bound["target"], e.index(bound["peer"])), bound)
    value = e.b.convert("trunc", e.index(bound["value"]), I32)
    is_set = bound["op"] == NotifyOp.Set

    def signalled() -> Value:
        how = "xchg" if is_set else "add"  # which comes after stores that bypass the caches, too
        e.b.value(I32, f"atomicrmw {how} {cell}, {value} acq_rel")
        return i64(0)

    def told() -> Value:
        return tell(e, bound["target"], Touch.SET if is_set else Touch.RAISE, cell, [e.index(bound["value"])])

    failed = e.b.either(are_shared(e, bound["target"]), signalled, told)
    e.stop(e.b.compare("icmp ne", failed, i64(0)), LOST, call)
    return ()


@lowers("distributed.wait")
def _wait(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[()]:
    """Look at a cell until it is what is expected, or the run is over."""
    e.flush()
    b, window, cmp = e.b, bound["signal"], WaitCmp(bound["cmp"])
    cell = _cell(e, call, window, bound)
    expected = b.convert("trunc", e.index(bound["expected"]), I32)
    abort = b.load(PTR, b.offset(record_of(e, window), i64(Record.ABORT), I64), 8)
    poll_of(b.module)
    for text in PAUSE:
        b.module.declare(text)
    times, look, again, over, done = b.slot(I64), *map(b.label, ("look", "again", "over", "done"))
    b.store(i64(0), times, 8)
    b.do(f"br label %{look}")
    b.begin(look)
    held = b.value(I32, f"load atomic i32, {cell} acquire, align 4")
    there = b.compare("icmp sge" if cmp is WaitCmp.Ge else "icmp eq", held, expected)
    b.do(f"br {there}, label %{done}, label %{again}")
    b.begin(again)
    count = b.op("add", b.load(I64, times, 8), i64(1))
    b.store(count, times, 8)
    ended = b.call(I1, "rank.pause", e.context, abort, count)
    b.do(f"br {ended}, label %{over}, label %{look}")
    b.begin(over)
    numbers = [b.convert("sext", number, I64) for number in (held, expected)]
    offsets = e.indices(bound["offsets"])
    if len(numbers) + len(offsets) <= len(NUMBERS):
        place = f"cell [{', '.join(f'{{{k}}}' for k, _ in enumerate(offsets, len(numbers)))}]"
        numbers += offsets
    else:
        place = "its cell"
    text = f"this wait was ended: {place} is {{0}}, and it waits for {SIGNS[cmp]} {{1}}"
    e.fail(TRUE, ENDED, call, Exact(text, lambda: numbers))
    b.do(f"br label %{e.exit}")
    b.begin(done)
    with b.when(b.compare("icmp sgt", b.load(I64, times, 8), i64(TURNS))):
        b.do(f"call void @rank.turned({abort})")
    return ()
