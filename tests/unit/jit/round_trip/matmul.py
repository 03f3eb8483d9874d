"""Matrix products, both ways."""

from __future__ import annotations

import numpy as np
from examples.loading import LOADED
from unit.jit.round_trip.family import Family

import tilewright.language as pl

FAMILY = Family("matmul")

TILED, SPLIT, ATTENTION = LOADED["matmul_tiled"], LOADED["split_k"], LOADED["attention"]

M, K, N = pl.dynamic("M"), pl.dynamic("K"), pl.dynamic("N")


@FAMILY.by_hand(TILED.jit("rebinding"), *TILED.make_inputs(0))
@pl.program
class Rebinding:
    @pl.function(type=pl.FunctionType.Orchestration)
    def rebinding(
        self,
        a: pl.Tensor[[M, K], pl.FP16],
        b: pl.Tensor[[K, N], pl.FP16],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ) -> pl.Tensor[[M, N], pl.FP32]:
        for m in pl.parallel(0, M, 64):
            for n in pl.parallel(0, N, 64):
                with pl.at(level=pl.Level.CORE_GROUP, name_hint="matmul"):
                    acc = pl.matmul(pl.load(a, [m, 0], [64, 64]), pl.load(b, [0, n], [64, 64]))
                    for k in pl.range(64, K, 64):
                        acc = pl.matmul_acc(acc, pl.load(a, [m, k], [64, 64]), pl.load(b, [k, n], [64, 64]))
                    c = pl.store(acc, [m, n], c)
        return c


@FAMILY.by_hand(TILED.jit("yielding"), *TILED.make_inputs(0))
@pl.program
class Yielding:
    @pl.function(type=pl.FunctionType.InCore)
    def block(
        self,
        a: pl.Tensor[[M, K], pl.FP16],
        b: pl.Tensor[[K, N], pl.FP16],
        m: pl.Scalar[pl.INDEX],
        n: pl.Scalar[pl.INDEX],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ) -> pl.Tensor[[M, N], pl.FP32]:
        zero = pl.create_tile([64, 64], dtype=pl.FP32, target_memory=pl.Mem.Acc)
        for k, (acc,) in pl.range(0, K, 64, init_values=(zero,)):
            a_l1 = pl.load(a, [m, k], [64, 64], target_memory=pl.Mem.Mat)
            b_l1 = pl.load(b, [k, n], [64, 64], target_memory=pl.Mem.Mat)
            a_l0 = pl.move(a_l1, target_memory=pl.Mem.Left)
            b_l0 = pl.move(b_l1, target_memory=pl.Mem.Right)
            result = pl.yield_(pl.matmul_acc(acc, a_l0, b_l0, init_cond=k == 0))
        return pl.store(result, [m, n], c)

    @pl.function(type=pl.FunctionType.Orchestration)
    def yielding(
        self,
        a: pl.Tensor[[M, K], pl.FP16],
        b: pl.Tensor[[K, N], pl.FP16],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ) -> pl.Tensor[[M, N], pl.FP32]:
        for m in pl.parallel(0, M, 64):
            for n in pl.parallel(0, N, 64):
                c = self.block(a, b, m, n, c)
        return c


