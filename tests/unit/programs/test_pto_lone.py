"""What no machine has for some elements, and tiles that loops and lines make: read back, it gives every bit."""
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportOperatorIssue=false, reportPossiblyUnboundVariable=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from property.exported import read_back

import tilewright.language as pl
from tilewright import pto


def check(kernel: Any, *arguments: Any, platform: str = "interpret") -> None:
    wanted, found = read_back(kernel, lambda: [argument.copy() for argument in arguments], platform)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(*(each.astype(np.float64) for each in (got, want)))


def integers(dtype: Any, *shape: int, seed: int = 0) -> Any:
    low = 0 if np.dtype(dtype).kind == "u" else -9
    return np.random.default_rng(seed).integers(low, 10, shape).astype(dtype)


@pl.jit
def summed(x: pl.Tensor, w: pl.Tensor, bias: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.zeros([5, 7], dtype=out.dtype)
        for k in pl.range(0, 20, 8):
            acc += pl.load(x, [0, k], [5, 8]) @ pl.load(w, [0, k], [7, 8]).T
        a, b = pl.load(x, [0, 0], [5, 20]), pl.transpose(pl.load(w, [0, 0], [7, 20]), 0, 1)
        pl.store(acc + pl.matmul_bias(a, b, pl.load(bias, [0, 0], [1, 7])), [0, 0], out)


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64, np.uint16])
def test_products_of_integers(dtype: Any, platform: str) -> None:
    result = np.promote_types(dtype, np.int32)
    out, bias = np.zeros((5, 7), result), integers(result, 1, 7, seed=2)
    check(summed, integers(dtype, 5, 20), integers(dtype, 7, 20, seed=1), bias, out, platform=platform)


@pl.jit
def of_several(x: pl.Tensor, w: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0, 0], x.shape) @ pl.load(w, [0, 0, 0], w.shape), [0, 0, 0], out)


def test_products_of_several_matrices_of_integers() -> None:
    check(of_several, integers(np.int32, 3, 5, 6), integers(np.int32, 3, 6, 4, seed=1), np.zeros((3, 5, 4), np.int32))


@pl.jit
def columns(a: pl.Tensor, x: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        m, v = pl.load(a, [0, 0], a.shape), pl.load(x, [0, 0], x.shape)
        acc = m @ v
        for _ in pl.range(3):
            acc = acc * 2.0
            acc += m @ v
        pl.store(acc + pl.matmul_bias(m, v, pl.load(b, [0, 0], [1, 1])), [0, 0], out)


def test_products_that_are_columns() -> None:
    a, x, b = (integers(np.float32, *shape) for shape in ((9, 5), (5, 1), (1, 1)))
    check(columns, a, x, b, np.zeros((9, 1), np.float32))


@pl.jit
def selected(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [14, 20])
        pl.store(pl.sel(t > 3, t, pl.col_max(t) - t) + pl.sels(t > 2, t, scalar=7), [0, 0], out)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64])
def test_selections_of_64_bits(dtype: Any) -> None:
    check(selected, integers(dtype, 14, 20), np.zeros((14, 20), dtype))


@pl.jit
def bounded(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [14, 20])
        pl.store(pl.clamp(t, 2, 5) + pl.clamp(t, min=3) * pl.clamp(t, max=pl.col_max(t)), [0, 0], out)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.float64, np.int8, np.float32])
def test_bounds_of_elements(dtype: Any) -> None:
    check(bounded, integers(dtype, 14, 20), np.zeros((14, 20), dtype))


