"""What PTO says one element at a time, and other ops on several axes: read back, it gives every bit."""
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportCallIssue=false, reportOperatorIssue=false, reportPossiblyUnboundVariable=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from property.exported import read_back, run_exported

import tilewright.language as pl
from tilewright import ir, pto
from tilewright.core.program import Program
from tilewright.programs.pto_text.export import as_pto
from tilewright.programs.pto_text.unsaid import UNSAID


def same(kernel: Any, *arguments: Any, platform: str = "interpret") -> None:
    wanted, found = read_back(kernel, lambda: [argument.copy() for argument in arguments], platform)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want)
        if got.dtype.kind == "f":
            np.testing.assert_array_equal(np.signbit(got) & (got == 0), np.signbit(want) & (want == 0))


def floats(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 3, shape).astype(dtype)


def integers(dtype: Any, *shape: int, seed: int = 0) -> Any:
    low = 0 if np.dtype(dtype).kind == "u" else -9
    return np.random.default_rng(seed).integers(low, 10, shape).astype(dtype)


@pl.jit
def whole(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a, b = pl.load(x, [0, 0], [6, 10]), pl.load(y, [0, 0], [6, 10])
        c = pl.maximum(a, b) + a * b - (a // b) + pl.where(a > b, a, pl.abs(b)) + (a % b) + pl.fmod(a, b) + pl.sign(a)
        d = pl.row_sum(c) - pl.col_max(a) + pl.row_min(b) * pl.col_prod(a) + pl.fma(a, b, c)
        pl.store(pl.where(a > pl.row_max(a) - 2, d, c), [0, 0], out)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32, np.uint16, np.int8, np.uint8])
def test_integers_of_every_width_are_computed_with(dtype: Any) -> None:
    same(whole, integers(dtype, 6, 10), integers(dtype, 6, 10, seed=1), np.zeros((6, 10), dtype))


@pl.jit
def quotients(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a, b = pl.load(x, [0, 0], [6, 10]), pl.load(y, [0, 0], [6, 10])
        pl.store(pl.floor_divide(a, b), [0, 0], out)
        pl.store(pl.fma(a, b, a) + pl.lerp(a, b, 0.3) + pl.lerp(a, b, b), [6, 0], out)


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_quotients_rounded_down_and_sums_rounded_once(dtype: Any, platform: str) -> None:
    x, y = floats(6, 10, dtype=dtype), floats(6, 10, dtype=dtype, seed=1)
    x[0, :6] = [np.inf, -0.0, 1.0, np.nan, -np.inf, 0.0]
    y[1, :6] = [np.inf, -0.0, 1.0, np.nan, -np.inf, 0.0]
    x[2, :4], y[2, :4] = [-0.0, 5.5, -5.5, 1.0], [2.0, np.inf, np.inf, -np.inf]
    same(quotients, x, y, np.zeros((12, 10), dtype), platform=platform)


@pl.jit
def functions(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a, b = pl.load(x, [0, 0], [6, 10]), pl.load(y, [0, 0], [6, 10])
        pl.store(pl.sin(a) + pl.cos(b) + pl.pow(a, b) + pl.pow(a, 3.0), [0, 0], out)


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
def test_functions_of_single_numbers(platform: str) -> None:
    same(functions, floats(6, 10), floats(6, 10, seed=1), floats(6, 10), platform=platform)


def test_a_function_for_other_floats_says_which_to_convert_to() -> None:
    halves = [floats(6, 10, dtype=np.float16) for _ in range(3)]
    with pytest.raises(pto.NoPtoError, match=r"PTO has `sin` for fp32, not for fp16(.|\n)*pl\.cast\(x, pl\.FP32\)"):
        functions.compile(*halves).as_pto()


@pl.jit
def folded(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], [6, 10])
        c = pl.cumsum(a, axis=0) + pl.cumsum(a) + pl.cumprod(a, axis=1, reverse=True) - pl.cummax(a)
        pl.store(c + pl.cummin(a, axis=0, reverse=True), [0, 0], out)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.int8])
def test_running_folds(dtype: Any) -> None:
    same(folded, floats(6, 10).astype(dtype), np.zeros((6, 10), dtype))


