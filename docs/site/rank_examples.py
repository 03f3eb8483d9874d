"""Examples of many ranks: for each op of windows, signals, transfers and collectives, a program that two ranks run."""

from __future__ import annotations

import linecache
from functools import cache
from typing import Any

import numpy as np

from tilewright.core.op import OpSpec
from tilewright.explore.page import Access
from tilewright.explore.watched_turns import watched
from tilewright.runtime import RunConfig

HEAD = """import tilewright.language as pl
import tilewright.language.distributed as pld

Row, Rows = pl.Tensor[[1, 8], pl.FP32], pl.Tensor[[2, 1, 8], pl.FP32]
Window = pl.InOut[pld.DistributedTensor[[2, 8], pl.FP32]]
Signal = pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]]

@pl.jit
def step(x: Row, y: pl.Out[Row], data: Window, signal: Signal):
"""
SCOPE = "    with pl.at(level=pl.Level.CORE_GROUP"
TAIL = """    return y

@pl.jit.host
def example(x: Rows, y: pl.Out[Rows]):
    rows = pld.alloc_window_buffer([2, 8], dtype=pl.FP32)
    cells = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data, signal = pld.window(rows, [2, 8], dtype=pl.FP32), pld.window(cells, [2, 1], dtype=pl.INT32)
        step(x[r], y[r], data, signal, device=r)
    return y
"""
PEER = """ctx = pld.get_comm_ctx(data)
peer = (pld.rank(ctx) + 1) % pld.nranks(ctx)
"""
OWN = "pl.store(pl.load(x, [0, 0], [1, 8]), [{}, 0], data)\n"
FIRST = "y = pl.store(pl.load(data, [0, 0], [1, 8]), [0, 0], y)"
SENT = f"""{PEER}pld.tensor.put(data, peer=peer, src=x, dst_offsets=[0, 0], src_offsets=[0, 0], shape=[1, 8])
pld.system.notify(signal, peer=peer, offsets=[0, 0], value=1, op=pld.NotifyOp.Set)
"""
WAITED = "pld.system.wait(signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)\n"
PASSED = f"{SENT}{WAITED}{FIRST}"
POSTED = f"""{PEER}pld.tensor.put(data, peer=peer, src=x, dst_offsets=[0, 0], src_offsets=[0, 0], shape=[1, 8])
theirs, own = pl.slice(pld.part(signal, peer), [1, 1], [0, 0]), pl.slice(signal, [1, 1], [0, 0])
pld.post(theirs, 1, op=pld.NotifyOp.Set)
"""
BODIES = {
    **dict.fromkeys(("post", "until"), f'{POSTED}pld.until(own, 1, cmp="ge")\n{FIRST}'),
    "holds": f'{POSTED}while not pld.holds(own, 1, cmp="ge"):\n    pl.system.bar_all()\n{FIRST}',
    "part": f"{PEER}{OWN.format(0)}pld.tensor.barrier(signal)\n"
    "y = pl.store(pl.load(pld.part(data, peer), [0, 0], [1, 8]), [0, 0], y)",
    "remote_load": f"{PEER}{OWN.format(0)}pld.tensor.barrier(signal)\n"
    "y = pl.store(pld.tile.remote_load(data, peer=peer, offsets=[0, 0], shape=[1, 8]), [0, 0], y)",
    "remote_store": f"{PEER}pld.tile.remote_store(pl.load(x, [0, 0], [1, 8]), data, peer=peer, offsets=[0, 0])\n"
    f"pld.tensor.barrier(signal)\n{FIRST}",
    "get": f"{PEER}{OWN.format(0)}pld.tensor.barrier(signal)\n"
    "pld.tensor.get(y, peer=peer, src=data, dst_offsets=[0, 0], src_offsets=[0, 0], shape=[1, 8])",
    "barrier": f"{PEER}pld.tensor.put(data, peer=peer, src=x, dst_offsets=[0, 0], src_offsets=[0, 0], shape=[1, 8])\n"
    f"pld.tensor.barrier(signal)\n{FIRST}",
    "allreduce": f"{OWN.format(0)}{OWN.format(1)}pld.tensor.allreduce(data, signal)\n{FIRST}",
    "broadcast": f"{OWN.format(0)}{OWN.format(1)}pld.tensor.broadcast(data, signal, root=0)\n{FIRST}",
    "allgather": f"pld.tensor.allgather(x, data, signal)\n{FIRST}",
    "reduce_scatter": f"{OWN.format(0)}{OWN.format(1)}pld.tensor.reduce_scatter(data, signal)\n{FIRST}",
    "all_to_all": f"both = pl.create_tensor([2, 8], dtype=pl.FP32)\n{OWN.format(0).replace('data', 'both')}"
    f"{OWN.format(1).replace('data', 'both')}pld.tensor.all_to_all(both, data, signal)\n{FIRST}",
    "all_to_all_v": "rows = pl.create_tensor([2, 8], dtype=pl.FP32)\n"
    f"{OWN.format(0).replace('data', 'rows')}{OWN.format(1).replace('data', 'rows')}"
    "sent = pl.create_tensor([2, 1], dtype=pl.INT32)\nfor r in pl.range(2):\n    pl.write(sent, [r, 0], 1)\n"
    f"pld.tensor.all_to_all_v(rows, data, signal, sent, counts)\n{FIRST}",
    "fetch": f"{PEER}{OWN.format(0)}pld.tensor.barrier(signal)\npeers = pld.part(data, peer)\npld.fetch(data, peers)\n"
    "y = pl.store(pl.load(peers, [0, 0], [1, 8]), [0, 0], y)",
    "send": f"{PEER}peers = pld.part(data, peer)\npl.store(pl.load(x, [0, 0], [1, 8]), [0, 0], peers)\n"
    f"pld.send(data, peers)\npld.tensor.barrier(signal)\n{FIRST}",
    "copies": f"{OWN.format(0)}pl.write(signal, [0, 0], pld.copies(pld.get_comm_ctx(data)))\n{FIRST}",
}
MORE = (
    ("signal: Signal)", "signal: Signal, counts: Signal)"),
    ("    for r", "    more = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)\n    for r"),
    ("signal, device", "signal, pld.window(more, [2, 1], dtype=pl.INT32), device"),
)
"""What the frame has besides, where a window holds numbers of rows."""
GROUPS = ("signals", "cells", "ranks", "window_buffers", "collectives", "transfers", "distant")


