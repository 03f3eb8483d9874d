"""Whole tensors: what is computed on tensors of unknown extents, block by block, is what the interpreter gives."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from unit.backends.cpu.running import floats as random_floats
from unit.backends.cpu.running import kernel


def floats(shape: tuple[int, ...], seed: int = 0) -> NDArray[np.float32]:
    return random_floats(*shape, seed=seed)


XY = "x: pl.Tensor[[M, N], pl.FP32], y: pl.Tensor[[M, N], pl.FP32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]"
ROWS = "x: pl.Tensor[[M, N], pl.FP32], out: pl.Out[pl.Tensor[[M, 1], pl.FP32]]"
COLUMNS = "x: pl.Tensor[[M, N], pl.FP32], out: pl.Out[pl.Tensor[[1, N], pl.FP32]]"
EXTENTS = [(0, 3), (3, 0), (1, 1), (17, 5), (70, 1030), (3, 2100)]

COMPUTED = {
    "two tensors": "out[:, :] = x + y",
    "a chain": "out[:, :] = pl.exp(x - y) * 0.5",
    "a column": "out[:, :] = pl.row_expand_sub(x, pl.row_max(y))",
    "a row": "out[:, :] = pl.col_expand_mul(x, pl.col_sum(y))",
    "rows and columns": "out[:, :] = pl.row_sum(x) + pl.col_max(y)",
    "a comparison": "out[:, :] = pl.cmp(x, y, cmp_type=pl.CmpType.LT)",
    "a comparison with a scalar": "out[:, :] = pl.cmps(x, 0.25, cmp_type=pl.CmpType.GE)",
    "a number everywhere": "out[:, :] = pl.expands(x, 2.5)",
    "a change of type": "out[:, :] = pl.cast(pl.cast(x, pl.INT32, mode='floor'), pl.FP32)",
    "half": "out[:, :] = pl.cast(pl.cast(x, pl.FP16) + pl.cast(y, pl.FP16), pl.FP32)",
    "halves of rows": "z = pl.concat(x, y)\nout[:, :] = z[:, 0 : x.shape[1]] + y",
}


@pytest.mark.parametrize("name", COMPUTED)
def test_tensors_of_unknown_extents_compute(name: str) -> None:
    compiled = kernel(XY, *COMPUTED[name].split("\n"))
    for shape in EXTENTS:
        compiled.check(floats(shape), floats(shape, 1), np.zeros(shape, np.float32))


@pytest.mark.parametrize("op", ["row_sum", "row_max", "row_min", "row_prod"])
def test_rows_of_any_length_fold(op: str) -> None:
    compiled = kernel(ROWS, f"out[:, :] = pl.{op}(x)")
    for rows, columns in [*EXTENTS, (65, 4100)]:
        compiled.check(floats((rows, columns)), np.zeros((rows, 1), np.float32))


@pytest.mark.parametrize("op", ["col_sum", "col_max", "col_min", "col_prod"])
def test_columns_of_any_length_fold(op: str) -> None:
    compiled = kernel(COLUMNS, f"out[:, :] = pl.{op}(x)")
    for rows, columns in [*EXTENTS, (130, 260)]:
        compiled.check(floats((rows, columns)), np.zeros((1, columns), np.float32))


@pytest.mark.parametrize("dtype", ["FP16", "BF16", "INT32", "INT8"])
@pytest.mark.parametrize("op", ["row_sum", "col_sum", "row_max"])
def test_elements_of_every_kind_fold(op: str, dtype: str) -> None:
    out = "[M, 1]" if op.startswith("row") else "[1, N]"
    compiled = kernel(
        f"x: pl.Tensor[[M, N], pl.{dtype}], out: pl.Out[pl.Tensor[{out}, pl.{dtype}]]", f"out[:, :] = pl.{op}(x)"
    )
    held = {"FP16": np.float16, "BF16": ml_dtypes.bfloat16, "INT32": np.int32, "INT8": np.int8}[dtype]
    for rows, columns in [(9, 5), (70, 2100)]:
        x = (floats((rows, columns)) * 3).astype(held)
        compiled.check(x, np.zeros((rows, 1) if op.startswith("row") else (1, columns), held))


PRODUCTS = {
    "plain": ("[M, K]", "[K, N]", "pl.matmul(x, y)"),
    "left turned": ("[K, M]", "[K, N]", "pl.matmul(x, y, a_trans=True)"),
    "right turned": ("[M, K]", "[N, K]", "pl.matmul(x, y, b_trans=True)"),
    "added": ("[M, K]", "[K, N]", "pl.matmul_acc(out, x, y)"),
    "added or not": ("[M, K]", "[K, N]", "pl.matmul_acc(out, x, y, init_cond=c)"),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_matrices_of_any_extents_multiply(name: str) -> None:
    left, right, product = PRODUCTS[name]
    params = f"x: pl.Tensor[{left}, pl.FP32], y: pl.Tensor[{right}, pl.FP32], out: pl.InOut[pl.Tensor[[M, N], pl.FP32]]"
    compiled = kernel(f"{params}, c: pl.Scalar[pl.BOOL]", f"out[:, :] = {product}")
    for m, n, k in [(1, 1, 1), (5, 0, 3), (5, 7, 0), (19, 260, 131), (1030, 3, 300)]:
        extents = {"M": m, "N": n, "K": k}
        x, y = (floats(tuple(extents[c] for c in text if c in extents), i) for i, text in enumerate((left, right)))
        for first in (True, False):
            compiled.check(x, y, floats((m, n), 2), first)


MIXED = [("FP16", "FP32"), ("BF16", "BF16"), ("INT8", "INT32"), ("INT8", "INT8"), ("FP32", "INT32")]


@pytest.mark.parametrize(("a", "b"), MIXED)
def test_matrices_of_other_types_multiply(a: str, b: str) -> None:
    types = {"FP16": np.float16, "FP32": np.float32, "BF16": ml_dtypes.bfloat16, "INT8": np.int8, "INT32": np.int32}
    compiled = kernel(
        f"x: pl.Tensor[[M, K], pl.{a}], y: pl.Tensor[[K, N], pl.{b}], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]",
        "out[:, :] = pl.cast(pl.matmul(x, y), pl.FP32)",
    )
    x, y = floats((19, 33)) * 4, floats((33, 40), 1) * 4
    compiled.check(x.astype(types[a]), y.astype(types[b]), np.zeros((19, 40), np.float32))


@pytest.mark.parametrize(
    ("left", "right"), [((3, 9, 5), (3, 5, 7)), ((1, 9, 5), (3, 5, 7)), ((3, 9, 5), (1, 5, 7)), ((3, 9, 5), (5, 7))]
)
@pytest.mark.parametrize("known", [False, True])
def test_batches_meet(left: tuple[int, ...], right: tuple[int, ...], known: bool) -> None:
    batch = [str(shape[:1][0]) if known else name for shape, name in ((left, "B"), (right, "C"))]
    y = f"[{batch[1]}, K, N]" if len(right) == 3 else "[K, N]"
    compiled = kernel(
        f"x: pl.Tensor[[{batch[0]}, M, K], pl.FP32], y: pl.Tensor[{y}, pl.FP32], "
        "out: pl.Out[pl.Tensor[[3, M, N], pl.FP32]]",
        "out[:, :, :] = pl.matmul(x, y)",
    )
    compiled.check(floats(left), floats(right, 1), np.zeros((3, 9, 7), np.float32))


UNKNOWN = (
    "x: pl.Tensor[[M, N], pl.FP32], y: pl.Tensor[[K, B], pl.FP32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]], "
    "n: pl.Scalar[pl.INDEX], m: pl.Scalar[pl.INDEX]"
)


@pytest.mark.parametrize("shape", [(17, 5), (1, 5), (17, 1), (1, 1), (4, 5), (17, 4)])
def test_which_of_two_extents_repeats_shows_when_they_meet(shape: tuple[int, int]) -> None:
    kernel(UNKNOWN, "out[:, :] = x + y").agrees(floats((17, 5)), floats(shape, 1), np.zeros((17, 5), np.float32), 0, 0)


def test_slices_meet() -> None:
    compiled = kernel(UNKNOWN, "out[0:n, 0:m] = x[0:n, 0:m] * y[0:n, 0:m]")
    for n, m in [(3, 4), (0, 2), (20, 40), (1, 40)]:
        compiled.check(floats((20, 40)), floats((20, 40), 1), np.zeros((20, 40), np.float32), n, m)


PARTS = {
    "a sum": "z = pl.set_validshape(x, n, m) + y",
    "of the second": "z = x + pl.set_validshape(y, n, m)",
    "filled": "z = pl.fillpad(pl.set_validshape(x, n, m), pad_value=pl.PadValue.min)",
    "sums of rows": "z = pl.row_sum(pl.set_validshape(x, n, m)) + pl.set_validshape(y, n, m)",
    "sums of columns": "z = pl.col_sum(pl.set_validshape(x, n, m)) + pl.set_validshape(y, n, m)",
    "joined": "z = pl.concat(pl.set_validshape(x, n, x.shape[1]), x)[:, m : m + 4]",
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_tensors_compute(name: str) -> None:
    compiled = kernel(UNKNOWN, PARTS[name], "pl.store(pl.load(z, [0, 0], [3, 4]), [0, 0], out)")
    for n, m in [(3, 4), (20, 40), (7, 9)]:
        compiled.agrees(floats((20, 40)), floats((20, 40), 1), np.zeros((20, 40), np.float32), n, m)


def test_ranks_other_than_two_compute() -> None:
    one = kernel("x: pl.Tensor[[N], pl.FP32], out: pl.Out[pl.Tensor[[N], pl.FP32]]", "out[:] = pl.exp(x) + x")
    one.check(floats((2100,)), np.zeros(2100, np.float32))
    three = kernel(
        "x: pl.Tensor[[M, 3, N], pl.FP32], y: pl.Tensor[[N], pl.FP32], out: pl.Out[pl.Tensor[[M, 3, N], pl.FP32]]",
        "out[:, :, :] = x * y - pl.row_sum(x)",
    )
    three.check(floats((4, 3, 33)), floats((33,), 1), np.zeros((4, 3, 33), np.float32))


def test_a_comparison_of_known_extents_computes() -> None:
    params = "x: pl.Tensor[[8, 16], pl.FP32], out: pl.Out[pl.Tensor[[8, 16], pl.FP32]]"
    compiled = kernel(params, "out[:, :] = pl.cmps(x, 0.0, cmp_type=pl.CmpType.GT)")
    compiled.check(floats((8, 16)), np.zeros((8, 16), np.float32))


def test_a_known_part_of_a_tensor_ends_within_a_block() -> None:
    params = "x: pl.Tensor[[40, 2100], pl.FP32], out: pl.Out[pl.Tensor[[40, 2100], pl.FP32]]"
    compiled = kernel(
        params,
        "p = pl.set_validshape(x, 19, 2050)",
        "q = pl.exp(p) - pl.row_max(p) + pl.col_sum(p)",
        "out = pl.assemble(out, q, [1, 2])",
    )
    compiled.check(floats((40, 2100)) * 0.1, np.zeros((40, 2100), np.float32))
