"""Kernels of the GPU's rows, as a user would write them: nothing in them says where they run."""

from __future__ import annotations

import math

import tilewright.language as pl


@pl.jit
def add(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 1):
        with pl.at(level=pl.Level.CORE_GROUP):
            n = x.shape[1]
            pl.store(pl.load(x, [row, 0], [1, n]) + pl.load(y, [row, 0], [1, n]), [row, 0], out)
    return out


@pl.jit
def convert(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 1):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.cast(pl.load(x, [row, 0], [1, x.shape[1]]), out.dtype, mode="rint"), [row, 0], out)
    return out


@pl.jit
def gelu(x: pl.Tensor, w: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 1):
        with pl.at(level=pl.Level.CORE_GROUP):
            n = x.shape[1]
            t = pl.load(x, [row, 0], [1, n]) * pl.load(w, [0, 0], [1, n]) + pl.load(b, [0, 0], [1, n])
            pl.store(pl.gelu(t), [row, 0], out)
    return out


@pl.jit
def softmax(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 1):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.cast(pl.load(x, [row, 0], [1, x.shape[1]]), pl.FP32)
            e = pl.exp(pl.row_expand_sub(t, pl.row_max(t)))
            pl.store(pl.cast(pl.row_expand_div(e, pl.row_sum(e)), x.dtype, mode="rint"), [row, 0], out)
    return out


@pl.jit
def rms_norm(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 1):
        with pl.at(level=pl.Level.CORE_GROUP):
            n = x.shape[1]
            t = pl.cast(pl.load(x, [row, 0], [1, n]), pl.FP32)
            scale = pl.rsqrt(pl.row_sum(t * t) * (1.0 / n) + 1e-5)
            y = pl.row_expand_mul(t, scale) * pl.cast(pl.load(w, [0, 0], [1, n]), pl.FP32)
            pl.store(pl.cast(y, x.dtype, mode="rint"), [row, 0], out)
    return out


@pl.jit
def layer_norm(x: pl.Tensor, w: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 1):
        with pl.at(level=pl.Level.CORE_GROUP):
            n = x.shape[1]
            t = pl.cast(pl.load(x, [row, 0], [1, n]), pl.FP32)
            t = pl.row_expand_sub(t, pl.row_sum(t) * (1.0 / n))
            t = pl.row_expand_mul(t, pl.rsqrt(pl.row_sum(t * t) * (1.0 / n) + 1e-5))
            t = t * pl.cast(pl.load(w, [0, 0], [1, n]), pl.FP32) + pl.cast(pl.load(b, [0, 0], [1, n]), pl.FP32)
            pl.store(pl.cast(t, x.dtype, mode="rint"), [row, 0], out)
    return out


@pl.jit
def cross_entropy(x: pl.Tensor, target: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 1):
        with pl.at(level=pl.Level.CORE_GROUP):
            some = 2048 if x.dtype == pl.BF16 else 4096
            best = pl.tile.full([1, 1], dtype=pl.FP32, value=-1e30)
            total = pl.tile.full([1, 1], dtype=pl.FP32, value=0.0)
            for first in pl.range(0, x.shape[1], some):
                t = pl.cast(pl.load(x, [row, first], [1, some]), pl.FP32)
                highest = pl.maximum(best, pl.row_max(t))
                total = total * pl.exp(best - highest) + pl.row_sum(pl.exp(pl.row_expand_sub(t, highest)))
                best = highest
            chosen = pl.cast(pl.load(x, [row, pl.read(target, [row, 0])], [1, 1]), pl.FP32)
            pl.store(pl.log(total) + best - chosen, [row, 0], out)
    return out


@pl.jit
def rope(x: pl.Tensor, cos: pl.Tensor, sin: pl.Tensor, out: pl.Out[pl.Tensor]):
    for head in pl.parallel(0, x.shape[0], 1):
        for row in pl.parallel(0, x.shape[1], 16):
            with pl.at(level=pl.Level.CORE_GROUP):
                half = x.shape[2] // 2
                a, b = pl.load(x, [head, row, 0], [1, 16, half]), pl.load(x, [head, row, half], [1, 16, half])
                c, s = pl.load(cos, [0, row, 0], [1, 16, half]), pl.load(sin, [0, row, 0], [1, 16, half])
                pl.store(a * c - b * s, [head, row, 0], out)
                pl.store(b * c + a * s, [head, row, half], out)
    return out


@pl.jit
def matmul(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, a.shape[0], 128):
        for j in pl.parallel(0, b.shape[1], 256):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.tile.full([128, 256], dtype=pl.FP32, value=0.0)
                for k in pl.range(0, a.shape[1], 64):
                    acc = pl.matmul_acc(acc, pl.load(a, [i, k], [128, 64]), pl.load(b, [k, j], [64, 256]))
                pl.store(pl.cast(acc, out.dtype, mode="rint"), [i, j], out)
    return out