@FAMILY.by_hand(SPLIT.jit("split_k"), *SPLIT.make_inputs(0))
@pl.program
class SplitK:
    @pl.function(type=pl.FunctionType.InCore)
    def clear(self, c: pl.Out[pl.Tensor[[32, 32], pl.FP32]]) -> pl.Tensor[[32, 32], pl.FP32]:
        return pl.store(pl.tile.full([32, 32], dtype=pl.FP32, value=0.0), [0, 0], c)

    @pl.function(type=pl.FunctionType.InCore)
    def add_slice(
        self,
        a: pl.Tensor[[32, 1024], pl.FP16],
        b: pl.Tensor[[1024, 32], pl.FP16],
        start: pl.Scalar[pl.INDEX],
        stop: pl.Scalar[pl.INDEX],
        c: pl.InOut[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        acc = pl.matmul(pl.load(a, [0, start], [32, 64]), pl.load(b, [start, 0], [64, 32]))
        for k in pl.range(start + 64, stop, 64):
            acc = pl.matmul_acc(acc, pl.load(a, [0, k], [32, 64]), pl.load(b, [k, 0], [64, 32]))
        return pl.store(acc, [0, 0], c, atomic=pl.AtomicType.Add)

    @pl.function(type=pl.FunctionType.Orchestration)
    def split_k(
        self,
        a: pl.Tensor[[32, 1024], pl.FP16],
        b: pl.Tensor[[1024, 32], pl.FP16],
        c: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        c = self.clear(c)
        for split in pl.parallel(8):
            c = self.add_slice(a, b, split * 128, (split + 1) * 128, c)
        return c


@FAMILY.by_hand(ATTENTION.jit("attention"), *ATTENTION.make_inputs(0))
@pl.program
class Attention:
    @pl.function(type=pl.FunctionType.InCore)
    def attend(
        self,
        q: pl.Tensor[[256, 64], pl.FP16],
        k: pl.Tensor[[256, 64], pl.FP16],
        v: pl.Tensor[[256, 64], pl.FP16],
        seq: pl.Scalar[pl.INDEX],
        query: pl.Scalar[pl.INDEX],
        key: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[256, 64], pl.FP16]],
    ) -> pl.Tensor[[256, 64], pl.FP16]:
        queries = pl.load(q, [query, 0], [64, 64])
        m0 = pl.tile.full([64, 1], dtype=pl.FP32, value=-1e30)
        l0 = pl.tile.full([64, 1], dtype=pl.FP32, value=0.0)
        o0 = pl.tile.full([64, 64], dtype=pl.FP32, value=0.0)
        for j, (m, l, o) in pl.range(key, key + 128, 32, init_values=(m0, l0, o0)):  # noqa: E741
            keys = pl.load(k, [j, 0], [32, 64])
            values = pl.load(v, [j, 0], [32, 64])
            scores = pl.mul(pl.matmul(queries, pl.tile.transpose_view(keys)), 0.125)
            m_new = pl.maximum(m, pl.row_max(scores))
            p = pl.row_expand_expdif(scores, m_new)
            rescale = pl.exp(pl.sub(m, m_new))
            l_new = pl.add(pl.mul(l, rescale), pl.row_sum(p))
            o_scaled = pl.row_expand_mul(o, rescale)
            o_new = pl.add(o_scaled, pl.matmul(pl.cast(p, pl.FP16, mode="rint"), values))
            m_end, l_end, o_end = pl.yield_(m_new, l_new, o_new)
        average = pl.row_expand_div(o_end, l_end)
        return pl.store(pl.cast(average, pl.FP16, mode="rint"), [query, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def attention(
        self,
        q: pl.Tensor[[256, 64], pl.FP16],
        k: pl.Tensor[[256, 64], pl.FP16],
        v: pl.Tensor[[256, 64], pl.FP16],
        heads: pl.Scalar[pl.INDEX],
        out: pl.Out[pl.Tensor[[256, 64], pl.FP16]],
    ) -> pl.Tensor[[256, 64], pl.FP16]:
        for head in pl.parallel(2):
            for block in pl.parallel(0, 128, 64):
                out = self.attend(q, k, v, 128, head * 128 + block, head * 128, out)
        return out


@pl.jit
def one_tile(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.matmul(pl.load(a, [0, 0], a.shape), pl.load(b, [0, 0], b.shape)), [0, 0], c)
    return c


@FAMILY.by_hand(
    one_tile, np.zeros((16, 48), np.float16), np.zeros((48, 32), np.float16), np.zeros((16, 32), np.float32)
)
@pl.program
class OneTile:
    @pl.function(type=pl.FunctionType.Orchestration)
    def one_tile(
        self,
        a: pl.Tensor[[16, 48], pl.FP16],
        b: pl.Tensor[[48, 32], pl.FP16],
        c: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ) -> pl.Tensor[[16, 32], pl.FP32]:
        with pl.at(level=pl.Level.CORE_GROUP):
            lhs = pl.load(a, [0, 0], [16, 48])
            rhs = pl.load(b, [0, 0], [48, 32])
            c = pl.store(pl.matmul(lhs, rhs), [0, 0], c)
        return c
