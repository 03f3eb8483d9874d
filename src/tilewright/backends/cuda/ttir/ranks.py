"""Ranks: windows, the parts of peers, and signals between ranks whose kernels run at the same time.

In front of a window's memory lies the address of its domain's record, as on the processor (`native/domains.py`), in
memory of the GPU. A part of a peer is a tensor at another address. A signal is one store or addition of the first
thread, behind all that its block did: released to the whole system, so to other GPUs. Who waits looks at its cell with
that thread, while the others of its block stand at a barrier; the words by which the host sees that it waits, and ends
it, are the host's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.backends.cuda.ttir import extents
from tilewright.backends.cuda.ttir.addresses import checked, offsets_of, place
from tilewright.backends.cuda.ttir.kernel import Kernel
from tilewright.backends.cuda.ttir.recipes import Bound, recipe
from tilewright.backends.cuda.ttir.text import I32, I64, Value, pointer_to
from tilewright.backends.cuda.ttir.values import ANY, Binding, Extent, Scalar, Tensor
from tilewright.core.enums import NotifyOp, WaitCmp
from tilewright.core.expr import Call, Const
from tilewright.dtypes import INT32
from tilewright.native.context import INDEX
from tilewright.native.domains import NAPS, SLEEPS, Record
from tilewright.ops.signals import SIGNS, TOO_LARGE

ALIGNED = "{tt.divisibility = dense<16> : tensor<1xi32>}"
"""Says that parts begin where a row of elements can be moved at once."""

SPINS, TURNS, NAP = 64, 4096, 20_000
"""How often a wait looks before it looks whether the run is over, too, how often before it sleeps, and how long: ns."""

_FIRST = "mov.b32 $0, 0; mov.u32 t, %tid.x; setp.ne.u32 p, t, 0; @p bra DONE;"
"""Sends all threads of a block but the first to the end."""

NOTIFY = f"{{ .reg .pred p; .reg .b32 t; {_FIRST} fence.acq_rel.sys; SIGNAL DONE: }}"
"""A signal: given the address of the cell and a number."""

SIGNALS = {
    NotifyOp.Set: "st.release.sys.global.b32 [$1], $2;",
    NotifyOp.AtomicAdd: "red.release.sys.global.add.s32 [$1], $2;",
}

WAIT = (
    f"{{ .reg .pred p; .reg .b32 t, v; .reg .b64 n, w; {_FIRST} mov.b64 n, 0; "
    "LOOK: ld.acquire.sys.global.b32 v, [$1]; setp.COMPARED.s32 p, v, $2; @p bra LEAVE; add.s64 n, n, 1; "
    f"setp.lt.s64 p, n, {SPINS}; @p bra LOOK; "
    f"setp.lt.s64 p, n, {TURNS}; @p bra ASK; setp.gt.s64 p, n, {TURNS}; @p bra REST; "
    f"red.relaxed.sys.global.add.u64 [$3+{8 * SLEEPS}], 1; "
    f"REST: red.relaxed.sys.global.add.u64 [$3+{8 * NAPS}], 1; nanosleep.u32 {NAP}; "
    "ASK: ld.relaxed.sys.global.b64 w, [$3]; setp.eq.s64 p, w, 0; @p bra LOOK; "
    "cvt.s64.s32 w, v; shl.b64 w, w, 32; or.b64 w, w, $5; st.relaxed.sys.global.b64 [$4], w; "
    f"LEAVE: setp.lt.s64 p, n, {TURNS}; @p bra DONE; red.relaxed.sys.global.add.u64 [$3+{8 * SLEEPS}], 1; DONE: }}"
)
"""A wait: given the address of the cell, what is expected, the words of the rank, that of errors, and the number of
the error that it was ended. Behind the last look nothing of the block comes earlier."""


@recipe("distributed.rank")
def _rank(k: Kernel, call: Call, bound: Bound) -> Scalar:
    return _word(k, bound["ctx"], Record.RANK)


@recipe("distributed.nranks")
def _nranks(k: Kernel, call: Call, bound: Bound) -> Scalar:
    return _word(k, bound["ctx"], Record.COUNT)


@recipe("distributed.copies")
def _copies(k: Kernel, call: Call, bound: Bound) -> Scalar:
    return _word(k, bound["ctx"], Record.COPIES)


def _word(k: Kernel, window: Tensor, word: int) -> Scalar:
    return Scalar(k.t.convert("arith.trunci", _loaded(k, _record(k, window), word), I32), INT32)


@recipe("distributed.part")
def _part(k: Kernel, call: Call, bound: Bound) -> Tensor:
    return _part_of(k, call, bound["target"], k.index(bound["peer"]))


@recipe("distributed.notify")
def _notify(k: Kernel, call: Call, bound: Bound) -> Binding:
    """Change a cell of a peer, after all that was written before."""
    window = _part_of(k, call, bound["target"], k.index(bound["peer"]))
    cell, value = _cell(k, call, window, bound["offsets"]), _number(k, call, bound["value"])
    k.barrier()
    do(k, NOTIFY.replace("SIGNAL", SIGNALS[NotifyOp(bound["op"])]), cell, value)
    return ()


@recipe("distributed.wait")
def _wait(k: Kernel, call: Call, bound: Bound) -> Binding:
    """Look at a cell until it is what is expected, or the run is over."""
    window, cmp = bound["signal"], WaitCmp(bound["cmp"])
    cell, expected = _cell(k, call, window, bound["offsets"]), _number(k, call, bound["expected"])
    said = call.args[_EXPECTED]
    wanted = str(int(said.value)) if isinstance(said, Const) else "what is expected"
    number = k.noted(f"this wait was ended: its cell is {INDEX}, and it waits for {SIGNS[cmp]} {wanted}", call.span)
    words = _loaded(k, _record(k, window), Record.ABORT)
    k.facts.waits = True
    k.barrier()
    looking = WAIT.replace("COMPARED", "ge" if cmp is WaitCmp.Ge else "eq")
    do(k, looking, cell, expected, words, address(k, k.errors()), number)
    k.barrier()
    return ()


_EXPECTED = 2
"""Which operand of a wait says what it waits for."""


def _record(k: Kernel, window: Tensor) -> Value:
    """Return where the record of a window's domain lies."""
    pointer = window.pointer
    words = k.t.op(f"tt.bitcast {pointer} : {pointer.type} -> {pointer_to(I64)}", pointer_to(I64))
    return _pointer(k, _loaded(k, words, -1), I64)


