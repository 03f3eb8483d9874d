"""Ranks: windows, the parts of peers, and signals between ranks.

In front of a window's memory lies the address of its domain's record (`native/domains.py`): who this is, how many
there are, and where each one's part starts. A part of a peer is then a tensor like any other, a signal one atomic
instruction, and the same code serves threads of a process and processes that share memory. Where they share none, parts
are copies, and whoever the record names is told of signals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.backends.cpu.compute.addresses import moved
from tilewright.backends.cpu.compute.copies import inside
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.stops import Exact
from tilewright.backends.cpu.emit.values import Scalar, Tensor
from tilewright.backends.cpu.host.cells import ENDED, awaited, signal
from tilewright.backends.cpu.host.domains import part_at, record_of, word_of
from tilewright.core.enums import NotifyOp, WaitCmp
from tilewright.core.expr import Call
from tilewright.dtypes import INT32
from tilewright.native.context import NUMBERS
from tilewright.native.domains import Record
from tilewright.native.llvm import I32, I64, PTR, TRUE, Value, i64
from tilewright.ops.signals import SIGNS, TOO_LARGE

NO_PEER = "the peer is no rank of the domain"
NO_CELL = "this is no cell of the window"


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
    return replace(window, pointer=part_at(e, window, peer))


def _exact_cell(offsets: Sequence[Value], window: Tensor) -> Exact | None:
    """Return which cell a window does not have, where that is few enough numbers."""
    numbers = [*offsets, *window.shape]
    if len(numbers) > len(NUMBERS):
        return None
    cell, shape = (", ".join(f"{{{k}}}" for k in range(first, first + len(offsets))) for first in (0, len(offsets)))
    return Exact(f"cell [{cell}] is none of a window of [{shape}]", lambda: numbers)


def _cell(e: FunctionEmitter, call: Call, window: Tensor, bound: Bound) -> Value:
    offsets = e.indices(bound["offsets"])
    fits = inside(e, offsets, [i64(1)] * len(offsets), window.shape)
    if fits is not None:
        e.stop(e.negated(fits), NO_CELL, call, _exact_cell(offsets, window))
    return moved(e, window, offsets)


def _number(e: FunctionEmitter, call: Call, given: Value) -> Value:
    """Return a number as cells hold it; one that none can hold is an error."""
    cut = e.b.convert("trunc", given, I32)
    if e.checked:
        is_other = e.b.compare("icmp ne", e.b.convert("sext", cut, I64), given)
        e.stop(is_other, "this number is none that a cell holds", call, Exact(TOO_LARGE, lambda: (given,)))
    return cut


@lowers("distributed.notify")
def _notify(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[()]:
    """Change a cell of a peer, after all that was written before."""
    e.flush()
    cell = _cell(e, call, _part_of(e, call, bound["target"], e.index(bound["peer"])), bound)
    value = e.index(bound["value"])
    _number(e, call, value)
    signal(e, call, cell, bound["target"], bound["op"] == NotifyOp.Set, value)
    return ()


@lowers("distributed.wait")
def _wait(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[()]:
    """Look at a cell until it is what is expected, or the run is over."""
    e.flush()
    b, window, cmp = e.b, bound["signal"], WaitCmp(bound["cmp"])
    cell = _cell(e, call, window, bound)
    expected = _number(e, call, e.index(bound["expected"]))
    abort = b.load(PTR, b.offset(record_of(e, window), i64(Record.ABORT), I64), 8)
    offsets = e.indices(bound["offsets"])

    def ended(held: Value) -> None:
        numbers = [b.convert("sext", number, I64) for number in (held, expected)]
        place = "its cell"
        if len(numbers) + len(offsets) <= len(NUMBERS):
            place = f"cell [{', '.join(f'{{{k}}}' for k, _ in enumerate(offsets, len(numbers)))}]"
            numbers += offsets
        text = f"this wait was ended: {place} is {{0}}, and it waits for {SIGNS[cmp]} {{1}}"
        e.fail(TRUE, ENDED, call, Exact(text, lambda: numbers))

    is_there = "icmp sge" if cmp is WaitCmp.Ge else "icmp eq"
    awaited(e, cell, abort, lambda held: b.compare(is_there, held, expected), ended)
    return ()
