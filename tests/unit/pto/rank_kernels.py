"""Hand-written kernels of three ranks, which reach each other's windows by pointers, and what NumPy says they leave."""
# pyright: reportUnknownParameterType=false

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright import pto
from tilewright.runtime import RunConfig

np = cast("Any", numpy)
RANKS, ROWS, COLS = 3, 4, 16
NR = pl.dynamic("NR")
Block = pl.Tensor[[ROWS, COLS], pl.FP32]
Blocks = pl.Tensor[[NR, ROWS, COLS], pl.FP32]
Wide = pl.InOut[pl.Tensor[[RANKS * ROWS, COLS], pl.FP32]]
Wides = pl.InOut[pl.Tensor[[NR, RANKS * ROWS, COLS], pl.FP32]]
Window = pl.InOut[pld.DistributedTensor[[ROWS, COLS], pl.FP32]]
Signals = pl.InOut[pld.DistributedTensor[[1, 4], pl.INT32]]

W, G, ONE, FOUR = (f"!pto.tensor_view<{shape}>" for shape in ("4x16xf32", "12x16xf32", "1x1xi32", "1x4xi32"))
T = "!pto.tile_buf<vec, 4x16xf32>"


def _view(name: str, pointer: str, rows: int, cols: int, type_: str, at: str = "") -> str:
    moved = ""
    if at:
        element = "!pto.ptr<i32>" if type_.endswith("i32>") else "!pto.ptr<f32>"
        moved, pointer = f"%p_{name} = pto.addptr {pointer}, {at} : {element} -> {element}\n", f"%p_{name}"
    shape = f"shape = [%c{rows}, %c{cols}], strides = [%c{cols}, %c1]"
    return f"{moved}%{name} = pto.make_tensor_view {pointer}, {shape} : {type_}"


def _text(body: str) -> str:
    parts = [_view(f"w{r}", f"%pw{r}", ROWS, COLS, W) for r in range(RANKS)]
    cells = [_view(f"s{r}{k}", f"%ps{r}", 1, 1, ONE, f"%c{k}") for r in range(RANKS) for k in range(4)]
    rows = [_view(f"all{r}", f"%ps{r}", 1, 4, FOUR) for r in range(RANKS)]
    views = "\n".join([_view("vx", "%x", ROWS, COLS, W), _view("vy", "%y", 12, COLS, G), *parts, *cells, *rows])
    low = "\n".join(_view(f"y{r}", "%y", ROWS, COLS, W, f"%c{64 * r}") for r in range(RANKS))
    numbers = "\n".join(f"%c{n} = arith.constant {n} : index" for n in (0, 1, 2, 3, 4, 12, 16, 64, 128))
    signals = "\n".join(f"%i{n} = arith.constant {n} : i32" for n in range(8))
    pointers = ", ".join(
        [f"%pw{r}: !pto.ptr<f32>" for r in range(RANKS)] + [f"%ps{r}: !pto.ptr<i32>" for r in range(RANKS)]
    )
    return f"""module {{
  func.func @ranks(%x: !pto.ptr<f32>, %y: !pto.ptr<f32>, {pointers}, %me: i32) {{
    {numbers}
    {signals}
    {views}
    {low}
    %t = pto.alloc_tile : {T}
    {body}
    return
  }}
}}
"""


def notify(rank: int, cell: int, value: int, op: str = "set") -> str:
    """Return a signal to a rank."""
    return f"pto.comm.tnotify(%s{rank}{cell}, %i{value} : {ONE}, i32) {{notifyOp = #pto<notify_op {op}>}}"


def wait(rank: int, cell: int, cmp: str, value: int) -> str:
    """Return a wait for a signal."""
    return f"pto.comm.twait(%s{rank}{cell}, %i{value} : {ONE}, i32) {{cmp = #pto<wait_cmp {cmp}>}}"


def put(there: str, here: str, options: str = "") -> str:
    """Return a copy to a window."""
    return f"pto.comm.tput(%{there}, %{here}, buf(%t) : {W}, {W}, {T}) {options}"


