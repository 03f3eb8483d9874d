"""Products in native code: every shape of operand, every element type."""

from __future__ import annotations

import re

import numpy as np
import pytest
from ops.kernels import Array, kernel, out, scalar, tensor
from ops.native import Native, assert_same
from property.native import check

import tilewright.language as pl
from tilewright.dtypes import DataType
from tilewright.ops.product_types import SUPPORTED, accumulator

M, K, N = 7, 19, 37
F32 = pl.FP32


def matrix(dtype: DataType, *shape: int, seed: int = 0) -> Array:
    """Return random elements, integers from the whole range."""
    rng = np.random.default_rng(seed)
    if dtype.is_float():
        return rng.uniform(-2, 2, shape).astype(dtype.numpy)
    low, high = (int(limit) for limit in dtype.limits)
    return rng.integers(low, high, shape, dtype.numpy, endpoint=True)


def agree(native: Native, *args: Array | float, depth: int = K) -> None:
    """Fail unless products agree: floats are as exact as their terms are large."""
    for got, want in native.run(args):
        assert_same(got, want, ulp=8, scale=np.full(want.shape, 4.0 * depth) if want.dtype.kind == "f" else None)


@pytest.mark.parametrize("dtype", sorted(SUPPORTED, key=str), ids=str)
def test_products_of_every_type(dtype: DataType) -> None:
    wide = accumulator(dtype)
    native = Native(
        kernel(
            f"""
            a = pl.load(x, [0, 0], [{M}, {K}])
            b = pl.load(y, [0, 0], [{K}, {N}])
            p = pl.matmul(a, b)
            out = pl.store(p, [0, 0], out)
            more = pl.store(pl.matmul_acc(p, a, b), [0, 0], more)
            """,
            x=tensor(dtype, M, K),
            y=tensor(dtype, K, N),
            out=out(wide, M, N),
            more=out(wide, M, N),
        )  # fmt: skip
    )
    blank = (np.zeros((M, N), wide.numpy) for _ in "ab")
    agree(native, matrix(dtype, M, K), matrix(dtype, K, N, seed=1), *blank)


