"""Natural kernels: memory-bound work written the obvious way, so many rows at a time, one expression after another."""

from __future__ import annotations

import math

import tilewright.language as pl

CORE = pl.Level.CORE_GROUP
SCALE = 12.5


@pl.jit
def add(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor], rows: int):
    m, n = x.shape
    for row in pl.parallel(0, m, rows):
        with pl.at(level=CORE):
            pl.store(pl.load(x, [row, 0], [rows, n]) + pl.load(y, [row, 0], [rows, n]), [row, 0], out)


@pl.jit
def softmax(x: pl.Tensor, out: pl.Out[pl.Tensor], rows: int):
    m, n = x.shape
    for row in pl.parallel(0, m, rows):
        with pl.at(level=CORE):
            t = pl.load(x, [row, 0], [rows, n])
            e = pl.exp(t - pl.max(t, axis=-1, keepdims=True))
            pl.store(e / pl.sum(e, axis=-1, keepdims=True), [row, 0], out)


@pl.jit
def log_softmax(x: pl.Tensor, out: pl.Out[pl.Tensor], rows: int):
    m, n = x.shape
    for row in pl.parallel(0, m, rows):
        with pl.at(level=CORE):
            t = pl.load(x, [row, 0], [rows, n])
            t = t - pl.max(t, axis=-1, keepdims=True)
            pl.store(t - pl.log(pl.sum(pl.exp(t), axis=-1, keepdims=True)), [row, 0], out)


@pl.jit
def rms_norm(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor], rows: int):
    m, n = x.shape
    for row in pl.parallel(0, m, rows):
        with pl.at(level=CORE):
            t = pl.load(x, [row, 0], [rows, n])
            mean = pl.sum(t * t, axis=-1, keepdims=True) / n
            pl.store(t * pl.rsqrt(mean + 1e-5) * pl.load(w, [0, 0], [1, n]), [row, 0], out)


@pl.jit
def layer_norm(x: pl.Tensor, w: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor], rows: int):
    m, n = x.shape
    for row in pl.parallel(0, m, rows):
        with pl.at(level=CORE):
            t = pl.load(x, [row, 0], [rows, n])
            t = t - pl.sum(t, axis=-1, keepdims=True) / n
            variance = pl.sum(t * t, axis=-1, keepdims=True) / n
            t = t * pl.rsqrt(variance + 1e-5)
            pl.store(t * pl.load(w, [0, 0], [1, n]) + pl.load(b, [0, 0], [1, n]), [row, 0], out)


@pl.jit
def gelu(x: pl.Tensor, w: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor], rows: int):
    m, n = x.shape
    for row in pl.parallel(0, m, rows):
        with pl.at(level=CORE):
            t = pl.load(x, [row, 0], [rows, n]) * pl.load(w, [0, 0], [1, n]) + pl.load(b, [0, 0], [1, n])
            u = math.sqrt(2 / math.pi) * (t + 0.044715 * t * t * t)
            pl.store(0.5 * t * (1.0 + pl.tanh(u)), [row, 0], out)


@pl.jit
def silu_mul(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor], rows: int):
    m, n = x.shape
    for row in pl.parallel(0, m, rows):
        with pl.at(level=CORE):
            t = pl.load(x, [row, 0], [rows, n])
            pl.store(t / (1.0 + pl.exp(-t)) * pl.load(y, [row, 0], [rows, n]), [row, 0], out)


@pl.jit
def quantize(x: pl.Tensor, out: pl.Out[pl.Tensor], rows: int):
    m, n = x.shape
    for row in pl.parallel(0, m, rows):
        with pl.at(level=CORE):
            t = pl.clamp(pl.load(x, [row, 0], [rows, n]) * SCALE, -128.0, 127.0)
            pl.store(pl.cast(t, pl.INT8, mode="rint"), [row, 0], out)


@pl.jit
def dequantize(x: pl.Tensor, scale: pl.Tensor, out: pl.Out[pl.Tensor], rows: int):
    m, n = x.shape
    for row in pl.parallel(0, m, rows):
        with pl.at(level=CORE):
            t = pl.cast(pl.load(x, [row, 0], [rows, n]), pl.FP32)
            pl.store(t * pl.load(scale, [row, 0], [rows, 1]), [row, 0], out)