@pl.jit
def matmul_bytes(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, a.shape[0], 128):
        for j in pl.parallel(0, b.shape[0], 256):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.tile.full([128, 256], dtype=pl.INT32, value=0)
                for k in pl.range(0, a.shape[1], 128):
                    right = pl.tile.transpose_view(pl.load(b, [j, k], [256, 128]))
                    acc = pl.matmul_acc(acc, pl.load(a, [i, k], [128, 128]), right)
                pl.store(acc, [i, j], out)
    return out


@pl.jit
def matmul_fp8(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, a.shape[0], 128):
        for j in pl.parallel(0, b.shape[0], 256):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.tile.full([128, 256], dtype=pl.FP32, value=0.0)
                for k in pl.range(0, a.shape[1], 128):
                    right = pl.tile.transpose_view(pl.load(b, [j, k], [256, 128]))
                    acc = pl.matmul_acc(acc, pl.load(a, [i, k], [128, 128]), right)
                pl.store(pl.cast(acc, out.dtype, mode="rint"), [i, j], out)
    return out


@pl.jit
def gemv(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    """One row times the rows of a matrix: a row sum, one row a block."""
    for j in pl.parallel(0, w.shape[0], 1):
        with pl.at(level=pl.Level.CORE_GROUP):
            n = x.shape[1]
            both = pl.cast(pl.load(w, [j, 0], [1, n]), pl.FP32) * pl.cast(pl.load(x, [0, 0], [1, n]), pl.FP32)
            pl.store(pl.cast(pl.row_sum(both), out.dtype, mode="rint"), [0, j], out)
    return out


@pl.jit
def skinny(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    """A few rows times the rows of a matrix: the matrix is on the left, where the matrix units want many rows."""
    for j in pl.parallel(0, w.shape[0], 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            rows = x.shape[0]
            deep = 256 if rows <= 16 else 128
            acc = pl.tile.full([64, rows], dtype=pl.FP32, value=0.0)
            for k in pl.range(0, w.shape[1], deep):
                right = pl.tile.transpose_view(pl.load(x, [0, k], [rows, deep]))
                acc = pl.matmul_acc(acc, pl.load(w, [j, k], [64, deep]), right)
            pl.store(pl.cast(pl.tile.transpose(acc, 0, 1), out.dtype, mode="rint"), [0, j], out)
    return out


Blocks = pl.Scalar[pl.INDEX, (1, 32)]
"""How many blocks of keys there are: what is known not to be more needs no masks."""


@pl.jit.incore
def attend(
    q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, first: pl.INDEX, row: pl.INDEX, blocks: Blocks, causal: bool,
    out: pl.Out[pl.Tensor],
):  # fmt: skip
    dim = q.shape[1]
    scale = 1 / math.sqrt(dim)
    queries = pl.load(q, [first + row, 0], [128, dim])
    best = pl.tile.full([128, 1], dtype=pl.FP32, value=-1e30)
    total = pl.tile.full([128, 1], dtype=pl.FP32, value=0.0)
    average = pl.tile.full([128, dim], dtype=pl.FP32, value=0.0)
    for block in pl.range(blocks):
        key = block * 128
        keys = pl.load(k, [first + key, 0], [128, dim])
        scores = pl.matmul(queries, pl.tile.transpose_view(keys))
        if causal:
            scores = pl.where(pl.iota([1, 128], axis=1) + key <= pl.iota([128, 1], axis=0) + row, scores, -math.inf)
        highest = pl.maximum(best, pl.row_max(scores))
        weights = pl.exp(pl.fma(scores, scale, highest * -scale))
        kept = pl.exp((best - highest) * scale)
        total = total * kept + pl.row_sum(weights)
        values = pl.load(v, [first + key, 0], [128, dim])
        average = pl.matmul_acc(pl.row_expand_mul(average, kept), pl.cast(weights, q.dtype, mode="rint"), values)
        best = highest
    return pl.store(pl.cast(pl.row_expand_div(average, total), q.dtype, mode="rint"), [first + row, 0], out)


@pl.jit
def attention(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, heads: pl.INDEX, out: pl.Out[pl.Tensor]):
    length = q.shape[0] // heads
    for head in pl.parallel(heads):
        for block in pl.parallel(length // 128):
            out = attend(q, k, v, head * length, block * 128, length // 128, False, out)
    return out


@pl.jit
def causal_attention(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, heads: pl.INDEX, out: pl.Out[pl.Tensor]):
    length = q.shape[0] // heads
    for head in pl.parallel(heads):
        for block in pl.parallel(length // 128):
            out = attend(q, k, v, head * length, block * 128, block + 1, True, out)
    return out