BODIES = {
    "whole": "p = pl.matmul(a, b)",
    "turned left": "p = pl.matmul(pl.transpose(at, 0, 1), b)",
    "turned right": "p = pl.matmul(a, pl.tile.transpose_view(bt))",
    "both turned": "p = pl.matmul(pl.tile.transpose_view(at), pl.transpose(bt, 0, 1))",
    "windows": f"p = pl.matmul(pl.slice(wide, [{M}, {K}], [2, i]), pl.slice(wide, [{K}, {N}], [i, 3]))",
    "computed": "p = pl.matmul(pl.neg(a), pl.muls(b, 0.5))",
    "used twice": "p = pl.matmul_acc(pl.matmul(a, b), pl.neg(a), b)",
    "added": "p = pl.matmul_acc(acc, a, b)",
    "added to a copy": "q = pl.matmul_acc(acc, a, b)\np = pl.add(q, acc)",
    "added or not": "p = pl.matmul_acc(acc, a, b, init_cond=i > 2)",
    "bias": "p = pl.matmul_bias(a, b, bias)",
    "turned bias": "p = pl.matmul_bias(a, b, pl.transpose(column, 0, 1))",
    "chain": f"p = pl.matmul(a, pl.matmul(b, pl.slice(wide, [{N}, {N}], [0, 0])))",
    "static part": "p = pl.matmul(pl.set_validshape(a, 5, 11), pl.set_validshape(b, 13, 30))",
    "part": "p = pl.matmul(pl.set_validshape(a, i, j), pl.set_validshape(b, j, 30))",
    "part added": "p = pl.matmul_acc(acc, pl.set_validshape(a, i, j), pl.set_validshape(b, j, 30))",
    "loop": "p = pl.matmul(a, b)\nfor k in pl.range(i):\n    p = pl.matmul_acc(p, a, b)",
    "loop over another": "p = pl.neg(acc)\n"
    "for k in pl.range(i):\n    q = pl.matmul_acc(acc, a, b)\n    p = pl.add(p, q)",
    "loop over a view":
        "p = pl.neg(acc)\nfor k in pl.range(i):\n    v = pl.set_validshape(acc, 7, 30)\n"
        "    q = pl.matmul_acc(pl.set_validshape(v, 7, 37), a, b)\n    p = pl.add(p, q)",
    "sum of windows": "p = acc\n"
    f"for k in range(3):\n    p = pl.matmul_acc(p, wide[k:{M}+k, i:{K}+i], wide[k+i:{K}+k+i, k:{N}+k])",
    "sum and what it began with":
        "q = pl.matmul_acc(acc, a, b)\nr = pl.matmul_acc(q, a, b)\np = pl.add(pl.matmul_acc(r, pl.neg(a), b), acc)",
    "sum of which a part is read": "q = pl.matmul_acc(acc, a, b)\nr = pl.matmul_acc(q, a, b)\np = pl.sub(r, q)",
    "sum of unlike products":
        "q = pl.matmul_acc(acc, a, b)\nr = pl.matmul_acc(q, pl.transpose(at, 0, 1), b)\n"
        f"s = pl.matmul_acc(r, a, wide[0:{K}, 0:{N}])\n"
        f"p = pl.matmul_acc(s, wide[0:{M}, 0:5], wide[0:5, 1:{N}+1])",
    "sum of a tensor that changes":
        "q = pl.matmul_acc(acc, a, b)\nz = pl.store(q, [0, 0], z)\n"
        f"r = pl.matmul_acc(acc, pl.load(z, [0, 0], [{M}, {K}]), b)\nz = pl.store(r, [0, 0], z)\n"
        f"p = pl.matmul_acc(r, pl.load(z, [0, 0], [{M}, {K}]), b)",
    "sum of parts":
        "q = pl.matmul_acc(acc, pl.set_validshape(a, i, j), pl.set_validshape(b, j, 30))\n"
        "p = pl.matmul_acc(q, pl.set_validshape(a, i, j), pl.set_validshape(b, j, 30))",
}  # fmt: skip


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
def test_products_of_every_shape(body: str) -> None:
    loads = f"""
a = pl.load(x, [0, 0], [{M}, {K}])
b = pl.load(y, [0, 0], [{K}, {N}])
at = pl.load(xt, [0, 0], [{K}, {M}])
bt = pl.load(yt, [0, 0], [{N}, {K}])
wide = pl.load(w, [0, 0], [48, 48])
acc = pl.load(z, [0, 0], [{M}, {N}])
bias = pl.load(z, [2, 0], [1, {N}])
column = pl.load(yt, [0, 2], [{N}, 1])
"""
    native = Native(
        kernel(
            f"{loads}{body}\nout = pl.store(p, [0, 0], out)",
            x=tensor(pl.FP32, M, K),
            y=tensor(pl.FP32, K, N),
            xt=tensor(pl.FP32, K, M),
            yt=tensor(pl.FP32, N, K),
            w=tensor(pl.FP32, 48, 48),
            z=tensor(pl.FP32, M, N),
            i=scalar(pl.INDEX),
            j=scalar(pl.INDEX),
            out=out(pl.FP32, M, N),
        )  # fmt: skip
    )
    shapes = (M, K), (K, N), (K, M), (N, K), (48, 48), (M, N)
    arrays = [matrix(pl.FP32, *shape, seed=seed) for seed, shape in enumerate(shapes)]
    for i, j in ((2, 3), (5, 17), (3, 0)):
        agree(native, *arrays, i, j, np.full((M, N), 7, np.float32), depth=K * 64)