def _loaded(k: Kernel, words: Value, number: int) -> Value:
    at = k.t.op(f"tt.addptr {words}, {k.t.integer(number)} : {words.type}, i64", words.element)
    return k.t.op(f"tt.load {at} : {at.type}", I64)


def _pointer(k: Kernel, address: Value, element: str) -> Value:
    made = pointer_to(element)
    return k.t.op(f"tt.int_to_ptr {address} {ALIGNED} : i64 -> {made}", made)


def address(k: Kernel, pointer: Value) -> Value:
    """Return where a pointer leads to, as a number."""
    return k.t.op(f"tt.ptr_to_int {pointer} : {pointer.type} -> i64", I64)


def _part_of(k: Kernel, call: Call, window: Tensor, peer: Extent) -> Tensor:
    """Return the part of a window that a peer holds; one that is none is an error, and the first rank's instead."""
    k.facts.reaches = True
    t, record, asked = k.t, _record(k, window), extents.held(k.t, peer)
    if k.checked:
        is_other = t.compare("cmpi uge", asked, _loaded(k, record, Record.COUNT))
        k.fail(is_other, f"peer {INDEX} is no rank of the domain", call.span, lambda: asked)
        asked = t.select(is_other, t.integer(0), asked)
    at = t.op(f"tt.addptr {record}, {asked} : {record.type}, i64", record.element)
    start = _pointer(k, _loaded(k, at, Record.PARTS), window.pointer.element.removeprefix("!tt.ptr<")[:-1])
    return replace(window, pointer=start, root=ANY, planes=None)


def _cell(k: Kernel, call: Call, window: Tensor, offsets: Sequence[Scalar]) -> Value:
    """Return the address of a cell; one that is none is an error, and the first one instead."""
    t, ones = k.t, (1,) * len(window.shape)
    fits = checked(k, call, offsets_of(call, "offsets"), "this is no cell of the window", ones, window.shape)
    found = address(k, place(k, window, k.indices(offsets)))
    return found if fits is None else t.select(fits, found, address(k, window.pointer))


def _number(k: Kernel, call: Call, scalar: Scalar) -> Value:
    """Return a number as cells hold it; one that none can hold is an error."""
    t, given = k.t, extents.held(k.t, k.index(scalar))
    cut = t.convert("arith.trunci", given, I32)
    if scalar.known is None and scalar.value.element == I64:
        is_other = t.compare("cmpi ne", t.convert("arith.extsi", cut, I64), given)
        k.fail(is_other, TOO_LARGE.format("this"), call.span)
    return cut


def do(k: Kernel, instructions: str, *operands: Value) -> Value:
    """Write instructions of the GPU that touch memory; return what they leave in their first register."""
    k.facts.reaches = True
    registers = ",".join(["=&r", *("l" if each.element == I64 else "r" for each in operands)])
    said = f'{{constraints = "{registers}", packed_element = 1 : i32, pure = false}}'
    given, types = (", ".join(each) for each in zip(*((str(value), value.type) for value in operands), strict=True))
    return k.t.op(f'tt.elementwise_inline_asm "{instructions}" {said} {given} : {types} -> i32', I32)
