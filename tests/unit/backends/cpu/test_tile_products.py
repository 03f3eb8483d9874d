"""Products on matrix tiles, however they are written: functions stand for AMX here."""

from __future__ import annotations

import numpy as np
import pytest
from ops.kernels import kernel, out, scalar, tensor
from ops.native import Native
from unit.backends.cpu.test_products import agree, matrix

import tilewright.language as pl
from tilewright.dtypes import DataType
from tilewright.ops.product_types import accumulator

M, K, N = 39, 150, 50
DTYPES = (pl.BF16, pl.INT8, pl.UINT8)
LOADS = f"""
a = pl.load(x, [0, 0], [{M}, {K}])
b = pl.load(y, [0, 0], [{K}, {N}])
at = pl.load(xt, [0, 0], [{K}, {M}])
bt = pl.load(yt, [0, 0], [{N}, {K}])
wide = pl.load(w, [0, 0], [160, 160])
acc = pl.load(z, [0, 0], [{M}, {N}])
"""
BODIES = {
    "whole": "p = pl.matmul(a, b)",
    "turned left": "p = pl.matmul(pl.transpose(at, 0, 1), b)",
    "turned right": "p = pl.matmul(a, pl.tile.transpose_view(bt))",
    "turned right, whole steps":
        f"p = pl.matmul(wide[0:{M}, 0:128], pl.transpose(pl.load(w, [3, 1], [{N}, 128]), 0, 1))",
    "both turned": "p = pl.matmul(pl.tile.transpose_view(at), pl.transpose(bt, 0, 1))",
    "windows": f"p = pl.matmul(wide[2:{M}+2, i:{K}+i], wide[i:{K}+i, 3:{N}+3])",
    "added": "p = pl.matmul_acc(acc, a, b)",
    "added or not": "p = pl.matmul_acc(acc, a, b, init_cond=i > 2)",
    "static part": "p = pl.matmul(pl.set_validshape(a, 35, 70), pl.set_validshape(b, 70, 33))",
    "part": "p = pl.matmul(pl.set_validshape(a, i, j), pl.set_validshape(b, j, 30))",
    "part of a turned one":
        "p = pl.matmul(pl.set_validshape(pl.transpose(at, 0, 1), i, j), pl.set_validshape(b, j, 30))",
    "part added": "p = pl.matmul_acc(acc, pl.set_validshape(a, i, j), pl.set_validshape(b, j, 30))",
    "few rows": f"p = pl.matmul_acc(acc[0:9, 0:{N}], a[0:9, 0:{K}], b)",
    "loop": "p = pl.matmul(a, b)\nfor k in pl.range(i):\n    p = pl.matmul_acc(p, a, b)",
    "sum of windows":
        f"p = acc\nfor k in range(3):\n    p = pl.matmul_acc(p, wide[k:{M}+k, i:{K}+i], wide[k+i:{K}+k+i, k:{N}+k])",
}  # fmt: skip


@pytest.fixture(autouse=True)
def emulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have functions stand for AMX."""
    monkeypatch.setenv("TILEWRIGHT_AMX", "emulated")


def on_tiles(native: Native) -> bool:
    """Return whether some product of a program runs on matrix tiles."""
    return "emulated tiles" in native.code.texts["tiles"]()


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_products_of_every_shape(dtype: DataType, body: str) -> None:
    wide = accumulator(dtype)
    native = Native(
        kernel(
            f"{LOADS}{body}\nout = pl.store(p, [0, 0], out)",
            x=tensor(dtype, M, K),
            y=tensor(dtype, K, N),
            xt=tensor(dtype, K, M),
            yt=tensor(dtype, N, K),
            w=tensor(dtype, 160, 160),
            z=tensor(wide, M, N),
            i=scalar(pl.INDEX),
            j=scalar(pl.INDEX),
            out=out(wide, M, N),
        )  # fmt: skip
    )
    assert on_tiles(native)
    shapes = (M, K), (K, N), (K, M), (N, K), (160, 160)
    arrays = [matrix(dtype, *shape, seed=seed) for seed, shape in enumerate(shapes)]
    for i, j in ((2, 3), (8, 70), (7, 150), (1, 0)):
        agree(native, *arrays, matrix(wide, M, N, seed=9), i, j, np.full((M, N), 7, wide.numpy), depth=K * 16)


@pytest.mark.parametrize(("left", "right"), [((3,), (3,)), ((2, 3), (1, 3)), ((3,), ()), ((), (2,))], ids=str)
@pytest.mark.parametrize("dtype", DTYPES[:2], ids=str)
def test_products_of_batches(dtype: DataType, left: tuple[int, ...], right: tuple[int, ...]) -> None:
    batch, wide = np.broadcast_shapes(left, right), accumulator(dtype)
    zeros = [[0] * (len(b) + 2) for b in (left, right, batch)]
    native = Native(
        kernel(
            f"""
            a = pl.load(x, {zeros[0]}, {[*left, M, K]})
            b = pl.load(y, {zeros[1]}, {[*right, K, N]})
            p = pl.batch_matmul(a, b)
            out = pl.store(p, {zeros[2]}, out)
            more = pl.store(pl.batch_matmul_acc(p, pl.neg(a), b), {zeros[2]}, more)
            """,
            x=tensor(dtype, *left, M, K),
            y=tensor(dtype, *right, K, N),
            out=out(wide, *batch, M, N),
            more=out(wide, *batch, M, N),
        )  # fmt: skip
    )
    assert on_tiles(native)
    blank = (np.zeros((*batch, M, N), wide.numpy) for _ in "ab")
    agree(native, matrix(dtype, *left, M, K), matrix(dtype, *right, K, N, seed=1), *blank, depth=4 * K)


def test_subnormal_numbers_are_zero() -> None:
    native = Native(
        kernel(
            f"p = pl.matmul(pl.load(x, [0, 0], [{M}, {K}]), pl.load(y, [0, 0], [{K}, {N}]))\n"
            "out = pl.store(p, [0, 0], out)",
            x=tensor(pl.BF16, M, K),
            y=tensor(pl.BF16, K, N),
            out=out(pl.FP32, M, N),
        )  # fmt: skip
    )
    a, b = np.full((M, K), 2.0**-130, pl.BF16.numpy), np.full((K, N), 2.0**100, pl.BF16.numpy)
    *_, (got, want) = native.run((a, b, np.ones((M, N), np.float32)))
    assert (want == K * 2.0**-30).all() and (got <= (K % 32) * 2.0**-30).all()