def get(here: str, there: str) -> str:
    """Return a copy from a window."""
    return f"pto.comm.tget(%{here}, %{there}, buf(%t) : {W}, {W}, {T})"


def _each(lines: Callable[[int], list[str]]) -> str:
    """Return what every rank does, each its own."""
    made: list[str] = []
    for rank in range(RANKS):
        is_me = f"%is{rank} = arith.cmpi eq, %me, %i{rank} : i32"
        made.append("\n".join([is_me, f"scf.if %is{rank} {{", *lines(rank), "}"]))
    return "\n".join(made)


def _ring_put(me: int) -> list[str]:
    there = (me + 1) % RANKS
    return [put(f"w{there}", "vx"), notify(there, 0, 1), wait(me, 0, "ge", 1), get("y0", f"w{me}")]


def _ring_get(me: int) -> list[str]:
    before, there = (me - 1) % RANKS, (me + 1) % RANKS
    ready = [put(f"w{me}", "vx"), notify(before, 1, 5), wait(me, 1, "eq", 5)]
    return [*ready, get("y0", f"w{there}"), notify(there, 2, 2), wait(me, 2, "gt", 1)]


def _added(me: int) -> list[str]:
    add = "{atomicType = #pto<atomic_type atomic_add>}"
    mine = [put("w0", "vx", add), notify(0, 0, 2, "atomic_add")]
    return [*mine, wait(0, 0, "eq", 6), get("y0", "w0")] if me == 0 else mine


def _barrier(me: int) -> list[str]:
    told = [notify(there, me, 1) for there in range(RANKS)]
    last = notify(me, 3, 1)
    met = f"pto.comm.twait(%all{me}, %i0 : {FOUR}, i32) {{cmp = #pto<wait_cmp ne>}}"
    return [put(f"w{me}", "vx"), *told, last, met, *(get(f"y{r}", f"w{r}") for r in range(RANKS))]


def _polled(me: int) -> list[str]:
    there, look = (me + 1) % RANKS, f"pto.comm.ttest(%s{me}0, %i3 : {ONE}, i32) {{cmp = #pto<wait_cmp lt>}} -> i1"
    loop = ["scf.while : () -> () {", f"%again{me} = {look}", f"scf.condition(%again{me})", "} do {", "scf.yield", "}"]
    back = [notify((me - 1) % RANKS, 1, 4), wait(me, 1, "ge", 4), wait(me, 1, "le", 4), wait(me, 2, "lt", 1)]
    return [put(f"w{there}", "vx"), notify(there, 0, 3), *loop, get("y0", f"w{me}"), *back]


def _collective(op: str) -> Callable[[int], list[str]]:
    group = f"group({', '.join(f'%w{r}' for r in range(RANKS))})"
    types, root = ", ".join([W] * RANKS), "root = 0 : i32"
    said = {
        "tbroadcast": f"pto.comm.tbroadcast(%vx, recv(%t), {group} : {W}, {T}, {types}) {{{root}}}",
        "tgather": f"pto.comm.tgather(%vy, recv(%t), {group} : {G}, {T}, {types}) {{{root}}}",
        "tscatter": f"pto.comm.tscatter(%vy, recv(%t), {group} : {G}, {T}, {types}) {{{root}}}",
        "treduce": f"pto.comm.treduce(%y0, %t, recv(%t), {group} : {W}, {T}, {T}, {types}) "
        f"{{reduceOp = #pto<reduce_op max>, {root}}}",
    }[op]

    def lines(me: int) -> list[str]:
        mine = [put(f"w{me}", "vx"), notify(0, 0, 1, "atomic_add")]
        if me:
            return [*mine, wait(me, 1, "ge", 1), get("y1", f"w{me}")]
        return [*mine, wait(0, 0, "ge", RANKS), said, *(notify(r, 1, 1) for r in range(1, RANKS)), get("y1", "w0")]

    return lines


