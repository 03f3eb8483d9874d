"""Everyday: norms, windows, pools, scans and products, as somebody who comes from NumPy writes them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import torch
from contest import Contest, Field, Work

import tilewright.language as pl
from rows.obvious import beside

F = torch.nn.functional
N = 2048
EXPERTS, TOKENS, MODEL = 8, 2048, 256


@pl.jit
def doubled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 64):
        for column in pl.parallel(0, x.shape[1], 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(x, [row, column], [64, 64]) * 2.0, [row, column], out)
    return out


@pl.jit
def moving_average(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    width = out.shape[1]
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            total = pl.zeros([16, width])
            for step in range(5):
                total += pl.load(x, [row, step], [16, width])
            pl.store(total / 5.0, [row, 0], out)
    return out


@pl.jit
def one_hot(words: pl.Tensor, table: pl.Tensor, out: pl.Out[pl.Tensor]):
    vocabulary, width = table.shape
    for row in pl.parallel(0, words.shape[0], 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            word = pl.reshape(pl.load(words, [row], [64]), [64, 1])
            hot = pl.cast(pl.eq(word, pl.arange(vocabulary)), pl.FP32)
            pl.store(hot @ pl.load(table, [0, 0], [vocabulary, width]), [row, 0], out)
    return out


@pl.jit
def cholesky(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    n = a.shape[0]
    with pl.at(level=pl.Level.CORE_GROUP):
        for j in pl.range(n):
            row = pl.load(a, [j, 0], [1, n])
            for k in pl.range(j):
                row = row - pl.load(out, [k, 0], [1, n]) * pl.read(out, [k, j])
            pl.store(pl.where(pl.arange(n) >= j, row / pl.sqrt(row[:, j]), 0.0), [j, 0], out)
    return out


@pl.jit
def average_pool(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    width = out.shape[1]
    for row in pl.parallel(0, out.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.reshape(pl.load(x, [2 * row, 0], [16, 2 * width]), [8, 2, width, 2])
            pl.store(pl.mean(t, axis=(1, 3)), [row, 0], out)
    return out


@pl.jit
def reflected(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    width = x.shape[1]
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [row, 0], [16, width])
            pl.store(t, [row, 8], out)
            pl.store(t[:, 1:9][:, ::-1], [row, 0], out)
            pl.store(t[:, width - 9 : width - 1][:, ::-1], [row, width + 8], out)
    return out


@pl.jit
def group_norm(x: pl.Tensor, w: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    batch, channels, size = x.shape
    for n in pl.parallel(batch):
        for g in pl.parallel(0, channels, 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.reshape(pl.load(x, [n, g, 0], [1, 8, size]), [8, size])
                d = t - pl.mean(t)
                scale, shift = (pl.reshape(pl.load(each, [g], [8]), [8, 1]) for each in (w, b))
                y = d / pl.sqrt(pl.mean(d * d) + 1e-5) * scale + shift
                pl.store(pl.reshape(y, [1, 8, size]), [n, g, 0], out)
    return out


@pl.jit
def batch_norm(x: pl.Tensor, w: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    n = x.shape[0]
    for c in pl.parallel(0, x.shape[1], 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, c], [n, 64])
            d = t - pl.mean(t, axis=0)
            scale = pl.load(w, [c], [64]) / pl.sqrt(pl.mean(d * d, axis=0) + 1e-5)
            pl.store(d * scale + pl.load(b, [c], [64]), [0, c], out)
    return out


@pl.jit
def rotated(x: pl.Tensor, cos: pl.Tensor, sin: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            a, b = x[row : row + 16, ::2], x[row : row + 16, 1::2]
            c, s = cos[row : row + 16, :], sin[row : row + 16, :]
            out[row : row + 16, ::2] = a * c - b * s
            out[row : row + 16, 1::2] = a * s + b * c
    return out


@pl.jit
def nearest_center(x: pl.Tensor, centers: pl.Tensor, out: pl.Out[pl.Tensor]):
    count, width = centers.shape
    for row in pl.parallel(0, x.shape[0], 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            t, c = pl.load(x, [row, 0], [64, width]), pl.load(centers, [0, 0], [count, width])
            pl.store(pl.min(pl.sum(c * c, axis=1) - 2.0 * (t @ c.T), axis=1), [row], out)
    return out


@pl.jit
def distances(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    width = x.shape[1]
    for row in pl.parallel(0, x.shape[0], 64):
        for column in pl.parallel(0, y.shape[0], 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                a, b = pl.load(x, [row, 0], [64, width]), pl.load(y, [column, 0], [64, width])
                d = pl.sum(a * a, axis=1, keepdims=True) + pl.sum(b * b, axis=1) - 2.0 * (a @ b.T)
                pl.store(pl.sqrt(pl.maximum(d, 0.0)), [row, column], out)
    return out


@pl.jit
def depthwise(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    channels, size = out.shape
    for c in pl.parallel(0, channels, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            total = pl.zeros([16, size])
            for k in range(4):
                total += pl.load(x, [c, k], [16, size]) * pl.load(w, [c, k], [16, 1])
            pl.store(total, [c, 0], out)
    return out


@pl.jit
def nucleus(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            p = pl.sort(pl.softmax(pl.load(x, [row, 0], [4, x.shape[1]]), axis=-1), axis=-1, descending=True)
            pl.store(pl.where(pl.cumsum(p, axis=-1) - p < 0.9, p, 0.0), [row, 0], out)
    return out


@pl.jit
def experts(x: pl.Tensor, order: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    for expert in pl.parallel(w.shape[0]):
        for token in pl.parallel(0, order.shape[1], 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                rows = pl.load(order[expert], [token], [64])
                out[rows] = x[rows] @ pl.load(w[expert], [0, 0], [w.shape[1], w.shape[2]])
    return out


@pl.jit
def times_column(a: pl.Tensor, x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, a.shape[0], 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            total = pl.zeros([64, 1], dtype=a.dtype)
            for k in pl.range(0, a.shape[1], 64):
                total += pl.load(a, [row, k], [64, 64]) @ pl.load(x, [k, 0], [64, 1])
            pl.store(total, [row, 0], out)
    return out


@pl.jit
def convolved_line(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    outputs, size = out.shape
    channels = x.shape[0]
    for s in pl.parallel(0, size, 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            total = pl.zeros([outputs, 64])
            for k in range(3):
                total += pl.load(w[:, :, k], [0, 0], [outputs, channels]) @ pl.load(x, [0, s + k], [channels, 64])
            pl.store(total, [0, s], out)
    return out


@pl.jit
def gram(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, width = x.shape
    for i in pl.parallel(0, width, 64):
        for j in pl.parallel(0, width, 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                total = pl.zeros([64, 64])
                for k in pl.range(0, rows, 64):
                    total += pl.load(x, [k, i], [64, 64]).T @ pl.load(x, [k, j], [64, 64])
                pl.store(total, [i, j], out)
    return out


@pl.jit
def perceptron(x: pl.Tensor, w1: pl.Tensor, w2: pl.Tensor, out: pl.Out[pl.Tensor]):
    width, hidden = w1.shape
    for row in pl.parallel(0, x.shape[0], 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            h = pl.relu(pl.load(x, [row, 0], [64, width]) @ pl.load(w1, [0, 0], [width, hidden]))
            pl.store(h @ pl.load(w2, [0, 0], [hidden, width]), [row, 0], out)
    return out


@pl.jit
def causal(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor]):
    heads, size, width = q.shape
    for head in pl.parallel(heads):
        for row in pl.parallel(0, size, 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                s = pl.load(q[head], [row, 0], [64, width]) @ pl.load(k[head], [0, 0], [size, width]).T * 0.125
                s = pl.where(pl.arange(size) <= row + pl.iota([64, 1], axis=0), s, float("-inf"))
                pl.store(pl.softmax(s, axis=-1) @ pl.load(v[head], [0, 0], [size, width]), [row, 0], out[head])
    return out


@pl.jit
def attention(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor]):
    heads, size, width = q.shape
    for head in pl.parallel(heads):
        for row in pl.parallel(0, size, 64):
            with pl.at(level=pl.Level.CORE_GROUP):
                queries = pl.load(q[head], [row, 0], [64, width]) * width**-0.5
                best = pl.tile.full([64, 1], dtype=pl.FP32, value=-1e30)
                total, sums = pl.tile.zeros([64, 1]), pl.tile.zeros([64, width])
                for key in pl.range(0, k.shape[1], 64):
                    scores = queries @ pl.load(k[head], [key, 0], [64, width]).T
                    highest = pl.maximum(best, pl.row_max(scores))
                    weights, kept = pl.exp(scores - highest), pl.exp(best - highest)
                    total = total * kept + pl.row_sum(weights)
                    sums = sums * kept + weights @ pl.load(v[head], [key, 0], [64, width])
                    best = highest
                pl.store(sums / total, [row, 0], out[head])
    return out


@pl.jit
def weighted_bags(table: pl.Tensor, words: pl.Tensor, weights: pl.Tensor, out: pl.Out[pl.Tensor]):
    for bag in pl.parallel(words.shape[0]):
        with pl.at(level=pl.Level.CORE_GROUP):
            index = pl.load(words[bag], [0], [words.shape[1]])
            weight = pl.reshape(pl.load(weights[bag], [0], [words.shape[1]]), [words.shape[1], 1])
            out[bag, :] = pl.sum(table[index] * weight, axis=0)
    return out


@dataclass(frozen=True)
class Case:
    """A kernel, what torch calls the same, the shapes of what they take, and that of what they give."""

    name: str
    kernel: Any
    eager: Callable[[Sequence[torch.Tensor]], torch.Tensor]
    shapes: tuple[tuple[int, ...], ...]
    out: tuple[int, ...]
    flops: int = 0
    calls: int = 1
    dtype: torch.dtype = torch.float32

    def enter(self) -> Field:
        inputs = [torch.randn(shape, dtype=self.dtype) for shape in self.shapes]
        return beside(self.kernel, inputs, partial(self.eager, inputs))

    @property
    def contest(self) -> Contest:
        nbytes = self.dtype.itemsize * sum(map(prod, (*self.shapes, self.out)))
        work = Work(flops=self.flops) if self.flops else Work(bytes=nbytes)
        return Contest(f"everyday {self.name}", self.enter, work, target=1.0, calls=self.calls)


def turned_pairs(given: Sequence[torch.Tensor]) -> torch.Tensor:
    x, cos, sin = given
    a, b = x[:, ::2], x[:, 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(1)


def kept(given: Sequence[torch.Tensor]) -> torch.Tensor:
    p = given[0].softmax(1).sort(1, descending=True).values
    return torch.where(p.cumsum(1) - p < 0.9, p, 0.0)


def attended(given: Sequence[torch.Tensor]) -> torch.Tensor:
    q, k, v = (t[None] for t in given)
    return F.scaled_dot_product_attention(q, k, v)[0]


def enter_one_hot() -> Field:
    words, table = torch.randint(0, 512, (4096,)).int(), torch.randn(512, 64)
    return beside(one_hot, (words, table), lambda: F.one_hot(words.long(), 512).float() @ table)


def enter_cholesky() -> Field:
    x = torch.randn(256, 256)
    a = x @ x.mT + 256 * torch.eye(256)
    linear: Any = torch.linalg
    return beside(cholesky, (a,), lambda: linear.cholesky(a).mT.contiguous())


def enter_experts() -> Field:
    x, w = torch.randn(TOKENS, MODEL), torch.randn(EXPERTS, MODEL, MODEL)
    order = torch.randperm(TOKENS).view(EXPERTS, -1)

    def eager() -> torch.Tensor:
        out = torch.empty(TOKENS, MODEL)
        for expert in range(EXPERTS):
            out[order[expert]] = x[order[expert]] @ w[expert]
        return out

    return beside(experts, (x, order, w), eager)


def enter_weighted() -> Field:
    table, words, weights = torch.randn(20000, 128), torch.randint(0, 20000, (N, 32)), torch.rand(N, 32)
    eager = partial(F.embedding_bag, words, table, mode="sum", per_sample_weights=weights)
    return beside(weighted_bags, (table, words, weights), eager)


CASES = (
    Case("moving average", moving_average, lambda t: F.avg_pool1d(t[0][None], 5, 1)[0], ((N, N + 4),), (N, N)),
    Case("average pooling", average_pool, lambda t: F.avg_pool2d(t[0][None], 2)[0], ((N, N),), (N // 2, N // 2)),
    Case("reflected edges", reflected, lambda t: F.pad(t[0][None], (8, 8), mode="reflect")[0], ((N, N),), (N, N + 16)),
    Case(
        "group norm",
        group_norm,
        lambda t: F.group_norm(t[0], 8, t[1], t[2]),
        ((16, 64, 1024), (64,), (64,)),
        (16, 64, 1024),
        calls=4,
    ),
    Case(
        "batch norm",
        batch_norm,
        lambda t: F.batch_norm(t[0], None, None, t[1], t[2], True),
        ((N, 512), (512,), (512,)),
        (N, 512),
        calls=4,
    ),
    Case("rotary pairs", rotated, turned_pairs, ((N, N), (N, N // 2), (N, N // 2)), (N, N)),
    Case(
        "nearest of 256 centers",
        nearest_center,
        lambda t: (t[1].square().sum(1) - 2 * (t[0] @ t[1].mT)).amin(1),
        ((8192, 64), (256, 64)),
        (8192,),
        flops=2 * 8192 * 256 * 64,
    ),
    Case(
        "pairwise distances",
        distances,
        lambda t: torch.cdist(t[0], t[1]),
        ((N, 64), (N, 64)),
        (N, N),
        flops=2 * N * N * 64,
    ),
    Case(
        "depthwise convolution",
        depthwise,
        lambda t: F.conv1d(t[0][None], t[1][:, None], groups=N)[0],
        ((N, N + 3), (N, 4)),
        (N, N),
    ),
    Case("tiles of 64 x 64", doubled, lambda t: t[0] * 2, ((512, 1024),), (512, 1024), calls=16),
    Case("top-p of 32000", nucleus, kept, ((64, 32000),), (64, 32000)),
    Case("matrix by a column", times_column, lambda t: t[0] @ t[1], ((N, N), (N, 1)), (N, 1), calls=4),
    Case(
        "matrix by a column, fp64", times_column, lambda t: t[0] @ t[1], ((N, N), (N, 1)), (N, 1), dtype=torch.float64
    ),
    Case(
        "convolution of a line",
        convolved_line,
        lambda t: F.conv1d(t[0][None], t[1])[0],
        ((64, 4098), (64, 64, 3)),
        (64, 4096),
        flops=6 * 64 * 64 * 4096,
        calls=4,
    ),
    Case("x.T @ x", gram, lambda t: t[0].mT @ t[0], ((N, 512),), (512, 512), flops=2 * N * 512 * 512),
    Case(
        "perceptron",
        perceptron,
        lambda t: F.relu(t[0] @ t[1]) @ t[2],
        ((512, 128), (128, 512), (512, 128)),
        (512, 128),
        flops=4 * 512 * 512 * 128,
        calls=2,
    ),
    Case(
        "causal attention",
        causal,
        lambda t: F.scaled_dot_product_attention(t[0][None], t[1][None], t[2][None], is_causal=True)[0],
        ((8, 512, 64),) * 3,
        (8, 512, 64),
        flops=2 * 8 * 512 * 512 * 64,
    ),
    Case("attention of one query", attention, attended, ((32, 1, 128), *[(32, 2048, 128)] * 2), (32, 1, 128), calls=2),
    Case("attention of 65 queries", attention, attended, ((8, 65, 64), *[(8, 1024, 64)] * 2), (8, 65, 64), calls=4),
)
ROWS = (
    *(case.contest for case in CASES),
    Contest("everyday one-hot product", enter_one_hot, Work(flops=2 * 4096 * 512 * 64), target=1.0),
    Contest("everyday Cholesky by rows", enter_cholesky, Work(flops=256**3 // 3), target=1.0, calls=4),
    Contest("everyday mixture of experts", enter_experts, Work(flops=2 * TOKENS * MODEL**2), target=1.0),
    Contest("everyday weighted bags", enter_weighted, Work(bytes=4 * N * 32 * 128), target=1.0, calls=2),
)
