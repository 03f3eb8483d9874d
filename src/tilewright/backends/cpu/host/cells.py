"""Cells: signals in any memory. Who is one of several ranks looks until they are set, or until the run is over.

The context names the words of the rank that runs (`native/domains.py`), none where it is alone.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.backends.cpu.compute.addresses import times
from tilewright.backends.cpu.emit.function import FunctionEmitter, lowers
from tilewright.backends.cpu.emit.handlers import Bound
from tilewright.backends.cpu.emit.polls import poll_of
from tilewright.backends.cpu.emit.stops import Exact
from tilewright.backends.cpu.emit.values import Scalar, Tensor
from tilewright.backends.cpu.host.domains import LOST, are_shared, part_at, tell, word_of
from tilewright.core.enums import NotifyOp
from tilewright.core.expr import Call
from tilewright.dtypes import BOOL, INT32
from tilewright.native.context import Context
from tilewright.native.domains import NAPS, PAUSE, SLEEPS, SPINS, TURNS, Record, Touch
from tilewright.native.llvm import I1, I32, I64, PTR, TRUE, Value, i64
from tilewright.ops.cells import ALONE, SIGNS

ENDED = "this wait was ended before its cell was what it waits for"
NOT_OWN = "this signal is another rank's, which shares no memory with the one that looks at it"
_COMPARED = {"eq": "eq", "ne": "ne", "gt": "sgt", "ge": "sge", "lt": "slt", "le": "sle"}


def awaited(
    e: FunctionEmitter, cell: Value, abort: Value, there: Callable[[Value], Value], ended: Callable[[Value], None]
) -> None:
    """Emit looks at a cell until it is `there`, or the run is over: then what that leads to, and the way out."""
    b = e.b
    poll_of(b.module)
    for text in PAUSE:
        b.module.declare(text)
    times, look, again, over, done = b.slot(I64), *map(b.label, ("look", "again", "over", "done"))
    b.store(i64(0), times, 8)
    b.do(f"br label %{look}")
    b.begin(look)
    held = looked(e, cell)
    b.do(f"br {there(held)}, label %{done}, label %{again}")
    b.begin(again)
    count = b.op("add", b.load(I64, times, 8), i64(1))
    b.store(count, times, 8)
    is_over = b.call(I1, "rank.pause", e.context, abort, count)
    b.do(f"br {is_over}, label %{over}, label %{look}")
    b.begin(over)
    ended(held)
    b.do(f"br label %{e.exit}")
    b.begin(done)
    with b.when(b.compare("icmp sgt", b.load(I64, times, 8), i64(TURNS))):
        b.do(f"call void @rank.turned({abort})")


def looked(e: FunctionEmitter, cell: Value) -> Value:
    """Return what a cell holds; nothing behind this look comes earlier."""
    return e.b.value(I32, f"load atomic i32, {cell} acquire, align 4")


def _own(e: FunctionEmitter, call: Call, bound: Bound) -> Value:
    """Return where a cell lies; one in a copy of the rank's own part lies in that, and in another's it is an error."""
    b, cell, window = e.b, bound["cell"].pointer, bound["window"]
    if window is None:
        return cell
    copy, nbytes = part_at(e, window, word_of(e, window, Record.RANK)), i64(INT32.get_byte())
    for extent in window.shape:
        nbytes = times(e, nbytes, extent)
    start, at = (b.convert("ptrtoint", each, I64) for each in (copy, cell))
    offset = b.op("sub", at, start)
    is_own = b.compare("icmp ult", offset, nbytes)
    e.stop(b.op("and", e.negated(is_own), e.negated(are_shared(e, window))), NOT_OWN, call)
    return b.select(is_own, b.offset(window.pointer, offset, "i8"), cell)


def _words(e: FunctionEmitter) -> Value:
    """Return the words of the rank that runs, null where it is alone."""
    return e.b.load(PTR, e.b.offset(e.context, i64(Context.WAITS), I64), 8)


def _holds(e: FunctionEmitter, bound: Bound, held: Value) -> Value:
    number = e.b.convert("trunc", e.index(bound["value"]), I32)
    return e.b.compare(f"icmp {_COMPARED[bound['cmp']]}", held, number)


@lowers("distributed.post")
def _post(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[()]:
    """Change a cell, after all that was written before."""
    e.flush()
    signal(e, call, bound["cell"].pointer, bound["window"], bound["op"] == NotifyOp.Set, e.index(bound["value"]))
    return ()


def signal(e: FunctionEmitter, call: Call, cell: Value, window: Tensor | None, is_set: bool, value: Value) -> None:
    """Emit that a cell is changed in one step; where it lies in a copy, whoever its window names is told."""
    number = e.b.convert("trunc", value, I32)

    def signalled() -> Value:
        how = "xchg" if is_set else "add"  # which comes after stores that bypass the caches, too
        e.b.value(I32, f"atomicrmw {how} {cell}, {number} acq_rel")
        return i64(0)

    def told() -> Value:
        assert window is not None
        return tell(e, window, Touch.SET if is_set else Touch.RAISE, cell, [value])

    if window is None:
        signalled()
        return
    failed = e.b.either(are_shared(e, window), signalled, told)
    e.stop(e.b.compare("icmp ne", failed, i64(0)), LOST, call)


@lowers("distributed.until")
def _until(e: FunctionEmitter, call: Call, bound: Bound) -> tuple[()]:
    """Wait for a cell; what is not there yet never will be where nobody else runs."""
    e.flush()
    b, cell, words = e.b, _own(e, call, bound), _words(e)
    number = b.convert("trunc", e.index(bound["value"]), I32)
    text = f"this wait was ended: a signal is {{0}}, and it waits for {SIGNS[bound['cmp']][0]} {{1}}"

    def ended(held: Value) -> None:
        e.fail(TRUE, ENDED, call, Exact(text, lambda: [b.convert("sext", each, I64) for each in (held, number)]))

    is_alone = b.compare("icmp eq", words, Value(PTR, "null"))
    with b.when(is_alone):
        broken = e.negated(_holds(e, bound, looked(e, cell)))
        e.fail(broken, ALONE, call)
        with b.when(broken):
            e.leave(e.exit)
    with b.when(e.negated(is_alone)):
        awaited(e, cell, words, lambda held: _holds(e, bound, held), ended)
    return ()


@lowers("distributed.holds")
def _look(e: FunctionEmitter, call: Call, bound: Bound) -> Scalar:
    """Look at a cell once; one of several ranks lets others run first, and is told where the run is over.

    For those who look on it waits for as long as it looks at the same number.
    """
    e.flush()
    b, words = e.b, _words(e)
    poll_of(b.module)
    for text in PAUSE:
        b.module.declare(text)
    is_one_of_many = b.compare("icmp ne", words, Value(PTR, "null"))
    with b.when(is_one_of_many):
        over = b.call(I1, "rank.pause", e.context, words, i64(SPINS))
        e.fail(over, ENDED, call)
        with b.when(over):
            e.leave(e.exit)
    held = looked(e, _own(e, call, bound))
    with b.when(is_one_of_many):
        seen = b.slot(I32)
        b.lines[0] += f"\n  store i32 0, {seen}"
        b.value(I64, f"atomicrmw add {b.offset(words, i64(NAPS), I64)}, i64 1 seq_cst")
        with b.when(b.compare("icmp ne", held, b.load(I32, seen, 4))):
            b.store(held, seen, 4)
            b.value(I64, f"atomicrmw add {b.offset(words, i64(SLEEPS), I64)}, i64 2 seq_cst")
    return Scalar(_holds(e, bound, held), BOOL)
