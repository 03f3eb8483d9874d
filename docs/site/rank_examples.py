"""Examples of many ranks: for each op of windows, signals, transfers and collectives, a program that two ranks run."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np

from tilewright.core.op import OpSpec
from tilewright.errors import TilewrightError
from tilewright.runtime import RunConfig

HEAD = """import tilewright.language as pl
import tilewright.language.distributed as pld

Row, Rows = pl.Tensor[[1, 8], pl.FP32], pl.Tensor[[2, 1, 8], pl.FP32]
Window = pl.InOut[pld.DistributedTensor[[2, 8], pl.FP32]]
Signal = pl.InOut[pld.DistributedTensor[[2, 1], pl.INT32]]

@pl.jit
def step(x: Row, y: pl.Out[Row], data: Window, signal: Signal):
    with pl.at(level=pl.Level.CORE_GROUP):
"""
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
PASSED = f"""{PEER}pld.tensor.put(data, peer=peer, src=x, dst_offsets=[0, 0], src_offsets=[0, 0], shape=[1, 8])
pld.system.notify(signal, peer=peer, offsets=[0, 0], value=1, op=pld.NotifyOp.Set)
pld.system.wait(signal, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
{FIRST}"""
BODIES = {
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
}
GROUPS = ("signals", "ranks", "window_buffers", "collectives", "transfers")
WITHOUT = ("defer_wait", "all_to_all_v")
"""What takes more than a frame to show."""


def ranked_kernel(spec: OpSpec, noun: str) -> str:
    """Return a program of two ranks that uses an op, or nothing."""
    if noun not in GROUPS or spec.name in WITHOUT:
        return ""
    lines = BODIES.get(spec.name, PASSED).splitlines()
    text = f"{HEAD}{''.join(f'        {line}' + chr(10) for line in lines)}{TAIL}"
    return text if f".{spec.name}(" in text else ""


def ran(text: str) -> str:
    """Return what is wrong with such a program where ranks run it in the interpreter, nothing where they do."""
    name, names = f"<example {abs(hash(text))}>", dict[str, Any]()
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    rows = np.arange(16, dtype=np.float32).reshape(2, 1, 8)
    try:
        exec(compile(text, name, "exec"), names)
        names["example"](rows, np.zeros_like(rows), config=RunConfig(platform="interpret", device_ids=[0, 1]))
    except TilewrightError as error:
        return str(error)
    return ""