def ranked_kernel(spec: OpSpec, noun: str) -> str:
    """Return a program of two ranks that uses an op, or nothing."""
    if noun not in GROUPS:
        return ""
    head, tail = HEAD, TAIL
    if spec.name == "all_to_all_v":
        head, tail = head.replace(*MORE[0]), tail.replace(*MORE[1]).replace(*MORE[2])
    text = f"{head}{_tasks(spec.name)}{tail}"
    return text if f".{spec.name}(" in text else ""


def _tasks(name: str) -> str:
    """Return what a rank does: one task, or where one waits for itself, three."""
    if name != "defer_wait":
        return f"{SCOPE}):\n{_indented(BODIES.get(name, PASSED))}"
    waits = f"{SCOPE}) as arrived:\n{_indented(WAITED.replace('wait', 'defer_wait'))}"
    return f"{SCOPE}):\n{_indented(SENT)}{waits}{SCOPE}, deps=[arrived]):\n{_indented(FIRST)}"


def _indented(text: str) -> str:
    """Return lines as they stand in a task."""
    return "".join(f"        {line}\n" for line in text.splitlines())


class Argument:
    """An argument as the interpreter is given one."""

    def __init__(self, array: Any) -> None:
        self.array = array


@cache
def touched_by_ranks(text: str) -> Access:
    """Return what two ranks touch that run such a program; TilewrightError where it is wrong."""
    name, names = f"<example {abs(hash(text))}>", dict[str, Any]()
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), names)
    rows = [np.arange(16, dtype=np.float32).reshape(2, 1, 8) for _ in range(2)]
    program = names["example"].compile(*rows, config=RunConfig(platform="interpret", device_ids=[0, 1])).source
    return watched(program, "example", [*map(Argument, rows)], lambda span: 0, ranks=2)