@pl.jit
def ordered(x: pl.Tensor, out: pl.Out[pl.Tensor], places: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], [6, 10])
        best, where = pl.topk(a, 3)
        pl.store(pl.sort(a, descending=True), [0, 0], out)
        pl.store(pl.sort(a, axis=0), [6, 0], out)
        pl.store(pl.argsort(a) * 100 + pl.argsort(a, axis=0, descending=True), [0, 0], places)
        pl.store(best, [12, 0], out)
        pl.store(where, [12, 0], places)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8])
def test_sorts_keep_equal_elements_as_they_came_and_put_nan_last(dtype: Any) -> None:
    x = integers(dtype, 6, 10)
    if x.dtype.kind == "f":
        x[1, 2] = x[1, 5] = np.nan
        x[2, 0], x[2, 3] = -0.0, 0.0
    same(ordered, x, np.zeros((18, 10), dtype), np.zeros((18, 10), np.int32))


@pl.jit
def drawn(out: pl.Out[pl.Tensor], numbers: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.rand(12345678901234, [6, 10], offset=517, pitch=33), [0, 0], out)
        pl.store(pl.randint(7, -5, 9, [6, 10]), [0, 0], numbers)
        pl.store(pl.randint(7, -2147483648, 2147483648, [6, 10], offset=-3), [6, 0], numbers)
        counted = pl.cast(pl.load(out, [0, 0], [6, 10]) * 100.0, pl.INT32)
        pl.store(pl.rand(3, counters=counted), [6, 0], out)


def test_numbers_are_drawn_by_their_place() -> None:
    same(drawn, np.zeros((12, 10), np.float32), np.zeros((12, 10), np.int32))


@pl.jit
def masked(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for r in pl.range(0, 10, 4):
            columns = pl.arange(16) < 13
            rows = (pl.reshape(pl.arange(4), [4, 1]) + r) < 10
            a = pl.load(x, [r, 0], [4, 16], mask=columns & rows, pad=-1.0)
            b = pl.where(rows, a, -a) + pl.where(columns, a, 0.0)
            pl.store(b, [r, 0], out, mask=rows & columns)


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
def test_what_a_mask_admits_is_loaded_and_stored(platform: str) -> None:
    same(masked, floats(10, 13), np.zeros((10, 13), np.float32), platform=platform)


@pl.jit
def columns(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a, b, c = pl.load(x, [0, 0], [10, 1]), pl.load(x, [0, 1], [10, 1]), pl.load(x, [0, 0], [10, 7])
        d = pl.where(a > b, a, b * 2.0) + pl.where(pl.isinf(a), 1.0, 2.0) + pl.where(pl.isnan(a), 1.0, 2.0)
        pl.store(
            d + pl.where(pl.isfinite(a) & (a > 0.0), 1.0, 2.0) + pl.where(~(a < b), a, 2.0) + pl.sign(b), [0, 0], out
        )
        e = pl.where(a > b, c, 0.0) + pl.where(c > a, a, c) + pl.where(pl.col_max(c) > 3.0, c, -c)
        pl.store(e + pl.cast(pl.cast(a > b, pl.INT32), pl.FP32), [0, 1], out)
        pl.store(pl.cast((a > b) | (c > 0.0), pl.FP32), [0, 8], out)


@pytest.mark.parametrize("rows", [1, 10])
def test_columns_compare_and_choose(rows: int) -> None:
    x = floats(10, 7)
    x[2, 0], x[3, 0] = np.inf, np.nan
    same(columns, x[:rows], np.zeros((10, 20), np.float32))


@pl.jit
def several(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0, 0], [3, 4, 16])
        turned, mixed = pl.transpose(a, 1, 2), pl.transpose(pl.exp(pl.transpose(a, 0, 1)), 0, 1)
        product = pl.batch_matmul(a, pl.batch_matmul(turned, a))
        pl.store(product + mixed - pl.col_sum(a), [0, 0, 0], out)
        back = pl.transpose(pl.exp(pl.transpose(a, 0, 2)), 0, 2)
        pl.store(back + pl.cast(pl.argmax(a, axis=1, keepdims=True), pl.FP32), [0, 0, 16], out)
        both = pl.concat(a, a)
        pl.store(pl.assemble(both, pl.slice(both, [2, 2, 5], [1, 2, 6]), [0, 1, 2]), [0, 4, 0], out)


def test_ops_on_matrices_take_one_after_the_other() -> None:
    same(several, floats(3, 4, 16), np.zeros((3, 8, 32), np.float32))


@pl.jit
def ragged(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    m, n = x.shape[1], x.shape[2]
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(0, m, 4):
            for j in pl.range(0, n, 8):
                a = pl.load(x, [0, i, j], [3, 4, 8], clamp=True)
                b = pl.exp(a) + a * pl.row_max(a) + pl.where(a > 0.5, a, -a)
                c = pl.fillpad(b, pad_value=pl.PadValue.zero)
                d = pl.load(x, [0, i - 1, j], [4, 4, 8], pad=1.0)
                e = pl.slice(d + 1.0, [2, 3, 7], [1, 0, 1], valid_shape=[2, pl.min(3, m - i), 7])
                pl.store(b + pl.slice(c, [3, 4, 8], [0, 0, 0]), [0, i, j], out)
                pl.store(e * 2.0, [1, i, 0], out)


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
def test_tiles_that_are_valid_in_part_along_several_axes(platform: str) -> None:
    same(ragged, floats(3, 6, 13), np.zeros((3, 6, 13), np.float32), platform=platform)


@pl.jit
def lanes(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], [15, 10])
        for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            both = pl.aic_gather(pl.neg(pl.aiv_shard(a)) + pl.cast(lane, pl.FP32))
        pl.store(both, [0, 0], out)


def test_halves_of_lanes() -> None:
    same(lanes, floats(15, 10), np.zeros((16, 10), np.float32))


@pl.jit
def kept(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    numbers = pl.array.create(4, pl.INT32)
    for i in pl.range(6):
        numbers = pl.array.update_element(numbers, i % 4, pl.array.get_element(numbers, i % 4) + i)
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], [4, 8]) + pl.cast(pl.array.get_element(numbers, 1), pl.FP32)
        pl.store(a, [0, 0], out)
        pl.print('100% "of"\t', pl.array.get_element(numbers, 0), 2.5, a)
        pl.print(x)
        pl.print(pl.read(x, [0, 0]) > 0.0)


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
def test_arrays_and_what_is_printed(platform: str, capfd: pytest.CaptureFixture[str]) -> None:
    same(kept, floats(4, 8), np.zeros((4, 8), np.float32), platform=platform)
    said = capfd.readouterr().out
    half = len(said) // 2
    assert said[:half] == said[half:] != ""


