"""Groups: which ops share a loop over rows, and what is stored between them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from ops.streamed import take_for_large
from unit.backends.cpu.running import Native, floats, kernel

import tilewright.language as pl
from tilewright.native.target import host

R, N = 9, 40
X = f"x: pl.Tensor[[{R}, {N}], pl.FP32]"
ROW = f"w: pl.Tensor[[1, {N}], pl.FP32]"
OUT = f"out: pl.Out[pl.Tensor[[{R}, {N}], pl.FP32]]"
LOAD_X, LOAD_W = f"t = pl.load(x, [0, 0], [{R}, {N}])", f"row = pl.load(w, [0, 0], [1, {N}])"


def code_of(program: Native) -> str:
    """Return the LLVM IR of the function that computes."""
    functions = re.findall(r"^define.*?^}", program.native.code.texts["llvm"](), re.MULTILINE | re.DOTALL)
    return next(text for text in functions if "_incore_" in text.splitlines()[0])


def row_loops(program: Native) -> int:
    """Return how many loops run over the rows of `x`."""
    return len(re.findall(rf"icmp slt i64 %\w+, {R}$", code_of(program), re.MULTILINE))


def stored(program: Native) -> int:
    """Return how many tiles the arena has room for."""
    return len(set(re.findall(r"getelementptr i8, ptr %arena, i64 (\d+)", code_of(program))))


def blank(rows: int = R, columns: int = N) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.zeros((rows, columns), np.float32)


@pytest.mark.parametrize("loads", [(LOAD_W, LOAD_X), (LOAD_X, LOAD_W)], ids=["row first", "tile first"])
def test_a_loaded_row_joins_the_loop_that_reads_it(loads: tuple[str, str]) -> None:
    program = kernel(f"{X}, {ROW}, {OUT}", *loads, "out = pl.store(pl.col_expand_mul(t, row), [0, 0], out)")
    program.check(floats(R, N), floats(1, N, seed=1), blank())
    assert (row_loops(program), stored(program)) == (1, 0)


def test_a_row_may_be_loaded_between_reductions_and_what_reads_them() -> None:
    program = kernel(
        f"{X}, {ROW}, {OUT}",
        LOAD_X,
        "total = pl.row_sum(t * t)",
        LOAD_W,
        "out = pl.store(pl.col_expand_mul(pl.row_expand_mul(t, total), row), [0, 0], out)",
    )
    program.check(floats(R, N), floats(1, N, seed=1), blank())
    assert (row_loops(program), stored(program)) == (1, 0)


def test_a_computed_row_is_stored_and_the_tile_beside_it_is_not() -> None:
    program = kernel(
        f"{X}, {ROW}, {OUT}",
        LOAD_X,
        LOAD_W,
        "more = pl.exp(row + 1.0)",
        "out = pl.store(pl.col_expand_mul(pl.col_expand_mul(t, more), more), [0, 0], out)",
    )
    program.check(floats(R, N), floats(1, N, seed=1), blank())
    assert (row_loops(program), stored(program)) == (1, 1)


def test_a_row_that_is_read_again_later_is_stored_before_its_tensor_changes() -> None:
    program = kernel(
        f"{X}, w: pl.InOut[pl.Tensor[[1, {N}], pl.FP32]], {OUT}",
        LOAD_X,
        LOAD_W,
        "v = pl.col_expand_mul(t, row)",
        "w = pl.store(pl.mul(row, 2.0), [0, 0], w)",
        "again = pl.load(w, [0, 0], [1, 40])",
        "out = pl.store(pl.col_expand_add(pl.col_expand_add(v, row), again), [0, 0], out)",
    )
    program.check(floats(R, N), floats(1, N, seed=1), blank())


def test_a_row_that_a_later_loop_reads_is_stored_once() -> None:
    program = kernel(
        f"{X}, {ROW}, {OUT}",
        LOAD_X,
        LOAD_W,
        "v = pl.col_expand_mul(t, row)",
        "for i in pl.range(3):",
        "    part = pl.slice(v, [1, 40], [i, 0])",
        "    out = pl.store(pl.add(part, row), [i, 0], out)",
    )
    program.check(floats(R, N), floats(1, N, seed=1), blank())


@pytest.mark.parametrize("columns", [1, 3, 16, 70])
def test_one_row_serves_every_row_whatever_its_width(columns: int) -> None:
    program = kernel(
        f"x: pl.Tensor[[{R}, {columns}], pl.FP32], w: pl.Tensor[[5, {columns}], pl.BF16], "
        f"out: pl.Out[pl.Tensor[[{R}, {columns}], pl.FP32]]",
        f"t = pl.load(x, [0, 0], [{R}, {columns}])",
        f"row = pl.cast(pl.load(w, [3, 0], [1, {columns}]), pl.FP32)",
        "out = pl.store(pl.col_expand_add(t, row), [0, 0], out)",
    )
    program.check(floats(R, columns), floats(5, columns).astype("bfloat16"), blank(R, columns))


def test_a_row_of_three_axes_serves_them_all() -> None:
    program = kernel(
        "x: pl.Tensor[[2, 3, 20], pl.FP32], w: pl.Tensor[[4, 5, 20], pl.FP32], "
        "out: pl.Out[pl.Tensor[[2, 3, 20], pl.FP32]]",
        "t = pl.load(x, [0, 0, 0], [2, 3, 20])",
        "row = pl.load(w, [2, 1, 0], [1, 1, 20])",
        "out = pl.store(pl.add(t, row), [0, 0, 0], out)",
    )
    program.check(floats(2, 3, 20), floats(4, 5, 20, seed=1), np.zeros((2, 3, 20), np.float32))
    assert stored(program) == 0


def test_a_turned_row_is_gathered_once() -> None:
    program = kernel(
        f"{X}, w: pl.Tensor[[{N}, 1], pl.FP32], {OUT}",
        LOAD_X,
        "row = pl.load(pl.transpose(w, 0, 1), [0, 0], [1, 40])",
        "out = pl.store(pl.col_expand_mul(t, row), [0, 0], out)",
    )
    program.check(floats(R, N), floats(N, 1, seed=1), blank())


def test_a_vector_is_multiplied_where_it_lies() -> None:
    program = kernel(
        f"w: pl.Tensor[[1, {N}], pl.FP32], m: pl.Tensor[[{N}, 16], pl.FP32], out: pl.Out[pl.Tensor[[1, 16], pl.FP32]]",
        LOAD_W,
        f"out = pl.store(pl.matmul(row, pl.load(m, [0, 0], [{N}, 16])), [0, 0], out)",
    )
    program.check(floats(1, N), floats(N, 16), blank(1, 16))
    assert stored(program) == 1


DIVISORS = (3.0, -7e-3, 1e-45, -3e-39, 1.2e-38, 8.6e37, -1.7e38, 3.4e38, 0.0, np.inf, -np.inf, np.nan)


@pytest.mark.parametrize("columns", [40, 200])
def test_rows_are_divided_by_numbers_of_any_size(columns: int) -> None:
    rows = len(DIVISORS)
    program = kernel(
        f"x: pl.Tensor[[{rows}, {columns}], pl.FP32], d: pl.Tensor[[{rows}, 1], pl.FP32], "
        f"out: pl.Out[pl.Tensor[[{rows}, {columns}], pl.FP32]]",
        f"t = pl.load(x, [0, 0], [{rows}, {columns}])",
        f"out = pl.store(pl.row_expand_div(t, pl.load(d, [0, 0], [{rows}, 1])), [0, 0], out)",
    )
    sizes = np.ldexp(np.float32(1), np.linspace(-149, 126, columns).astype(np.int32))
    x: Any = (floats(rows, columns) * sizes).astype(np.float32)
    x[:, :4] = 0, -np.inf, np.nan, 3.4e38
    d: Any = np.array(DIVISORS, np.float32)[:, None]
    with np.errstate(all="ignore"):
        expected: Any = x / d
    (_, _, found), _ = program.run([x, d, blank(rows, columns)])
    np.testing.assert_allclose(found, expected, rtol=2.5e-7, atol=2e-45)


def test_a_row_is_multiplied_once_by_the_inverse_of_its_divisor() -> None:
    program = kernel(
        "x: pl.Tensor[[8, 200], pl.FP32], d: pl.Tensor[[8, 1], pl.FP32], out: pl.Out[pl.Tensor[[8, 200], pl.FP32]]",
        "t = pl.load(x, [0, 0], [8, 200])",
        "out = pl.store(pl.row_expand_div(t, pl.load(d, [0, 0], [8, 1])), [0, 0], out)",
    )
    code = program.native.code.texts["llvm"]()
    block = code.count("= load <")  # what is left is masked, and so are rows whose divisor has no normal inverse
    assert (code.count("fmul <"), code.count("fdiv <")) == (block + 1, 1)


@pytest.mark.parametrize("columns", [1, 5, 16, 31, 64, 65, 128, 190])
def test_rows_of_any_width_are_folded_and_written(columns: int) -> None:
    program = kernel(
        f"x: pl.Tensor[[{R}, {columns}], pl.FP32], out: pl.Out[pl.Tensor[[{R}, {columns}], pl.FP32]]",
        f"t = pl.load(x, [0, 0], [{R}, {columns}])",
        "e = pl.exp(pl.row_expand_sub(t, pl.row_max(t)))",
        "out = pl.store(pl.row_expand_div(e, pl.row_sum(e)), [0, 0], out)",
    )
    program.check(floats(R, columns), blank(R, columns))


def test_rows_with_their_means_beside_them_keep_no_copy_and_go_past_the_caches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take_for_large(monkeypatch)
    program = kernel(
        "x: pl.Tensor[[1024, 1024], pl.FP32], out: pl.Out[pl.Tensor[[1024, 1024], pl.FP32]], "
        "means: pl.Out[pl.Tensor[[1024, 1], pl.FP32]]",
        "t = pl.load(x, [0, 0], [1024, 1024])",
        "middle = pl.row_sum(t) / 1024.0",
        "t = t - middle",
        "out = pl.store(t * pl.rsqrt(pl.row_sum(t * t) / 1024.0 + 1.0), [0, 0], out)",
        "means = pl.store(middle, [0, 0], means)",
    )
    program.check(floats(1024, 1024), blank(1024, 1024), blank(1024, 1))
    assert stored(program) == 0
    assert "nontemporal" in code_of(program) or host().vector_bits < 256


@pytest.mark.parametrize("dtype", ["INT8", "UINT16", "BF16", "FP16"])
def test_narrow_elements_are_converted_together_and_go_past_the_caches(
    dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_for_large(monkeypatch)
    program = kernel(
        f"x: pl.Tensor[[2048, 2048], pl.FP32], out: pl.Out[pl.Tensor[[2048, 2048], pl.{dtype}]]",
        "for row in pl.range(0, 2048, 512):",
        f"    out = pl.store(pl.cast(pl.load(x, [row, 0], [512, 2048]), pl.{dtype}), [row, 0], out)",
    )
    x = floats(2048, 2048) * 200
    x[0, :4] = np.nan, np.inf, -np.inf, 1e30
    out = np.zeros((2048, 2048), getattr(pl, dtype).numpy)
    program.check(x, out)
    code = code_of(program)
    assert ("nontemporal" in code or host().vector_bits < 256) and ".sat." not in code
    converted = sum(int(count) for count in re.findall(r"store <(\d+) x i\d+>", code))
    lanes = host().vector_bits // 32
    assert dtype == "FP16" or code.count("fcmp uno") * lanes == converted  # looked at once, for NaN
    streamed = {int(count) for count in re.findall(r"store <(\d+) x \w+>.*nontemporal", code)}
    assert streamed <= {host().vector_bits // (8 * out.itemsize)}  # and stored in whole vectors


def test_a_row_of_a_few_vectors_has_no_loop_of_its_own() -> None:
    narrow, wide = (
        kernel(
            f"x: pl.Tensor[[{R}, {columns}], pl.FP32], out: pl.Out[pl.Tensor[[{R}, {columns}], pl.FP32]]",
            f"out = pl.store(pl.exp(pl.load(x, [0, 0], [{R}, {columns}])), [0, 0], out)",
        )
        for columns in (16, 4096)
    )
    assert [code_of(program).count("phi i64") for program in (narrow, wide)] == [1, 2]


def test_a_chain_of_a_thousand_ops_is_emitted_in_stretches() -> None:
    links = (f"t = pl.{'add' if i % 2 else 'maximum'}(t, row)" for i in range(1000))
    program = kernel(f"{X}, {OUT}", LOAD_X, "row = t", *links, "out = pl.store(t, [0, 0], out)")
    program.check(floats(R, N), blank())
    assert 1 < row_loops(program) < 100
