"""Order: what pipes wait for, and which block of the grid this is.

Attributes: `src`, `dst` and `event` of flags; `pipe` and `event` of barriers and handshakes; `kind` of `mem_bar`.
"""

from __future__ import annotations

from typing import Any

from tilewright.arrays import np
from tilewright.core.expr import Expr, constant
from tilewright.dtypes import INT64
from tilewright.errors import AttributeValueError
from tilewright.ops.builder import known
from tilewright.pto.example import Example
from tilewright.pto.machine.cores import EVENTS, VECTOR, Core, number
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.memory import MOST_LANES
from tilewright.pto.machine.signals import signal, wait
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.text.form import Form, Layout, Slot, Typing, Word, free, tile
from tilewright.pto.types import I64, INDEX, Scalar

_PIPES = (Slot("src", "pipe"), Slot("dst", "pipe"), Slot("event", "event"))
_BY_VALUE = Form(
    "i?", words={"event": Word(Layout.SLOT, "i")}, slots=_PIPES, needed_slots=2, is_bracketed=True, untyped=1
)
_SYNCHRONIZED = (Slot("src", "sync_op_type"), Slot("dst", "sync_op_type"), Slot("event", "event"))
_HANDSHAKE = (Slot("pipe", "pipe"), Slot("event", "int"))
_BUFFER = (Slot("pipe", "pipe_event_type"), Slot("id", "int"), Slot("mode", "int"))


def _copied(op: str, x: Any, out: Any) -> Any:
    return x


_ORDERED = Example(
    "x: f32 8x64, out: f32 8x64",
    """
    %vx = pto.make_tensor_view %x, shape = [%c8, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
    %vo = pto.make_tensor_view %out, shape = [%c8, %c64], strides = [%c64, %c1] : !pto.tensor_view<?x?xf32>
    %px = pto.partition_view %vx, offsets = [%c0, %c0], sizes = [%c8, %c64] : !pto.tensor_view<?x?xf32> -> w8x64xf32
    %po = pto.partition_view %vo, offsets = [%c0, %c0], sizes = [%c8, %c64] : !pto.tensor_view<?x?xf32> -> w8x64xf32
    %t = pto.alloc_tile : t8x64xf32
    pto.tprefetch ins(%px : w8x64xf32) outs(%t : t8x64xf32)
    pto.set_ffts %x : !pto.ptr<f32, gm>
    pto.get_buf "PIPE_MTE2", 0, 0
    pto.tload ins(%px : w8x64xf32) outs(%t : t8x64xf32)
    pto.rls_buf "PIPE_MTE2", 0, 0
    pto.set_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    pto.wait_flag[<PIPE_MTE2>, <PIPE_V>, <EVENT_ID0>]
    pto.mem_bar "VST_VLD"
    pto.set_flag_dyn[<PIPE_V>, <PIPE_MTE3>, %c1]
    pto.wait_flag_dyn[<PIPE_V>, <PIPE_MTE3>, %c1]
    pto.record_event [#pto.sync_op_type<TVEC>, #pto.sync_op_type<TSTORE_VEC>, #pto.event<EVENT_ID2>]
    pto.wait_event [#pto.sync_op_type<TVEC>, #pto.sync_op_type<TSTORE_VEC>, #pto.event<EVENT_ID2>]
    pto.tsync ins(%t : t8x64xf32)
    pto.barrier <PIPE_ALL>
    pto.tstore ins(%t : t8x64xf32) outs(%po : w8x64xf32)
    pto.barrier_sync [#pto.sync_op_type<TSTORE_VEC>]
    pto.cmo.cacheinvalid %po single_cache_line : w8x64xf32
    pto.dcci %out "ENTIRE_DATA_CACHE", "CACHELINE_OUT" : !pto.ptr<f32, gm>
    pto.dsb "ALL"
    pto.pipe_barrier <PIPE_ALL>
    pto.fence.barrier_all #pto.fence_scope<gm>
    pto.cmo.cacheinvalid all #pto.address_space<gm>
    """,
    _copied,
)


def _numbered(op: str, out: Any) -> Any:
    return np.array([op.endswith("_num")], np.int64)


