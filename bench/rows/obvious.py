"""Obvious: gathers, turned and thinned tiles, and a convolution, as somebody new to the language writes them."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from contest import EAGER, OURS, Contest, Field, Work

import tilewright.language as pl

BAGS, WORDS, WIDTH, VOCABULARY = 2048, 32, 128, 20000
N = 2048
SIDE = 1024
LINES, ENTRIES = 4096, 64
CHANNELS, IMAGE = 64, 56


@pl.jit
def bags(table: pl.Tensor, words: pl.Tensor, out: pl.Out[pl.Tensor]):
    for bag in pl.parallel(words.shape[0]):
        with pl.at(level=pl.Level.CORE_GROUP):
            index = pl.load(words[bag], [0], [words.shape[1]])
            out[bag, :] = pl.sum(table[index], axis=0)
    return out


@pl.jit
def bilinear(image: pl.Tensor, ys: pl.Tensor, xs: pl.Tensor, out: pl.Out[pl.Tensor]):
    height, width = image.shape
    for row in pl.parallel(0, ys.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            y, x = pl.load(ys, [row, 0], [16, ys.shape[1]]), pl.load(xs, [row, 0], [16, ys.shape[1]])
            y0, x0 = pl.cast(y, pl.INT32, mode="floor"), pl.cast(x, pl.INT32, mode="floor")
            y1, x1 = pl.minimum(y0 + 1, height - 1), pl.minimum(x0 + 1, width - 1)
            fy, fx = y - pl.cast(y0, pl.FP32), x - pl.cast(x0, pl.FP32)
            top = image[y0, x0] * (1.0 - fx) + image[y0, x1] * fx
            bottom = image[y1, x0] * (1.0 - fx) + image[y1, x1] * fx
            pl.store(top * (1.0 - fy) + bottom * fy, [row, 0], out)
    return out


@pl.jit
def along(x: pl.Tensor, index: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t, at = x[row : row + 16, :], index[row : row + 16, :]
            out[row : row + 16, :] = pl.gather(t, dim=-1, index=at)
    return out


@pl.jit
def sparse(values: pl.Tensor, columns: pl.Tensor, x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(values.shape[0]):
        with pl.at(level=pl.Level.CORE_GROUP):
            v, c = pl.load(values, [row, 0], [1, ENTRIES]), pl.load(columns, [row, 0], [1, ENTRIES])
            pl.write(out, [row], pl.sum(v * x[c]))
    return out


@pl.jit
def compressed(starts: pl.Tensor, columns: pl.Tensor, values: pl.Tensor, x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(out.shape[0]):
        with pl.at(level=pl.Level.CORE_GROUP):
            begin, end = pl.read(starts, [row]), pl.read(starts, [row + 1])
            total = pl.zeros([64])
            for i in pl.range(begin, end, 64):
                there = i + pl.arange(64) < end
                c = pl.load(columns, [i], [64], mask=there)
                v = pl.load(values, [i], [64], mask=there)
                total += v * x[c]
            pl.write(out, [row], pl.sum(total))  # pyright: ignore[reportArgumentType]
    return out


@pl.jit
def upside_down(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    n = x.shape[0]
    for row in pl.parallel(0, n, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [16, x.shape[1]])[::-1], [n - 16 - row, 0], out)
    return out


@pl.jit
def mirrored(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [16, x.shape[1]])[:, ::-1], [row, 0], out)
    return out


@pl.jit
def turned(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    n = x.shape[0]
    for row in pl.parallel(0, n, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.flip(pl.load(x, [row, 0], [16, x.shape[1]])), [n - 16 - row, 0], out)
    return out


@pl.jit
def thinned(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[row : row + 16, :] = x[row : row + 16, ::2]
    return out


@pl.jit
def thinned_tile(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [16, x.shape[1]])[:, ::2], [row, 0], out)
    return out


@pl.jit
def pooled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [row, 0], [16, x.shape[1]])
            columns = pl.maximum(t[:, ::2], t[:, 1::2])
            pl.store(pl.maximum(columns[::2], columns[1::2]), [row // 2, 0], out)
    return out


@pl.jit
def nearest(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, out.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            rows = (row + pl.arange(16)) // 2
            columns = pl.arange(out.shape[1]) // 2
            pl.store(x[rows][:, columns], [row, 0], out)
    return out


@pl.jit
def nearest_elements(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, out.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            rows = (row + pl.iota([16, 1], axis=0)) // 2
            columns = pl.arange(out.shape[1]) // 2
            pl.store(x[rows, columns], [row, 0], out)
    return out


@pl.jit
def convolved(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    channels = x.shape[0]
    outputs, height, width = out.shape
    for row in pl.parallel(height):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.zeros([outputs, width])
            for dy in range(3):
                for dx in range(3):
                    window = pl.load(x[:, row + dy], [0, dx], [channels, width])
                    acc += pl.load(w[:, :, dy, dx], [0, 0], [outputs, channels]) @ window
            pl.store(acc, [0, 0], out[:, row])
    return out


@pl.jit
def outer(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, out.shape[0], 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            column, line = pl.load(x, [row, 0], [64, 1]), pl.load(y, [0, 0], [1, out.shape[1]])
            pl.store(column * line, [row, 0], out)
    return out


@pl.jit
def complex_product(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            a, b = x[row : row + 16, ::2], x[row : row + 16, 1::2]
            c, d = y[row : row + 16, ::2], y[row : row + 16, 1::2]
            out[row : row + 16, ::2] = a * c - b * d
            out[row : row + 16, 1::2] = a * d + b * c
    return out


@pl.jit
def depthwise(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    channels, height, width = out.shape
    for c in pl.parallel(channels):
        for row in pl.parallel(0, height, 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                total = pl.load(x[c], [row, 0], [8, width]) * pl.read(w, [c, 0, 0])
                for i in range(3):
                    for j in range(3):
                        if i or j:
                            total = total + pl.load(x[c], [row + i, j], [8, width]) * pl.read(w, [c, i, j])
                pl.store(total, [row, 0], out[c])
    return out


@pl.jit
def column_dots(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    n = x.shape[0]
    for column in pl.parallel(0, x.shape[1], 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            product = pl.load(x, [0, column], [n, 32]) * pl.load(y, [0, column], [n, 32])
            pl.store(pl.sum(product, axis=0, keepdims=True), [0, column], out)
    return out


def beside(kernel: Any, inputs: Sequence[torch.Tensor], eager: Callable[[], torch.Tensor]) -> Field:
    """Return a kernel beside what torch calls the same."""
    expected = eager().clone()
    out = torch.full_like(expected, float("nan"))

    def run() -> torch.Tensor:
        kernel(*inputs, out)
        return out

    return Field(expected, {OURS: run, EAGER: eager}, rtol=1e-4, atol=1e-3)


def enter_bags() -> Field:
    table, words = torch.randn(VOCABULARY, WIDTH), torch.randint(0, VOCABULARY, (BAGS, WORDS))
    return beside(bags, (table, words), lambda: torch.nn.functional.embedding_bag(words, table, mode="sum"))


def enter_bilinear() -> Field:
    image = torch.randn(SIDE, SIDE)
    ys, xs = torch.rand(SIDE, SIDE) * (SIDE - 1), torch.rand(SIDE, SIDE) * (SIDE - 1)
    grid = torch.stack([xs, ys], -1)[None] * (2 / (SIDE - 1)) - 1

    def eager() -> torch.Tensor:
        return torch.nn.functional.grid_sample(image[None, None], grid, align_corners=True)[0, 0]

    field = beside(bilinear, (image, ys, xs), eager)
    return Field(field.expected, field.contenders, 1e-2, 1e-2)


def enter_outer() -> Field:
    x, y, out = torch.randn(SIDE, 1), torch.randn(1, SIDE), torch.empty(SIDE, SIDE)
    return beside(outer, (x, y), lambda: torch.outer(x[:, 0], y[0], out=out))


def enter_complex() -> Field:
    x, y = torch.randn(2, N, N)
    a, b = (torch.view_as_complex(each.view(N, -1, 2)) for each in (x, y))
    return beside(complex_product, (x, y), lambda: torch.view_as_real(a * b).view(N, N))


def enter_depthwise() -> Field:
    x, w = torch.randn(CHANNELS, IMAGE + 2, IMAGE + 2), torch.randn(CHANNELS, 3, 3)
    return beside(depthwise, (x, w), lambda: torch.nn.functional.conv2d(x[None], w[:, None], groups=CHANNELS)[0])


def enter_column_dots() -> Field:
    x, y = torch.randn(2, N, N)
    return beside(column_dots, (x, y), lambda: (x * y).sum(0, keepdim=True))


def enter_few() -> Field:
    x, index = torch.randn(N, N), torch.randint(0, N, (N, 8))
    narrow = index.int()
    return beside(along, (x, narrow), lambda: torch.gather(x, 1, index))


def enter_along() -> Field:
    x, index = torch.randn(N, N), torch.randint(0, N, (N, N))
    narrow = index.int()
    out = torch.empty(N, N)
    return beside(along, (x, narrow), lambda: torch.gather(x, 1, index, out=out))


def enter_sparse(kernel: Any) -> Callable[[], Field]:
    def enter() -> Field:
        values, x = torch.randn(LINES, ENTRIES), torch.randn(LINES)
        columns = torch.stack([torch.randperm(LINES)[:ENTRIES].sort().values for _ in range(LINES)]).int()
        starts = torch.arange(0, LINES * ENTRIES + 1, ENTRIES, dtype=torch.int32)
        matrix: torch.Tensor = torch.sparse_csr_tensor(  # pyright: ignore[reportUnknownMemberType]
            starts, columns.view(-1), values.view(-1), (LINES, LINES)
        )
        lists = (starts, columns.view(-1), values.view(-1), x)
        return beside(kernel, (values, columns, x) if kernel is sparse else lists, lambda: matrix @ x)

    return enter


def of_matrix(kernel: Any, eager: Callable[[torch.Tensor], torch.Tensor], n: int = N) -> Callable[[], Field]:
    """Return the contest of what a kernel makes of a matrix."""

    def enter() -> Field:
        x = torch.randn(n, n)
        return beside(kernel, (x,), lambda: eager(x))

    return enter


def enter_convolved() -> Field:
    x, w = torch.randn(CHANNELS, IMAGE + 2, IMAGE + 2), torch.randn(CHANNELS, CHANNELS, 3, 3)
    return beside(convolved, (x, w), lambda: torch.nn.functional.conv2d(x[None], w)[0])


def doubled(x: torch.Tensor) -> torch.Tensor:
    """Return each element four times, in a square."""
    return torch.nn.functional.interpolate(x[None, None], scale_factor=2)[0, 0]


MATRIX = Work(bytes=8 * N * N)
ROWS = (
    Contest("obvious embedding bag", enter_bags, Work(bytes=4 * BAGS * WORDS * WIDTH), target=1.0),
    Contest("obvious bilinear sampling", enter_bilinear, Work(bytes=7 * 4 * SIDE * SIDE), target=1.0),
    Contest(f"obvious gather along rows {N}²", enter_along, Work(bytes=12 * N * N), target=1.0),
    Contest(
        "obvious sparse rows times vector", enter_sparse(sparse), Work(bytes=8 * LINES * ENTRIES), target=1.0, calls=4
    ),
    Contest("obvious CSR times vector", enter_sparse(compressed), Work(bytes=8 * LINES * ENTRIES), target=1.0, calls=4),
    Contest(f"obvious [::-1] {N}²", of_matrix(upside_down, lambda x: torch.flip(x, (0,))), MATRIX, target=1.0),
    Contest(f"obvious [:, ::-1] {N}²", of_matrix(mirrored, lambda x: torch.flip(x, (1,))), MATRIX, target=1.0),
    Contest(f"obvious flip {N}²", of_matrix(turned, lambda x: torch.flip(x, (0, 1))), MATRIX, target=1.0),
    Contest(
        f"obvious [:, ::2] of a tensor {N}²", of_matrix(thinned, lambda x: x[:, ::2].contiguous()), MATRIX, target=1.0
    ),
    Contest(
        f"obvious [:, ::2] of a tile {N}²",
        of_matrix(thinned_tile, lambda x: x[:, ::2].contiguous()),
        MATRIX,
        target=1.0,
    ),
    Contest(
        f"obvious max pooling {N}²",
        of_matrix(pooled, lambda x: torch.nn.functional.max_pool2d(x[None], 2)[0]),
        MATRIX,
        target=1.0,
    ),
    Contest(f"obvious nearest of {SIDE}²", of_matrix(nearest, doubled, SIDE), Work(bytes=20 * SIDE**2), target=1.0),
    Contest(
        f"obvious nearest, by element, of {SIDE}²",
        of_matrix(nearest_elements, doubled, SIDE),
        Work(bytes=20 * SIDE**2),
        target=1.0,
    ),
    Contest("obvious convolution", enter_convolved, Work(flops=18 * CHANNELS**2 * IMAGE**2), target=1.0, calls=2),
    Contest(f"obvious outer product {SIDE}²", enter_outer, Work(bytes=4 * SIDE**2), target=1.0, calls=4),
    Contest(f"obvious complex product {N}²", enter_complex, Work(bytes=12 * N * N), target=1.0),
    Contest(
        "obvious depthwise convolution", enter_depthwise, Work(flops=18 * CHANNELS * IMAGE**2), target=1.0, calls=4
    ),
    Contest(f"obvious dots of columns {N}²", enter_column_dots, Work(bytes=8 * N * N), target=1.0),
    Contest(f"obvious gather of 8 of {N}", enter_few, Work(bytes=8 * 8 * N), target=1.0, calls=8),
)
