"""Kernels to be stepped through, in a file whose assertions nobody rewrites."""
# pyright: basic, reportPossiblyUnboundVariable=false

from __future__ import annotations

import copy
import pickle
from typing import Any, TypeAlias

import tilewright.language as pl
import tilewright.language.distributed as pld

SEEN: list[Any] = []


@pl.jit.inline
def doubled(t: pl.Tile) -> pl.Tile:
    twice = t * 2.0
    return twice + 1.0


@pl.jit.incore
def row_sums(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.load(x, [0, 0], [4, 8])
    print(t.shape, t.dtype)
    pl.store(pl.row_sum(t), [0, 0], out)
    return out


@pl.jit
def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    offset = 1.0
    for row in pl.parallel(0, x.shape[0], 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = doubled(pl.load(x, [row, 0], [4, 8]))
            SEEN.append(row)
            if row == 4:
                breakpoint()
            pl.store(t + offset, [row, 0], out)
    return out


@pl.jit
def carrying(x: pl.Tensor, n: int, out: pl.Out[pl.Tensor]):
    acc = pl.create_tile([4, 8], pl.FP32)
    print(acc)
    acc = pl.tile.full([4, 8], dtype=pl.FP32, value=0.0)
    k = 0
    for i, (total,) in pl.range(n, init_values=(acc,)):
        more = total + pl.load(x, [0, 0], [4, 8])
        k = k + 2
        if i == 2:
            pl.yield_(more)
            break
        last = pl.yield_(more)
    while k < 100:
        k = k * 3
        if k > 50:
            continue
        k = k + 1
    assert k > 100, "far enough"
    cut = pl.set_validshape(last, 2, 8)
    print(k, cut)
    pl.store(last * pl.cast(k, pl.FP32), [0, 0], out)
    return out


@pl.jit
def dispatching(x: pl.Tensor, out: pl.Out[pl.Tensor[[4, 1], pl.FP32]]):
    out = row_sums(x, out)
    return out


@pl.jit
def asserting(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.load(x, [0, 0], [4, 8])
    first = pl.read(t, [0, 1])
    assert first > 5.0
    pl.store(t, [0, 0], out)
    return out


@pl.autotune(configs=[pl.Config(SIZE=2), pl.Config(SIZE=4)], key=["x"])
@pl.jit
def tuned(x: pl.Tensor, out: pl.Out[pl.Tensor], *, SIZE: int = 4):
    for r in pl.parallel(0, 4, SIZE):
        with pl.at(level=pl.Level.CORE_GROUP):
            SEEN.append(SIZE)
            pl.store(pl.load(x, [r, 0], [SIZE, 8]), [r, 0], out)
    return out


@pl.jit
def squared(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [4, 8])
        pl.store(t * t, [0, 0], out)
    return out


@pl.jit
def shifted(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [4, 8]) + 1.0, [0, 0], out)
    return out


@pl.jit.host
def on_ranks(
    x: pl.Tensor[[2, 4, 8], pl.FP32], out: pl.Out[pl.Tensor[[2, 4, 8], pl.FP32]]
) -> pl.Tensor[[2, 4, 8], pl.FP32]:
    for r in pl.range(2):
        shifted(x[r], out[r], device=r)
    return out


Rows: TypeAlias = pl.Tensor[[4, 8], pl.FP32]
Inbox: TypeAlias = pl.InOut[pld.DistributedTensor[[4, 8], pl.FP32]]
Cell: TypeAlias = pl.InOut[pld.DistributedTensor[[1, 1], pl.INT32]]


@pl.jit
def exchanging(x: Rows, out: pl.Out[Rows], inbox: Inbox, cell: Cell):
    """Hand the rows to the other rank, and add one to those that come."""
    with pl.at(level=pl.Level.CORE_GROUP):
        me = pld.rank(pld.get_comm_ctx(inbox))
        SEEN.append(f"sends {me}")
        pld.tile.remote_store(pl.load(x, [0, 0], [4, 8]), inbox, peer=1 - me, offsets=[0, 0])
        pld.system.notify(cell, peer=1 - me, offsets=[0, 0], value=1, op=pld.NotifyOp.Set)
        pld.system.wait(cell, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
        t = pl.load(inbox, [0, 0], [4, 8])
        for half in pl.range(1, 3):
            t = t + half - 1.0
        SEEN.append(f"has {me}")
        pl.store(t, [0, 0], out)
    return out


@pl.jit.host
def exchanged(
    x: pl.Tensor[[2, 4, 8], pl.FP32], out: pl.Out[pl.Tensor[[2, 4, 8], pl.FP32]]
) -> pl.Tensor[[2, 4, 8], pl.FP32]:
    rows = pld.alloc_window_buffer([4, 8], dtype=pl.FP32)
    cells = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    for r in pl.range(2):
        SEEN.append("host")
        inbox, cell = pld.window(rows, [4, 8], dtype=pl.FP32), pld.window(cells, [1, 1], dtype=pl.INT32)
        exchanging(x[r], out[r], inbox, cell, device=r)
    return out


@pl.jit
def too_big(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [4, 8])
        assert t.numpy().max() < 0.5, "too big"  # pyright: ignore
        pl.store(t, [0, 0], out)
    return out


KEPT: list[Any] = []


@pl.jit
def keeping(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [4, 8])
        KEPT.extend([copy.copy(t), copy.deepcopy(t), pickle.loads(pickle.dumps(t)), copy.copy(out)])
        pl.store(t, [0, 0], out)
    return out


@pl.jit
def gridded(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for b in pl.spmd(4):
        for c in pl.range(0, 8, 4):
            t = pl.load(x, [b, c], [1, 4])
            SEEN.append((b, c))
            for q in [1.0, 2.0]:
                t = t * q
            pl.store(t, [b, c], out)
    return out
