"""Machine forms: pointers, copies between memories, order between pipes, and where a block stands.

Attributes: `src`, `dst` and `event` of flags; `pipe` and `event` of barriers and handshakes; `kind` of `mem_bar`.
The clauses `nburst`, `loop` (innermost first) and `pad` hold a copy's bursts.
"""

from __future__ import annotations

from tilewright.pto.text.form import Form, Layout, Slot, Syntax, Typing, Word
from tilewright.pto.types import I64

_INDEX = {"offset": Word(Layout.INDEX, "i", required=True)}
_INDICES = {"indices": Word(Layout.INDEX, "ii*", required=True)}
_LOAD = Form("p", "s", words=_INDEX, index="offset")
_STORE = Form("sp", words=_INDEX, index="offset", indexed=1, order=(1, 0))

POINTERS = {
    "pto.castptr": Form("i|p", "p|i", family="ptr"),
    "pto.addptr": Form("pi", "p", untyped=1),
    "pto.load": _LOAD,
    "pto.load_scalar": _LOAD,
    "pto.store": _STORE,
    "pto.store_scalar": _STORE,
    "pto.declare_local_array": Form("", "o", Typing.RESULT),
    "pto.local_array_get": Form("o", "s", words=_INDICES, index="indices"),
    "pto.local_array_set": Form("os", words=_INDICES, index="indices"),
}

_BURSTS = {
    "nburst": Word(Layout.PLAIN, "iii", required=True),
    "loop": Word(Layout.PLAIN, "iii", repeated=True),
}
_LOOP_SETTINGS = (
    *("set_loop1_stride_ubtoout", "set_loop2_stride_ubtoout", "set_loop1_stride_outtoub", "set_loop2_stride_outtoub"),
    *("set_loop_size_ubtoout", "set_loop_size_outtoub"),
)

COPIES = {
    "pto.mte_gm_ub": Form("glii", words={**_BURSTS, "pad": Word(Layout.PLAIN, "si?i?")}),
    "pto.mte_ub_gm": Form("lgi", words=_BURSTS),
    "pto.mte_ub_ub": Form("lli", words=_BURSTS),
    "pto.mte_ub_l1": Form("lpi", words=_BURSTS),
    "pto.copy_gm_to_ubuf": Form("glx*"),
    "pto.copy_ubuf_to_gm": Form("lgx*"),
    **{f"pto.{name}": Form("ii") for name in _LOOP_SETTINGS},
}

_FLAG = Form(slots=(Slot("src", "pipe"), Slot("dst", "pipe"), Slot("event", "event")), is_bracketed=True)
_FLAG_BY_VALUE = Form(
    "i?",
    words={"event": Word(Layout.SLOT, "i")},
    slots=(Slot("src", "pipe"), Slot("dst", "pipe"), Slot("event", "event")),
    needed_slots=2,
    is_bracketed=True,
    untyped=1,
)
_EVENT = Form(
    slots=(Slot("src", "sync_op_type"), Slot("dst", "sync_op_type"), Slot("event", "event")), is_bracketed=True
)
_HANDSHAKE = Form("i?", slots=(Slot("pipe", "pipe"), Slot("event", "int")), needed_slots=1, is_leading=True, untyped=1)
_BUFFER = Form(
    slots=(Slot("pipe", "pipe_event_type"), Slot("id", "int"), Slot("mode", "int")), needed_slots=2, is_leading=True
)
_WHERE = Form("", "i", Typing.IMPLIED, implied=I64)

SYNC = {
    "pto.barrier": Form(slots=(Slot("pipe", "pipe"),), is_leading=True),
    "pto.set_flag": _FLAG,
    "pto.wait_flag": _FLAG,
    "pto.set_flag_dyn": _FLAG_BY_VALUE,
    "pto.wait_flag_dyn": _FLAG_BY_VALUE,
    "pto.record_event": _EVENT,
    "pto.wait_event": _EVENT,
    "pto.sync.set": _HANDSHAKE,
    "pto.sync.wait": _HANDSHAKE,
    "pto.mem_bar": Form(slots=(Slot("kind", "string"),), is_leading=True),
    "pto.get_buf": _BUFFER,
    "pto.rls_buf": _BUFFER,
    "pto.set_ffts": Form("x"),
    "pto.tsync": Form("x*"),
    "pto.declare_eventid_array": Form("", "o", Typing.RESULT),
    "pto.eventid_array_get": Form("o", "i", words=_INDICES, index="indices"),
    "pto.eventid_array_set": Form("oi", words=_INDICES, index="indices", untyped=1),
}

PLACES = {
    "pto.get_block_idx": _WHERE,
    "pto.get_block_num": _WHERE,
    "pto.get_subblock_idx": _WHERE,
    "pto.get_subblock_num": _WHERE,
    "pto.section.cube": Form(syntax=Syntax.REGION),
    "pto.section.vector": Form(syntax=Syntax.REGION),
}
