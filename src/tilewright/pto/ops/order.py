"""Order: what pipes wait for, and which block of the grid this is.

Attributes: `src`, `dst` and `event` of flags; `pipe` and `event` of barriers and handshakes; `kind` of `mem_bar`.
"""

from __future__ import annotations

from tilewright.core.expr import Expr
from tilewright.errors import AttributeValueError
from tilewright.ops.builder import known
from tilewright.pto.machine.cores import EVENTS, VECTOR, Core, number
from tilewright.pto.machine.machine import Machine
from tilewright.pto.machine.memory import MOST_LANES
from tilewright.pto.machine.signals import signal, wait
from tilewright.pto.module import Op
from tilewright.pto.op import declare
from tilewright.pto.text.form import Form, Layout, Slot, Typing, Word, tile
from tilewright.pto.types import I64, INDEX, Scalar

_PIPES = (Slot("src", "pipe"), Slot("dst", "pipe"), Slot("event", "event"))
_BY_VALUE = Form(
    "i?", words={"event": Word(Layout.SLOT, "i")}, slots=_PIPES, needed_slots=2, is_bracketed=True, untyped=1
)
_SYNCHRONIZED = (Slot("src", "sync_op_type"), Slot("dst", "sync_op_type"), Slot("event", "event"))
_HANDSHAKE = (Slot("pipe", "pipe"), Slot("event", "int"))
_BUFFER = (Slot("pipe", "pipe_event_type"), Slot("id", "int"), Slot("mode", "int"))


@declare("pto.barrier", Form(slots=(Slot("pipe", "pipe"),), is_leading=True))
@declare("pto.set_flag wait_flag", Form(slots=_PIPES, is_bracketed=True))
@declare("pto.set_flag_dyn wait_flag_dyn", _BY_VALUE)
@declare("pto.record_event wait_event", Form(slots=_SYNCHRONIZED, is_bracketed=True))
@declare("pto.mem_bar", Form(slots=(Slot("kind", "string"),), is_leading=True))
@declare("pto.get_buf rls_buf", Form(slots=_BUFFER, needed_slots=2, is_leading=True))
@declare("pto.set_ffts", Form("x"), counts=I64)
@declare("pto.tsync", Form("x*", words={"ins": Word(Layout.TYPED, "x*")}))
@declare("pto.barrier_sync", Form(slots=(Slot("kind", "sync_op_type"),), is_bracketed=True))
@declare("pto.tprefetch", tile("y", "z"))
def _in_order(m: Machine, op: Op) -> None:
    """A block runs its ops one after the other, so there is nothing to wait for."""


@declare("pto.sync.set", Form("i?", slots=_HANDSHAKE, needed_slots=1, is_leading=True, untyped=1))
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


@declare(
    "pto.get_block_idx get_block_num get_subblock_idx get_subblock_num",
    Form("", "i", Typing.IMPLIED, implied=I64),
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