@pl.jit
def halve(x: pl.Tensor, out: pl.Out[pl.Tensor], rows: int):
    m, n = x.shape
    for row in pl.parallel(0, m, rows):
        with pl.at(level=CORE):
            pl.store(pl.cast(pl.load(x, [row, 0], [rows, n]), pl.BF16), [row, 0], out)


@pl.jit
def argmax(x: pl.Tensor, out: pl.Out[pl.Tensor], rows: int):
    m, n = x.shape
    for row in pl.parallel(0, m, rows):
        with pl.at(level=CORE):
            pl.store(pl.argmax(pl.load(x, [row, 0], [rows, n]), axis=-1, keepdims=True), [row, 0], out)


@pl.jit
def cross_entropy(x: pl.Tensor, target: pl.Tensor, out: pl.Out[pl.Tensor], rows: int):
    m, n = x.shape
    for row in pl.parallel(0, m, rows):
        with pl.at(level=CORE):
            t, wanted = pl.load(x, [row, 0], [rows, n]), pl.load(target, [row, 0], [rows, 1])
            best = pl.max(t, axis=-1, keepdims=True)
            total = pl.sum(pl.exp(t - best), axis=-1, keepdims=True)
            chosen = pl.sum(pl.where(pl.arange(n) == wanted, t, 0.0), axis=-1, keepdims=True)
            pl.store(pl.log(total) + best - chosen, [row, 0], out)


@pl.jit
def rope(x: pl.Tensor, cos: pl.Tensor, sin: pl.Tensor, out: pl.Out[pl.Tensor], rows: int):
    m, n = x.shape
    half = n // 2
    for row in pl.parallel(0, m, rows):
        with pl.at(level=CORE):
            a, b = pl.load(x, [row, 0], [rows, half]), pl.load(x, [row, half], [rows, half])
            c, s = pl.load(cos, [row, 0], [rows, half]), pl.load(sin, [row, 0], [rows, half])
            pl.store(a * c - b * s, [row, 0], out)
            pl.store(b * c + a * s, [row, half], out)


@pl.jit
def column_sums(x: pl.Tensor, out: pl.Out[pl.Tensor], rows: int):
    m, n = x.shape
    for col in pl.parallel(0, n, rows):
        with pl.at(level=CORE):
            pl.store(pl.sum(pl.load(x, [0, col], [m, rows]), axis=0, keepdims=True), [0, col], out)


@pl.jit
def transpose(x: pl.Tensor, out: pl.Out[pl.Tensor], rows: int):
    m, n = x.shape
    for row in pl.parallel(0, m, rows):
        for col in pl.parallel(0, n, rows):
            with pl.at(level=CORE):
                pl.store(pl.load(x, [row, col], [rows, rows]).T, [col, row], out)


@pl.jit.incore
def attend(
    q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, head: pl.INDEX, row: pl.INDEX, out: pl.Out[pl.Tensor], causal: bool,
    rows: int,
):  # fmt: skip
    length, dim = k.shape[-2:]
    place = pl.iota([rows, 1], axis=0) + row
    queries = pl.load(q[head], [row, 0], [rows, dim])
    best = pl.tile.full([rows, 1], dtype=pl.FP32, value=-1e30)
    total = pl.tile.full([rows, 1], dtype=pl.FP32, value=0.0)
    average = pl.tile.full([rows, dim], dtype=pl.FP32, value=0.0)
    for first in pl.range(0, row + rows if causal else length, rows):
        scores = queries @ pl.load(k[head], [first, 0], [rows, dim]).T * (1 / math.sqrt(dim))
        if causal:
            scores = pl.where(pl.arange(first, first + rows) <= place, scores, -math.inf)
        highest = pl.maximum(best, pl.max(scores, axis=-1, keepdims=True))
        weights, kept = pl.exp(scores - highest), pl.exp(best - highest)
        total = total * kept + pl.sum(weights, axis=-1, keepdims=True)
        average = average * kept + pl.cast(weights, v.dtype) @ pl.load(v[head], [first, 0], [rows, dim])
        best = highest
    return pl.store(pl.cast(average / total, out.dtype), [head, row, 0], out)


@pl.jit
def attention(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor], causal: bool, rows: int):
    for head in pl.parallel(q.shape[0]):
        for row in pl.parallel(0, q.shape[1], rows):
            out = attend(q, k, v, head, row, out, causal, rows)
    return out