def test_a_loop_that_adds_products_of_windows_is_one_sum() -> None:
    @pl.jit
    def windows(x: pl.Tensor[[8, 24], pl.FP32], y: pl.Tensor[[16, 32], pl.FP32], out: pl.Out[pl.Tensor[[8, 32], F32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            a, b = pl.load(x, [0, 0], [8, 24]), pl.load(y, [0, 0], [16, 32])
            acc = pl.zeros([8, 32])
            for i in range(3):
                acc = pl.matmul_acc(acc, a[:, 4 * i : 4 * i + 16], b)
            pl.store(acc, [0, 0], out)
        return out

    called = re.findall(r"call void @gemm(\S+)\(", str(windows.compile().stages["llvm"]))
    assert len([name for name in called if ".micro" not in name]) == 1
    assert all("3terms" in name for name in called)


@pytest.mark.parametrize(
    ("left", "right"), [((3,), (3,)), ((2, 3), (2, 3)), ((2, 3), (1, 3)), ((1,), (4,)), ((3,), ()), ((), (2,))], ids=str
)
def test_products_of_batches(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    batch = np.broadcast_shapes(left, right)
    zeros = [[0] * (len(b) + 2) for b in (left, right, batch)]
    native = Native(
        kernel(
            f"""
            a = pl.load(x, {zeros[0]}, {[*left, M, K]})
            b = pl.load(y, {zeros[1]}, {[*right, K, N]})
            p = pl.batch_matmul(a, b)
            out = pl.store(p, {zeros[2]}, out)
            more = pl.store(pl.batch_matmul_acc(p, pl.neg(a), pl.muls(b, 3.0)), {zeros[2]}, more)
            """,
            x=tensor(pl.FP32, *left, M, K),
            y=tensor(pl.FP32, *right, K, N),
            out=out(pl.FP32, *batch, M, N),
            more=out(pl.FP32, *batch, M, N),
        )  # fmt: skip
    )
    blank = (np.zeros((*batch, M, N), np.float32) for _ in "ab")
    agree(native, matrix(pl.FP32, *left, M, K), matrix(pl.FP32, *right, K, N, seed=1), *blank, depth=4 * K)


@pytest.mark.parametrize("dtype", [pl.FP32, pl.BF16, pl.INT8], ids=str)
def test_a_row_times_a_matrix(dtype: DataType) -> None:
    wide = accumulator(dtype)
    native = Native(
        kernel(
            f"""
            a = pl.load(x, [i, 0], [1, {K}])
            b = pl.load(y, [0, 0], [{K}, {N}])
            p = pl.gemv(a, b)
            out = pl.store(p, [0, 0], out)
            q = pl.gemv_acc(p, pl.load(x, [1, 0], [1, {K}]), pl.load(y, [0, 0], [{K}, {N}]))
            more = pl.store(pl.gemv_bias(a, b, q), [0, 0], more)
            """,
            x=tensor(dtype, M, K),
            y=tensor(dtype, K, N),
            i=scalar(pl.INDEX),
            out=out(wide, 1, N),
            more=out(wide, 1, N),
        )  # fmt: skip
    )
    blank = (np.zeros((1, N), wide.numpy) for _ in "ab")
    agree(native, matrix(dtype, M, K), matrix(dtype, K, N, seed=1), 3, *blank, depth=4 * K)


def test_reading_more_than_the_right_operand_has_is_an_error() -> None:
    native = Native(
        kernel(
            f"a = pl.load(x, [0, 0], [{M}, {K}])\nb = pl.load(y, [i, 0], [{K}, {N}])\n"
            "out = pl.store(pl.matmul(a, b), [0, 0], out)",
            x=tensor(pl.FP32, M, K),
            y=tensor(pl.FP32, K, N),
            i=scalar(pl.INDEX),
            out=out(pl.FP32, M, N),
        )  # fmt: skip
    )
    args = [matrix(pl.FP32, M, K), matrix(pl.FP32, K, N), 2, np.zeros((M, N), np.float32)]
    found, expected = native.errors(args)
    assert found is not None and expected is not None and "not there" in found.message


def test_a_tensor_written_after_its_load_is_multiplied_as_it_was() -> None:
    native = Native(
        kernel(
            f"a = pl.load(x, [0, 0], [{K}, {K}])\nx = pl.store(pl.neg(a), [0, 0], x)\n"
            f"b = pl.load(x, [0, 0], [{K}, {K}])\nout = pl.store(pl.matmul(a, b), [0, 0], out)\n"
            "pl.write(x, [0, 0], 3.0)\nreturn out",
            x=f"pl.InOut[{tensor(pl.FP32, K, K)}]",
            out=out(pl.FP32, K, K),
        )  # fmt: skip
    )
    agree(native, matrix(pl.FP32, K, K), np.zeros((K, K), np.float32))


@pytest.mark.parametrize("dtype", ["BF16", "INT8"])
def test_products_in_words_of_any_depth(dtype: str) -> None:
    """What is left of the inner dimension beside whole words is added, too, and nothing beyond it is read."""
    out = "FP32" if dtype == "BF16" else "INT32"
    check(f"""
import tilewright.language as pl
M = pl.dynamic("M")
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[9, M], pl.{dtype}], b: pl.Tensor[[M, 83], pl.{dtype}],
             a7: pl.Tensor[[9, 7], pl.{dtype}], b7: pl.Tensor[[7, 83], pl.{dtype}],
             c: pl.InOut[pl.Tensor[[9, 83], pl.{out}]]):
        acc = pl.matmul(pl.load(a7, [0, 0], [9, 7]), pl.load(b7, [0, 0], [7, 83]))
        acc = pl.matmul_acc(acc, pl.load(a, [0, 0], [9, 40]), pl.load(b, [0, 0], [40, 83]))
        pl.store(acc, [0, 0], c)
""")


@pytest.mark.parametrize("rows", [1, 5, 8])
def test_few_rows_meet_weights_as_they_are_unpacked(rows: int) -> None:
    """Halves of bytes, and numbers that a half rounds, scaled by rows and columns, at any depth and width."""
    check(f"""
import tilewright.language as pl
M = pl.dynamic("M")
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, a: pl.Tensor[[{rows}, 38], pl.FP16], w: pl.Tensor[[19, 107], pl.UINT8],
             x: pl.Tensor[[{rows}, M], pl.FP32], v: pl.Tensor[[M, 107], pl.INT8],
             s: pl.Tensor[[1, 107], pl.FP32], t: pl.Tensor[[40, 1], pl.FP32],
             c: pl.InOut[pl.Tensor[[{rows}, 107], pl.FP32]], d: pl.Out[pl.Tensor[[{rows}, 107], pl.FP32]]):
        both = pl.cast(pl.load(w, [0, 0], [19, 107]), pl.INT32)
        whole = pl.load(a, [0, 0], [{rows}, 38])
        acc = pl.load(c, [0, 0], [{rows}, 107])
        acc = pl.matmul_acc(acc, whole[:, 0::2], pl.cast((both & 15) - 8, pl.FP16))
        acc = pl.matmul_acc(acc, whole[:, 1::2], pl.cast((both >> 4) * 300 - 8, pl.FP16))
        pl.store(acc, [0, 0], c)
        some = pl.cast(pl.load(v, [0, 0], [40, 107]), pl.FP32) * pl.load(s, [0, 0], [1, 107])
        pl.store(pl.matmul(pl.load(x, [0, 0], [{rows}, 40]), some * pl.load(t, [0, 0], [40, 1])), [0, 0], d)
""")


def test_weights_that_are_computed_as_they_are_read_take_no_memory() -> None:
    @pl.jit
    def widened(
        x: pl.Tensor[[1, 64], pl.FP16], w: pl.Tensor[[64, 512], pl.UINT8], out: pl.Out[pl.Tensor[[1, 512], F32]]
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            low = (pl.cast(pl.load(w, [0, 0], [64, 512]), pl.INT32) & 15) - 8
            pl.store(pl.matmul(pl.load(x, [0, 0], [1, 64]), pl.cast(low, pl.FP16)), [0, 0], out)
        return out

    llvm = str(widened.compile().stages["llvm"])
    assert "gemm" not in llvm and "fptrunc <16 x float>" not in llvm


def test_a_tensor_written_after_its_load_is_widened_as_it_was() -> None:
    native = Native(
        kernel(
            f"a = pl.load(x, [0, 0], [{M}, {M}])\nb = pl.muls(a, 2.0)\nx = pl.store(pl.neg(a), [0, 0], x)\n"
            f"c = pl.muls(pl.load(x, [0, 0], [{M}, {M}]), 3.0)\nout = pl.store(pl.matmul(a, b), [0, 0], out)\n"
            "pl.write(x, [0, 0], 3.0)\nmore = pl.store(pl.matmul(a, c), [0, 0], more)\nreturn out",
            x=f"pl.InOut[{tensor(pl.FP32, M, M)}]",
            out=out(pl.FP32, M, M),
            more=out(pl.FP32, M, M),
        )  # fmt: skip
    )
    agree(native, matrix(pl.FP32, M, M), *(np.zeros((M, M), np.float32) for _ in "ab"))