@pl.jit
def rounded(x: pl.Tensor, out: pl.Out[pl.Tensor[[6], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        number = pl.read(x, [0])
        pl.write(out, [0], pl.cast(number, pl.INT32))
        pl.write(out, [1], pl.cast(number, pl.INT32, mode="rint"))
        pl.write(out, [2], pl.cast(number, pl.INT32, mode="floor"))
        pl.write(out, [3], pl.cast(number, pl.INT32, mode="ceil"))
        pl.write(out, [4], pl.cast(number, pl.INT32, mode="trunc"))
        pl.write(out, [5], pl.cast(number % -0.75 + number // 0.75, pl.INT32))


@pytest.mark.parametrize("number", [2.5, -2.5, 3.7, -3.7, 1e20, np.nan])
def test_single_numbers_are_rounded_as_is_said(number: float) -> None:
    same(rounded, np.array([number], np.float32), np.zeros(6, np.int32))


@pl.jit
def nearest(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], [4, 8])
        pl.store(pl.concat(pl.round(a), pl.floor(a), pl.ceil(a), pl.trunc(a)), [0, 0], out)


def test_zeros_keep_their_signs_when_they_are_rounded() -> None:
    x = np.array([[-0.3, -0.0, 0.0, 0.3, -0.5, 0.5, -0.7, 1e30]] * 4, np.float32)
    same(nearest, x, np.zeros((4, 32), np.float32))


@pl.jit
def ragged_folds(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in range(0, 19, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            a, b = pl.load(x, [i, 0], [16, 12]), pl.load(y, [i, 0], [16, 1])
            c = a + pl.sum(a) * pl.max(a) - pl.min(a)
            pl.store(c * pl.min(b) + pl.max(b) - pl.sum(b), [i, 0], out)


@pl.jit
def column_and_least(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in range(0, 40, 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.load(x, [i, 0], [32, 1])
            least = pl.min(a, axis=0, keepdims=True)
            pl.store(a + least - least * a, [i, 0], out)


def test_a_column_meets_a_number_in_a_tile() -> None:
    same(column_and_least, floats(40, 1), np.zeros((40, 1), np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_all_rows_of_a_part_fold(dtype: Any) -> None:
    x, y = (np.arange(count).reshape(19, -1).astype(dtype)[::-1].copy() for count in (228, 19))
    same(ragged_folds, x, y, np.zeros_like(x))


@pl.jit
def divided(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in range(0, 19, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(2.5 / pl.load(y, [i, 0], [16, 16]) + pl.load(x, [i, 0], [16, 16]), [i, 0], out)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_a_number_by_a_part_is_valid_where_that_is(dtype: Any) -> None:
    same(divided, floats(19, 16, dtype=dtype), floats(19, 16, dtype=dtype, seed=1), np.zeros((19, 16), dtype))


# what stays unsaid


def computing(formula: str, after: Sequence[str] = ()) -> Program:
    """Return the program that writes what a formula makes of `x`, of points and by a seed."""
    lines = [
        "@pl.program", "class P:", "    @pl.function(type=pl.FunctionType.InCore)",
        "    def main(self, v: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):",
        "        x = pl.load(v, [0, 0], [4, 8])", "        lhs, rhs, seed, shape = 0.5 - x, x - 0.7, 3, [4, 8]",
        *(f"        {line}" for line in after), f"        return pl.store({formula}, [0, 0], out)",
    ]  # fmt: skip
    program = pl.parse("\n".join(lines))
    assert isinstance(program, Program)
    return program


def test_something_is_proposed_instead_of_every_op_that_is_unsaid() -> None:
    assert not [name for name, unsaid in UNSAID.items() if not unsaid.instead]


@pytest.mark.parametrize("name", [name for name in UNSAID if name != "randn"])
def test_what_is_proposed_instead_of_an_op_exports_and_is_near(name: str) -> None:
    low, high = (1.5, 3.0) if name == "acosh" else (0.1, 0.9)
    x = np.linspace(low, high, 32, dtype=np.float32).reshape(4, 8)
    near = computing(UNSAID[name].instead, UNSAID[name].after)
    wanted, found = np.zeros_like(x), np.zeros_like(x)
    own = "lhs, rhs" if name == "atan2" else "x"
    ir.compile(computing(f"pl.{name}({own})"), platform="interpret")(x, wanted)
    run_exported(as_pto(near), "main", [x, found], {})
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("name", ["erf", "erfc", "gelu", "atan", "atan2", "tanh", "sigmoid", "silu", "softplus"])
def test_what_is_proposed_holds_far_from_zero_and_below_it(name: str) -> None:
    x = np.linspace(-6, 6, 32, dtype=np.float32).reshape(4, 8)
    wanted, found = np.zeros_like(x), np.zeros_like(x)
    own = "lhs, rhs" if name == "atan2" else "x"
    ir.compile(computing(f"pl.{name}({own})"), platform="interpret")(x, wanted)
    run_exported(as_pto(computing(UNSAID[name].instead, UNSAID[name].after)), "main", [x, found], {})
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6)


def test_what_is_proposed_instead_of_normal_draws_exports_and_is_normal() -> None:
    x, found = np.zeros((4, 8), np.float32), np.zeros((4, 8), np.float32)
    run_exported(as_pto(computing(UNSAID["randn"].instead, UNSAID["randn"].after)), "main", [x, found], {})
    assert np.isfinite(found).all() and abs(found.mean()) < 0.7 and 0.6 < found.std() < 1.5


def test_an_op_that_is_unsaid_says_why_and_what_to_write() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.tanh(pl.load(x, [0, 0], [4, 8])), [0, 0], out)

    with pytest.raises(pto.NoPtoError, match=r"`pl\.tile\.tanh`: PTO has no such function") as caught:
        kernel.compile(floats(4, 8), floats(4, 8)).as_pto()
    assert caught.value.help == "write it with ops that PTO has: 1.0 - 2.0 / (pl.exp(x * 2.0) + 1.0)"