@pl.jit
def placed(x: pl.Tensor, rows: pl.Out[pl.Tensor], cols: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t, tmp = pl.load(x, [0, 0], [16, 24]), pl.create_tile([16, 24], x.dtype)
        pl.store(pl.row_argmax(t, tmp) * 100 + pl.row_argmin(t, tmp), [0, 0], rows)
        pl.store(pl.col_argmax(t, tmp) * 100 + pl.col_argmin(t, tmp), [0, 0], cols)


KINDS = [np.int8, np.uint8, np.uint16, np.int64, np.uint64, np.float64, np.float16, ml_dtypes.bfloat16]


@pytest.mark.parametrize("dtype", KINDS)
def test_places_of_extremes(dtype: Any) -> None:
    x = integers(dtype, 16, 24)
    if not np.issubdtype(dtype, np.integer):
        x[2, 5], x[2, 7], x[9, 1], x[4, 4] = np.nan, np.nan, np.inf, -np.inf
    check(placed, x, np.zeros((16, 1), np.int32), np.zeros((1, 24), np.int32))


M, N = pl.dynamic("M"), pl.dynamic("N")


@pl.jit
def of_any_extents(x: pl.Tensor[[M, N], pl.FP32], out: pl.Out[pl.Tensor[[M, 1], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.assemble(out, pl.row_argmax(x), [0, 0])


def test_places_in_rows_of_a_length_that_only_calls_know() -> None:
    check(of_any_extents, integers(np.float32, 11, 200), np.zeros((11, 1), np.int32))


@pl.jit
def other_elements(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    bits, octets = pl.reinterpret_view(x, pl.INT32), pl.reinterpret_view(x, pl.UINT8)
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.cast(pl.load(octets, [0, 3], [6, 8]), pl.INT32)
        pl.store(pl.xor(pl.load(bits, [0, 0], [6, 8]), -2147483648) + t, [0, 0], pl.reinterpret_view(out, pl.INT32))


def test_the_memory_of_a_tensor_as_other_elements() -> None:
    check(other_elements, integers(np.float32, 6, 8), np.zeros((6, 8), np.float32))


@pl.jit
def in_longer_rows(x: pl.Tensor, row: pl.Out[pl.Tensor], rows: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.reshape(pl.load(x, [0, 0], [4, 8], valid_shape=[3, 8]), [1, 32]), [0, 0], row)
        pl.store(pl.reshape(pl.load(x, [0, 0], [4, 8], valid_shape=[2, 8]), [2, 16]), [0, 0], rows)


def test_whole_rows_become_longer_ones() -> None:
    check(in_longer_rows, integers(np.float32, 4, 8), np.zeros((1, 32), np.float32), np.zeros((2, 16), np.float32))


@pl.jit
def turned(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.transpose(pl.load(x, [0, 0], [20, 32]), 0, 1), [0, 0], out)


def test_a_part_of_doubles_is_turned() -> None:
    check(turned, integers(np.float64, 13, 32), np.zeros((32, 13)))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", [pl.INT64, pl.UINT8, pl.FP16, pl.BF16, pl.FP64])
def test_numbers_count_along_any_axis_in_any_type(dtype: Any, axis: int) -> None:
    @pl.jit
    def counted(out: pl.Out[pl.Tensor[[3, 5, 17], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.iota([3, 5, 17], axis=axis, dtype=dtype) + pl.iota([3, 5, 17], axis=1, dtype=dtype, step=2)
            pl.store(pl.cast(t, pl.FP32), [0, 0, 0], out)

    check(counted, np.zeros((3, 5, 17), np.float32))


@pl.jit
def last_seen(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    """Tiles, valid in part, and a mask that a loop makes and what follows it uses."""
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(0, 40, 16):
            t = pl.load(x, [i, 0], [16, 64])
            u = pl.load(x, [i, 0], [16, 64], valid_shape=[16, pl.min(8, i + 1)])
            m = pl.load(x, [i, 0], [16, 64], valid_shape=[7, 3]) > 0.0
        pl.store(t, [0, 0], out)
        pl.store(u, [0, 0], out)
        pl.store(pl.cast(m, pl.FP32), [9, 0], out)
        number = pl.load(y, [0], [16]) @ pl.reshape(pl.reshape(pl.load(y, [0], [16]), [16, 1]), [16])
        pl.write(out, [0, 0], number)


@pytest.mark.parametrize("platform", ["interpret", "cpu"])
def test_what_a_loop_has_made_last_is_used_behind_it(platform: str) -> None:
    x, y = integers(np.float32, 40, 64), integers(np.float32, 11)
    check(last_seen, x, y, np.zeros((16, 64), np.float32), platform=platform)


@pytest.mark.parametrize("axis", ["row", "col"])
@pytest.mark.parametrize("shape", [(11, 1), (11, 20)])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8])
def test_rows_and_columns_that_meet_tiles_of_one_column(dtype: Any, shape: tuple[int, int], axis: str) -> None:
    fold = getattr(pl, f"{axis}_max")
    least, most, spread = (getattr(pl, f"{axis}_expand{word}") for word in ("_min", "_max", ""))

    @pl.jit
    def met(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [16, x.shape[1]])
            pl.store(spread(t, fold(t)) - least(t, fold(t)) + most(t, fold(t)), [0, 0], out)

    check(met, integers(dtype, *shape), np.zeros(shape, dtype))


@pytest.mark.parametrize("valid", [1, 8])
@pytest.mark.parametrize("columns", [45, 32, 8, 3])
def test_rows_of_32_bytes_are_repeated(columns: int, valid: int) -> None:
    @pl.jit
    def repeated(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [5, columns], valid_shape=[3, columns - 1])
            row = pl.load(y, [0, 0], [5, 8], valid_shape=[3, valid])
            pl.store(pl.row_expand_add(t, row), [0, 0], out)

    x, y = integers(np.float32, 5, columns), integers(np.float32, 5, 8, seed=1)
    check(repeated, x, y, np.zeros((5, columns), np.float32))


@pl.jit
def halved(x: pl.Tensor, out: pl.Out[pl.Tensor], there: pl.InOut[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [2, 4])
        pl.store(pl.assemble(pl.tile.full([3, 6], dtype=pl.FP16, value=2.0), t, [1, 1]), [0, 0], out)
        pl.assemble(there, t, [0, 2])


def test_halves_that_numbers_are_put_into_round_as_a_cast_does() -> None:
    x = np.array([[3e38, -1e6, -0.0, 1e-40], [np.nan, np.inf, 65519.0, 1 + 2**-9]], np.float32)
    check(halved, x, np.zeros((3, 6), np.float16), np.zeros((3, 6), np.float16))


@pl.jit
def leaking(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.lrelu(pl.load(x, [0, 0], [4, 8]), float("inf")), [0, 0], out)


def test_a_slope_without_end_leaves_zero_alone() -> None:
    check(leaking, integers(np.float32, 4, 8) * (np.arange(8) > 2).astype(np.float32), np.zeros((4, 8), np.float32))


@pl.jit
def widened(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [4, 8])
        pl.store(pl.set_validshape(pl.set_validshape(t, 1, 1), 3, 5) * 2.0, [0, 0], out)


def test_what_was_not_valid_is_still_there() -> None:
    check(widened, integers(np.float32, 4, 8), np.zeros((4, 8), np.float32))


@pl.jit
def short_sums(a: pl.Tensor, b: pl.Tensor, c: pl.Tensor, ns: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        left = pl.load(a, [0, 0], [8, 5], valid_shape=[pl.read(ns, [0]), 5])
        right = pl.load(b, [0, 0], [5, 8], valid_shape=[5, pl.read(ns, [1])])
        acc = pl.load(c, [0, 0], [8, 8], valid_shape=[pl.read(ns, [2]), pl.read(ns, [3])])
        pl.store(pl.matmul_acc(acc, left, right), [0, 0], out)
        other = pl.load(c, [0, 0], [8, 8], valid_shape=[2, 3])
        pl.store(pl.matmul_acc(other, pl.load(a, [0, 0], [8, 5]), pl.load(b, [0, 0], [5, 8])), [8, 0], out)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("ns", [(8, 8, 8, 8), (3, 8, 8, 5), (3, 4, 2, 5), (8, 8, 3, 2), (0, 8, 8, 8), (4, 4, 0, 8)])
def test_a_sum_is_valid_where_what_it_is_of_is(dtype: Any, ns: tuple[int, ...]) -> None:
    a, b, c = (integers(dtype, *shape, seed=seed) for seed, shape in enumerate([(8, 5), (5, 8), (8, 8)]))
    check(short_sums, a, b, c, np.array(ns, np.int32), np.full((16, 8), 99, dtype))


@pl.jit
def repeated_along(x: pl.Tensor, ns: pl.Tensor, out: pl.InOut[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        source = pl.slice(x, [pl.read(ns, [0]), 3, 5], [0, 0, 0])
        pl.expand_clone(source, pl.slice(out, [pl.read(ns, [1]), 3, 5], [0, 0, 0]))


@pytest.mark.parametrize("ns", [(1, 4), (1, 1), (4, 4)])
def test_an_axis_that_only_the_run_knows_to_have_one_element_is_repeated(ns: tuple[int, int]) -> None:
    check(repeated_along, integers(np.float32, 4, 3, 5), np.array(ns, np.int32), np.zeros((4, 3, 5), np.float32))


def test_a_double_that_no_launch_passes_is_refused_where_it_is_declared() -> None:
    @pl.jit
    def scaled(x: pl.Tensor, by: pl.Scalar[pl.FP64], out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [0, 0], [4, 8]) * by, [0, 0], out)

    given = integers(np.float64, 4, 8), 2.5, np.zeros((4, 8))
    with pytest.raises(pto.NoPtoError, match="PTO's launches pass no double, as `by` is") as caught:
        scaled.compile(*given).as_pto()
    assert "pl.Scalar[pl.FP64]" in str(caught.value) and "help: pass it as pl.FP32" in str(caught.value)