_NUMBERED = Example(
    "out: i64 1 in 7..7", "%r = {op}\npto.store_scalar %r, %out[%c0] : !pto.ptr<i64, gm>, i64", _numbered
)
_HANDED = Example(
    "x: f32 1, out: f32 1",
    """
    pto.section.cube {
    pto.sync.set <PIPE_FIX>, 1
    pto.sync.wait <PIPE_MTE1>, 0
    }
    pto.section.vector {
    pto.sync.wait <PIPE_MTE3>, 1
    %v = pto.load_scalar %x[%c0] : !pto.ptr<f32, gm> -> f32
    pto.store_scalar %v, %out[%c0] : !pto.ptr<f32, gm>, f32
    pto.sync.set <PIPE_MTE3>, 0
    }
    """,
    _copied,
)


@declare("pto.barrier pipe_barrier", Form(slots=(Slot("pipe", "pipe"),), is_leading=True), example=_ORDERED)
@declare("pto.set_flag wait_flag", Form(slots=_PIPES, is_bracketed=True))
@declare("pto.set_flag_dyn wait_flag_dyn", _BY_VALUE)
@declare("pto.record_event wait_event", Form(slots=_SYNCHRONIZED, is_bracketed=True))
@declare("pto.mem_bar dsb", Form(slots=(Slot("kind", "string"),), is_leading=True))
@declare("pto.dcci", free("x", phrase='%at "$lines"[, "$way"] : #at'))
@declare("pto.get_buf rls_buf", Form(slots=_BUFFER, needed_slots=2, is_leading=True))
@declare("pto.set_ffts", Form("x"), counts=I64)
@declare("pto.tsync", Form("x*", words={"ins": Word(Layout.TYPED, "x*")}))
@declare("pto.barrier_sync", Form(slots=(Slot("kind", "sync_op_type"),), is_bracketed=True))
@declare("pto.tprefetch", tile("y", "z"))
@declare("pto.cmo.cacheinvalid", free("x?", words="all single_cache_line", phrase="%at single_cache_line : #at"))
@declare("pto.fence.barrier_all", Form(slots=(Slot("scope", "fence_scope"),), is_leading=True))
def _in_order(m: Machine, op: Op) -> None:
    """A block runs its ops one after the other, so there is nothing to wait for."""


@declare("pto.sync.set", Form("i?", slots=_HANDSHAKE, needed_slots=1, is_leading=True, untyped=1), example=_HANDED)
def _signal(m: Machine, op: Op) -> None:
    """An event of other cores that run the kernel too; the cube reaches one vector core, or both as `a3` has it."""
    if m.core is not None:
        event, lane = _event(m, m.core, op)
        signal(m, ("event", event), lane)


@declare("pto.sync.wait", Form("i?", slots=_HANDSHAKE, needed_slots=1, is_leading=True, untyped=1))
def _await(m: Machine, op: Op) -> None:
    """What other cores that run the kernel too have signalled, as often as they did."""
    if m.core is not None:
        event, lane = _event(m, m.core, op)
        wait(m, ("event", event), lane)


def _event(m: Machine, core: Core, op: Op) -> tuple[int, int | None]:
    """Return the number of an event, and of the vector core that the cube means."""
    found = known(m.index(op.operands[0])) if op.operands else number(op, "event")
    if found is None or not 0 <= found < MOST_LANES * EVENTS:
        shown = "one that varies" if found is None else found
        raise AttributeValueError(f"`{op.name}` takes the constant number of an event, got {shown}", help="0 to 31")
    if core.kind == VECTOR or m.arch == "a3":
        return found, None
    return found % EVENTS, found // EVENTS


@declare("pto.get_l2_cache_offset", Form("", "i", Typing.IMPLIED, implied=I64), example=_NUMBERED)
def _offset_past_cache(m: Machine, op: Op) -> Expr:
    """How far from an address its memory is seen past the second cache: nowhere else here."""
    return constant(0, INT64)


@declare(
    "pto.get_block_idx get_block_num get_subblock_idx get_subblock_num",
    Form("", "i", Typing.IMPLIED, implied=I64),
    example=_NUMBERED,
)
def _block(m: Machine, op: Op) -> Expr:
    """Which block of a launch runs, or of how many."""
    numbers: dict[str, Expr] = {
        "pto.get_block_idx": m.blocks.index,
        "pto.get_block_num": m.blocks.count,
        "pto.get_subblock_idx": m.memory.number,
        "pto.get_subblock_num": m.b.index(1 if m.core is None else m.core.meeting.lanes),
    }
    type_ = op.results[0].of(Scalar)
    number = numbers[op.name]
    return number if type_ is INDEX else m.b.cast(number, type_.dtype)
