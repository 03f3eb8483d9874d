"""Blocking: compute on whole tensors becomes loops over tiles, whatever their extents."""

from __future__ import annotations

import pytest
from unit.passes.texts import gives, kernel, leaves

from tilewright.core.expr import Call
from tilewright.core.stmt import AssignStmt
from tilewright.core.verify import verify
from tilewright.passes import block_tensors

UNKNOWN = "x: pl.Tensor[[M, N], pl.FP32], y: pl.InOut[pl.Tensor[[M, N], pl.FP32]]"


def test_each_element_is_computed_in_its_block() -> None:
    after = kernel(
        """
    z = pl.create_tensor([M, N], dtype=pl.FP32)
    for i in pl.parallel(0, M, 16):
        for j in pl.parallel(0, N, 1024):
            t = pl.load(x, [i, j], [16, 1024], clamp=True)
            u = pl.load(y, [i, j], [16, 1024], clamp=True)
            v = pl.add(t, u)
            pl.store(v, [i, j], z)
    pl.write(y, [0, 0], pl.read(z, [0, 0]))
    """,
        UNKNOWN,
    )
    gives(block_tensors.run, kernel("z = pl.add(x, y)\npl.write(y, [0, 0], pl.read(z, [0, 0]))", UNKNOWN), after)


def test_a_folding_goes_on_from_block_to_block() -> None:
    after = kernel(
        """
    z = pl.create_tensor([M, 1], dtype=pl.FP32)
    for i in pl.parallel(0, M, 8):
        t = pl.load(x, [i, 0], [8, 2048], clamp=True)
        s = pl.row_sum(t)
        for j, (acc,) in pl.range(2048, N, 2048, init_values=(s,)):
            u = pl.load(x, [i, j], [8, 2048], clamp=True)
            v = pl.row_sum(u)
            w = pl.add(acc, v)
            r = pl.yield_(w)
        pl.store(r, [i, 0], z)
    pl.write(y, [0, 0], pl.read(z, [0, 0]))
    """,
        UNKNOWN,
    )
    gives(block_tensors.run, kernel("z = pl.row_sum(x)\npl.write(y, [0, 0], pl.read(z, [0, 0]))", UNKNOWN), after)


@pytest.mark.parametrize(
    "value",
    [
        "pl.matmul(x, y, b_trans=True)",
        "pl.cmp(x, y)",
        "pl.concat(x, y)",
        "pl.fillpad(pl.set_validshape(x, 2, 3))",
        "pl.expands(x, 1.0)",
        "pl.col_sum(pl.cast(x, pl.FP16))",
        "pl.add(x, pl.slice(y, [1, 4], [0, 0]))",
        "pl.add(pl.slice(x, [pl.dim(x, 0), 4], [0, 0]), pl.slice(y, [pl.dim(y, 1), 4], [0, 0]))",
    ],
)
def test_nothing_computes_on_whole_tensors_afterwards(value: str) -> None:
    after = block_tensors.run(kernel(f"z = {value}\npl.write(y, [0, 0], pl.read(y, [0, 0]))\nreturn z", UNKNOWN))
    verify(after)
    gives(block_tensors.run, after, after)


def test_what_only_moves_tensors_stays() -> None:
    leaves(block_tensors.run, kernel("z = pl.slice(x, [1, 4], [0, 0])\npl.assemble(y, z, [0, 0])", UNKNOWN))


@pytest.mark.parametrize(
    ("rows", "columns", "depth", "is_large"),
    [
        (512, 512, 512, True), (256, 256, 256, False), (1, 4096, 4096, True), (8, 2048, 2048, True),
        (1, 1024, 1024, False), (1, 64, 1 << 18, False), (16, 2048, 2048, True), (128, 128, 1 << 20, False),
    ],
)  # fmt: skip
def test_products_that_are_worth_two_threads_are_cut_into_blocks(
    rows: int, columns: int, depth: int, is_large: bool
) -> None:
    parameters = f"x: pl.Tensor[[{rows}, {depth}], pl.FP32], y: pl.Tensor[[{depth}, {columns}], pl.FP32]"
    (function,) = kernel("z = pl.matmul(x, y)\nreturn z", parameters).function_list
    (product, *_) = function.body
    assert isinstance(product, AssignStmt) and isinstance(product.value, Call)
    assert block_tensors.is_large_product(product.value) == is_large
