"""Every collective, as a statement of the host and as an op of a kernel, and what NumPy says that it gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright.language as pl
from tilewright import ir
from tilewright.core.program import Program
from tilewright.ir.distributed_compiled_program import DistributedConfig

SIZE = 37
LEVELS = ("host", "kernel")
TEXT = """
import tilewright.language.distributed as pld
X, N = pl.Tensor[[{rows}, {size}], pl.FP32], pl.Tensor[[{n}, 1], pl.INT32]
W, S = pld.DistributedTensor[[{rows}, {size}], pl.FP32], pld.DistributedTensor[[{n}, 1], pl.INT32]
L = pld.DistributedTensor[[1, {size}], pl.FP32]

@pl.program
class Collectives:
    @pl.function(type=pl.FunctionType.InCore)
    def filling(self, x: X, k: N, w: pl.InOut[W], l: pl.InOut[L], c: pl.InOut[S]):
        pl.store(pl.load(x, [0, 0], [{rows}, {size}]), [0, 0], w)
        pl.store(pl.load(x, [0, 0], [1, {size}]), [0, 0], l)
        pl.store(pl.load(k, [0, 0], [{n}, 1]), [0, 0], c)

    @pl.function(type=pl.FunctionType.InCore)
    def acting(self, x: X, w: pl.InOut[W], v: pl.InOut[W], s: pl.InOut[S], c: pl.InOut[S], d: pl.InOut[S]):
        {kernel}

    @pl.function(type=pl.FunctionType.InCore)
    def taking(self, w: W, v: W, s: S, d: S, y: pl.InOut[X], k: pl.InOut[N], z: pl.InOut[N]):
        pl.store({taken}, [0, 0], y)
        pl.store(pl.load(d, [0, 0], [{n}, 1]), [0, 0], k)
        pl.store(pl.load(s, [0, 0], [{n}, 1]), [0, 0], z)

    @pl.function(type=pl.FunctionType.Orchestration)
    def fill(self, x: X, k: N, w: pl.InOut[W], l: pl.InOut[L], c: pl.InOut[S]):
        self.filling(x, k, w, l, c)

    @pl.function(type=pl.FunctionType.Orchestration)
    def act(self, x: X, w: pl.InOut[W], v: pl.InOut[W], s: pl.InOut[S], c: pl.InOut[S], d: pl.InOut[S]):
        self.acting(x, w, v, s, c, d)

    @pl.function(type=pl.FunctionType.Orchestration)
    def take(self, w: W, v: W, s: S, d: S, y: pl.InOut[X], k: pl.InOut[N], z: pl.InOut[N]):
        self.taking(w, v, s, d, y, k, z)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def main(self, x: pl.Tensor[[{n}, {rows}, {size}], pl.FP32], k: pl.InOut[pl.Tensor[[{n}, {n}, 1], pl.INT32]],
             y: pl.InOut[pl.Tensor[[{n}, {rows}, {size}], pl.FP32]], z: pl.InOut[pl.Tensor[[{n}, {n}, 1], pl.INT32]]):
        ws = pld.alloc_window_buffer([{rows}, {size}], dtype=pl.FP32)
        vs = pld.alloc_window_buffer([{rows}, {size}], dtype=pl.FP32)
        ls = pld.alloc_window_buffer([1, {size}], dtype=pl.FP32)
        ss = pld.alloc_window_buffer([{n}, 1], dtype=pl.INT32)
        cs = pld.alloc_window_buffer([{n}, 1], dtype=pl.INT32)
        ds = pld.alloc_window_buffer([{n}, 1], dtype=pl.INT32)
        w = pld.window(ws, [{rows}, {size}], dtype=pl.FP32)
        v = pld.window(vs, [{rows}, {size}], dtype=pl.FP32)
        l = pld.window(ls, [1, {size}], dtype=pl.FP32)
        s = pld.window(ss, [{n}, 1], dtype=pl.INT32)
        c = pld.window(cs, [{n}, 1], dtype=pl.INT32)
        d = pld.window(ds, [{n}, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            self.fill(x[r], k[r], w, l, c, device=r)
        {host}
        for r in pl.range(pld.world_size()):
            self.take(w, v, s, d, y[r], k[r], z[r], device=r)
"""
OPS = {
    "allreduce": "w = pld.tensor.allreduce(w, s)",
    "allreduce max": "w = pld.tensor.allreduce(w, s, op=pld.ReduceOp.Max)",
    "allreduce min": "w = pld.tensor.allreduce(w, s, op=pld.ReduceOp.Min)",
    "allreduce prod": "w = pld.tensor.allreduce(w, s, op=pld.ReduceOp.Prod)",
    "allreduce part": "pld.tensor.allreduce(pl.set_validshape(w, {some}, 20), s)",
    "broadcast part": "pld.tensor.broadcast(pl.set_validshape(w, {some}, 20), s, root={last})",
    "barrier": "pld.tensor.barrier(s)",
    "broadcast": "w = pld.tensor.broadcast(w, s, root={last})",
    "allgather": "v = pld.tensor.allgather({local}, v, s)",
    "reduce_scatter": "w = pld.tensor.reduce_scatter(w, s)",
    "all_to_all": "v = pld.tensor.all_to_all(w, v, s)",
    "all_to_all_v": "v = pld.tensor.all_to_all_v(w, v, s, c, d)",
}
INTO_V = ("allgather", "all_to_all", "all_to_all_v")


def program(ranks: int, op: str, level: str) -> Program:
    """Return a program that fills windows, does one collective, and hands out what is there then."""
    local = "l" if level == "host" else f"pl.slice(x, [1, {SIZE}], [0, 0])"
    rows = 2 * ranks if op == "all_to_all_v" else ranks
    statement = OPS[op].format(last=ranks - 1, local=local, some=(ranks + 1) // 2)
    window = "v" if op in INTO_V else "w"
    taken = f"pl.load({window}, [0, 0], [{rows}, {SIZE}])"
    if op == "barrier":  # what the next rank has written is there
        taken = f"pld.tile.remote_load(w, (pld.rank(w) + 1) % {ranks}, [0, 0], [{rows}, {SIZE}])"
    acts = "for r in pl.range(pld.world_size()):\n            self.act(x[r], w, v, s, c, d, device=r)"
    text = TEXT.format(
        n=ranks, rows=rows, size=SIZE, taken=taken, kernel=statement if level == "kernel" else "pass",
        host=acts if level == "kernel" else statement,
    )  # fmt: skip
    made = pl.parse(text)
    assert isinstance(made, Program)
    return made


def meant(op: str, x: Any, counts: Any) -> tuple[Any, Any]:
    """Return what every rank has after a collective, and how many rows it was sent by each."""
    ranks = len(x)
    reduced: dict[str, Callable[[], Any]] = {
        "allreduce": lambda: x.sum(0), "allreduce max": lambda: x.max(0), "allreduce min": lambda: x.min(0),
        "allreduce prod": lambda: x.prod(0), "broadcast": lambda: x[-1], "allgather": lambda: x[:, 0],
        "reduce_scatter": lambda: x.sum(0),
    }  # fmt: skip
    none = np.zeros((ranks, ranks, 1), np.int32)
    if op.endswith("part"):
        found, (part, _) = x.copy(), meant(op.removesuffix(" part"), x, counts)
        found[:, : (ranks + 1) // 2, :20] = part[:, : (ranks + 1) // 2, :20]
        return found, none
    if op in reduced:
        return np.broadcast_to(reduced[op](), x.shape), none
    if op == "barrier":
        return np.roll(x, -1, 0), none
    each = x.reshape(ranks, ranks, -1, SIZE).swapaxes(0, 1).reshape(x.shape)
    return each, none if op == "all_to_all" else np.minimum(counts, 2).swapaxes(0, 1)


def is_right(ranks: int, op: str, level: str, platform: str) -> bool:
    """Return whether a collective gives what NumPy does, twice, and leaves its signals zero."""
    random = np.random.default_rng(ranks)
    compiled = ir.compile(
        program(ranks, op, level), platform=platform, distributed_config=DistributedConfig(range(ranks))
    )
    for _ in range(2):
        x = random.integers(-3, 4, (ranks, 2 * ranks if op == "all_to_all_v" else ranks, SIZE)).astype(np.float32)
        k = random.integers(0, 5, (ranks, ranks, 1)).astype(np.int32)
        y, z = np.zeros_like(x), np.ones_like(k)
        wanted, counts = meant(op, x, k)
        compiled(x, k, y, z)
        held = [_settled(op, each, counts) for each in (y, wanted)]
        if not (np.array_equal(*held) and np.array_equal(k, counts) and not z.any()):
            return False
    return True


def _settled(op: str, held: Any, counts: Any) -> Any:
    """Return what a collective settles of what ranks have: their own rows, or so many of those of each."""
    ranks = len(held)
    if op == "reduce_scatter":
        return np.stack([held[rank, rank] for rank in range(ranks)])
    if op == "all_to_all_v":
        return held.reshape(ranks, ranks, 2, SIZE)[np.arange(2) < counts.reshape(ranks, ranks, 1)]
    return held
