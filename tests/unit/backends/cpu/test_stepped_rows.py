"""Stepped rows: a few rows that go through each pass together leave what the interpreter leaves, on any number."""

from __future__ import annotations

import numpy as np
import pytest
from unit.backends.cpu.running import floats, kernel

from tilewright.backends.cpu.compute.stepped_rows import FAR, FITS, MOST, PAIR

BODIES = {
    "softmax": ("e = pl.exp(t - pl.row_max(t))", "out = pl.store(e / pl.row_sum(e), [0, 0], out)"),
    "log-softmax": (
        "s = t - pl.row_max(t)",
        "out = pl.store(s - pl.log(pl.row_sum(pl.exp(s))), [0, 0], out)",
    ),
    "layer norm": (
        "s = t - pl.row_sum(t) * (1 / COLUMNS)",
        "v = pl.row_sum(s * s) * (1 / COLUMNS)",
        "out = pl.store(s * pl.rsqrt(v + 1e-5) * w, [0, 0], out)",
    ),
    "a computed row for all": (
        "more = pl.exp(w)",
        "out = pl.store(pl.col_expand_mul(t - pl.row_max(t), more) + more, [0, 0], out)",
    ),
    "stores of two passes": (
        "out = pl.store(pl.exp(t), [0, 0], out)",
        "other = pl.store(t - pl.row_max(t), [0, 0], other)",
    ),
    "stores of two passes to one tensor": (
        "out = pl.store(t * 2.0, [0, 0], out)",
        "out = pl.store(t - pl.row_max(t), [0, 0], out)",
    ),
    "in place": (
        "u = pl.load(out, [0, 0], [ROWS, COLUMNS])",
        "out = pl.store(t * pl.row_sum(u) + u, [0, 0], out)",
    ),
    "bool numbers": (
        "some = pl.row_max(t) > 1.5",
        "out = pl.store(pl.where(some, t - pl.row_sum(t), t), [0, 0], out)",
    ),
    "positions": (
        "place = pl.argmax(t, axis=-1, keepdims=True)",
        "out = pl.store(t * pl.cast(place, pl.FP32), [0, 0], out)",
    ),
    "a later reader": (
        "e = pl.exp(t - pl.row_max(t))",
        "out = pl.store(e / pl.row_sum(e), [0, 0], out)",
        "other = pl.store(pl.transpose(e, 0, 1), [0, 0], other)",
    ),
    "narrow floats": (
        "h = pl.cast(t, pl.BF16)",
        "m = pl.row_max(h)",
        "out = pl.store(pl.cast(h - m, pl.FP32) * pl.cast(m, pl.FP32), [0, 0], out)",
    ),
}


@pytest.mark.parametrize("columns", [24, 200, FITS // 4 // 2, PAIR // 4 // 2])
@pytest.mark.parametrize("rows", [1, MOST - 1, 2 * MOST + 3])
@pytest.mark.parametrize("name", [*BODIES])
def test_rows_that_go_on_together_end_as_each_by_itself(name: str, rows: int, columns: int) -> None:
    body = [line.replace("ROWS", str(rows)).replace("COLUMNS", str(columns)) for line in BODIES[name]]
    tensor, most = f"pl.Tensor[[{rows}, {columns}], pl.FP32]", max(rows, columns)
    program = kernel(
        f"x: {tensor}, y: pl.Tensor[[1, {columns}], pl.FP32], out: pl.InOut[{tensor}], "
        f"other: pl.InOut[pl.Tensor[[{most}, {most}], pl.FP32]]",
        f"t, w = pl.load(x, [0, 0], [{rows}, {columns}]), pl.load(y, [0, 0], [1, {columns}])",
        *body,
    )
    program.check(floats(rows, columns), floats(1, columns, seed=1), floats(rows, columns, seed=2), floats(most, most))


@pytest.mark.parametrize("name", ["softmax", "log-softmax", "a computed row for all"])
def test_rows_from_far_go_on_alone_or_a_few_together(name: str) -> None:
    for rows, columns in ((1 << 15, 40), (1 << 12, FAR // 4 + 3)):
        body = [line.replace("COLUMNS", str(columns)) for line in BODIES[name]]
        tensor = f"pl.Tensor[[{rows}, {columns}], pl.FP32]"
        program = kernel(
            f"x: {tensor}, y: pl.Tensor[[1, {columns}], pl.FP32], out: pl.InOut[{tensor}]",
            f"t, w = pl.load(x, [{rows - 19}, 0], [19, {columns}]), pl.load(y, [0, 0], [1, {columns}])",
            *body,
        )
        program.check(floats(rows, columns), floats(1, columns, seed=1), np.zeros((rows, columns), np.float32))


@pytest.mark.parametrize("rows", [0, 1, 5, 21])
def test_rows_are_as_many_as_a_tensor_has(rows: int) -> None:
    tensor = "pl.Tensor[[M, 40], pl.FP32]"
    program = kernel(
        f"x: {tensor}, out: pl.InOut[{tensor}]",
        "m = pl.tensor.dim(x, 0)",
        "t = pl.load(x, [0, 0], [32, 40], valid_shape=[m, 40])",
        "e = pl.exp(t - pl.row_max(t))",
        "out = pl.store(e / pl.row_sum(e), [0, 0], out)",
    )
    program.check(floats(rows, 40), floats(rows, 40, seed=1))


def test_rows_of_three_axes_go_on_together_along_the_last() -> None:
    tensor = "pl.Tensor[[3, 11, 40], pl.FP32]"
    program = kernel(
        f"x: {tensor}, out: pl.InOut[{tensor}]",
        "t = pl.load(x, [0, 0, 0], [3, 11, 40])",
        "e = pl.exp(t - pl.max(t, axis=-1, keepdims=True))",
        "out = pl.store(e / pl.sum(e, axis=-1, keepdims=True), [0, 0, 0], out)",
    )
    program.check(floats(3, 11, 40), floats(3, 11, 40, seed=1))