def _last(x: Any, y: Any) -> Any:
    y[:, 0] = np.roll(x, 1, 0)
    return y


def _next(x: Any, y: Any) -> Any:
    y[:, 0] = np.roll(x, -1, 0)
    return y


def _sum(x: Any, y: Any) -> Any:
    y[0, 0] = x.sum(0)
    return y


def _all(x: Any, y: Any) -> Any:
    return np.broadcast_to(x, y.shape).copy()


def _told(op: str) -> Callable[[Any, Any], Any]:
    def meant(x: Any, y: Any) -> Any:
        windows = {"tbroadcast": [x[0]] * RANKS, "tscatter": list(y[0].copy())}.get(op, list(x))
        if op == "tgather":
            y[0] = x
        if op == "treduce":
            y[0, 0] = x.max(0)
        for rank, window in enumerate(windows):
            y[rank, 1] = window
        return y

    return meant


@dataclass(frozen=True)
class Case:
    """A kernel, and what it makes of inputs and of what outputs held: of each rank, blocks below each other."""

    kernel: Any
    meant: Callable[[Any, Any], Any]


Floats: Any = pto.ptr(pto.f32, "gm")
Cells: Any = pto.ptr(pto.i32, "gm")
Number: Any = pto.i32


def case_of(lines: Callable[[int], list[str]], meant: Callable[[Any, Any], Any]) -> Case:
    """Return a case whose ranks do what lines say for each."""

    @pto.jit(source=_text(_each(lines)))
    def ranks(
        x: Floats, y: Floats, pw0: Floats, pw1: Floats, pw2: Floats, ps0: Cells, ps1: Cells, ps2: Cells, me: Number
    ) -> None: ...

    return Case(ranks, meant)


CASES = {
    "a ring of puts": case_of(_ring_put, _last),
    "a ring of gets": case_of(_ring_get, _next),
    "sums in one step": case_of(_added, _sum),
    "a barrier of several signals": case_of(_barrier, _all),
    "looking again": case_of(_polled, _last),
    **{op: case_of(_collective(op), _told(op)) for op in ("tbroadcast", "tgather", "tscatter", "treduce")},
}


def host_of(case: Case) -> Any:
    """Return a host function whose ranks launch a kernel."""
    kernel = case.kernel

    @pl.jit
    def chip(x: Block, y: Wide, window: Window, signals: Signals):
        ctx = pld.get_comm_ctx(window)
        w0, w1, w2 = pld.part(window, 0), pld.part(window, 1), pld.part(window, 2)
        s0, s1, s2 = pld.part(signals, 0), pld.part(signals, 1), pld.part(signals, 2)
        kernel[1, None](x, y, w0, w1, w2, s0, s1, s2, pld.rank(ctx))
        return y

    @pl.jit.host
    def host(x: Blocks, y: Wides):
        blocks = pld.alloc_window_buffer([ROWS, COLS], dtype=pl.FP32)
        cells = pld.alloc_window_buffer([1, 4], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            window = pld.window(blocks, [ROWS, COLS], dtype=pl.FP32)
            chip(x[r], y[r], window, pld.window(cells, [1, 4], dtype=pl.INT32), device=r)
        return y

    return host


def is_right(name: str, platform: str) -> bool:
    """Return whether a case leaves what NumPy says, in two calls behind each other."""
    case = CASES[name]
    host, rng = host_of(case), np.random.default_rng(0)
    config = RunConfig(platform=platform, device_ids=range(RANKS))
    for _ in range(2):
        x = rng.normal(size=(RANKS, ROWS, COLS)).astype(np.float32)
        y = rng.normal(size=(RANKS, RANKS * ROWS, COLS)).astype(np.float32)
        wanted = case.meant(x, y.reshape(RANKS, RANKS, ROWS, COLS).copy())
        host(x, y, config=config)
        if not np.allclose(y.reshape(wanted.shape), wanted, rtol=1e-6, atol=1e-6):
            return False
    return True
