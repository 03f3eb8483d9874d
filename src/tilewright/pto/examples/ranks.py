"""Examples of communication: two windows that are copied or meet, and signals that one rank sets and waits for."""

from __future__ import annotations

from typing import Any

from tilewright.arrays import np
from tilewright.pto.example import Example

_W, _WIDE, _T = "!pto.tensor_view<4x16xf32>", "!pto.tensor_view<8x16xf32>", "t4x16xf32"


def _view(name: str, pointer: str, rows: int = 4, cols: int = 16, element: str = "f32") -> str:
    shape = f"shape = [%c{rows}, %c{cols}], strides = [%c{cols}, %c1]"
    return f"%{name} = pto.make_tensor_view %{pointer}, {shape} : !pto.tensor_view<{rows}x{cols}x{element}>"


_VIEWS = "\n".join([
    "%half = pto.addptr %out, %c64 : !pto.ptr<f32, gm> -> !pto.ptr<f32, gm>", _view("vx", "x"),
    _view("low", "out"), _view("high", "half"), _view("both", "out", 8), f"%t = pto.alloc_tile : {_T}",
])  # fmt: skip


def _copied(op: str, x: Any, out: Any) -> Any:
    """Return what two windows of global memory hold, one below the other, when one or both are a third."""
    return np.concatenate([x, x if op.endswith("tbroadcast") else out[4:]])


def _from_one(line: str) -> Example:
    """Return a kernel in which a window is copied."""
    return Example("x: f32 4x16, out: f32 8x16", f"{_VIEWS}\n{line}", _copied)


def _meant(op: str, x: Any, y: Any, out: Any) -> Any:
    """Return what two windows of global memory hold, one below the other."""
    return np.concatenate([x + y, out[4:]] if op.endswith("treduce") else [x, y])


def _between(line: str) -> Example:
    """Return a kernel in which two windows are copied, or meet."""
    return Example("x: f32 4x16, y: f32 4x16, out: f32 8x16", f"{_view('vy', 'y')}\n{_VIEWS}\n{line}", _meant)


_GATHERED = f"pto.comm.tgather(%both, recv(%t), group(%vx, %vy) : {_WIDE}, {_T}, {_W}, {_W}) {{root = 0 : i32}}"
_REDUCED = "{reduceOp = #pto<reduce_op sum>, root = 0 : i32}"
_LATER = f"""
%bytes = pto.castptr %out : !pto.ptr<f32, gm> -> !pto.ptr<i8, gm>
%s = pto.comm.build_async_session(%t, %bytes : {_T}, !pto.ptr<i8, gm>) -> !pto.async_session
%e = pto.comm.tput_async(%low, %vx, %s : {_W}, {_W}, !pto.async_session) -> !pto.async_event
%f = pto.comm.tget_async(%high, %vy, %s : {_W}, {_W}, !pto.async_session) -> !pto.async_event
%done = pto.comm.wait_async_event(%e, %s : !pto.async_event, !pto.async_session) -> i1
%ended = pto.comm.test_async_event(%f, %s : !pto.async_event, !pto.async_session) -> i1
"""
_SIGNAL = "!pto.tensor_view<1x1xi32>"


def _noticed(op: str, out: Any) -> Any:
    return np.array([5, 1])


_SIGNALS = Example(
    "out: i32 2",
    f"""
    {_view("sig", "out", 1, 1, "i32")}
    pto.comm.tnotify(%sig, %i5 : {_SIGNAL}, i32) {{notifyOp = #pto<notify_op set>}}
    pto.comm.twait(%sig, %i5 : {_SIGNAL}, i32) {{cmp = #pto<wait_cmp ge>}}
    %is = pto.comm.ttest(%sig, %i4 : {_SIGNAL}, i32) {{cmp = #pto<wait_cmp gt>}} -> i1
    %r = arith.extui %is : i1 to i32
    pto.store_scalar %r, %out[%c1] : !pto.ptr<i32, gm>, i32
    """,
    _noticed,
)
EXAMPLES = {
    **dict.fromkeys(("comm.tput", "comm.tget"), _from_one(f"{{op}}(%low, %vx, buf(%t) : {_W}, {_W}, {_T})")),
    "comm.tbroadcast": _from_one(
        f"{{op}}(%vx, recv(%t), group(%low, %high) : {_W}, {_T}, {_W}, {_W}) {{root = 0 : i32}}"
    ),
    "comm.tgather": _between(_GATHERED),
    "comm.tscatter": _between(
        f"{_GATHERED}\n{{op}}(%both, recv(%t), group(%low, %high) : {_WIDE}, {_T}, {_W}, {_W}) {{root = 1 : i32}}"
    ),
    "comm.treduce": _between(f"{{op}}(%low, %t, recv(%t), group(%vx, %vy) : {_W}, {_T}, {_T}, {_W}, {_W}) {_REDUCED}"),
    "comm.tput_async": _between(_LATER),
    "comm.tnotify": _SIGNALS,
}
"""Kernels by the op that they run; others stand in these."""
