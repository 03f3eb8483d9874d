"""Comparisons and what they choose as PTO text: read back, they give every bit, NaN and infinities included."""
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false, reportUnknownMemberType=false

from typing import Any

import numpy as np
import pytest
from property.exported import read_back

import tilewright.language as pl

Square = pl.Tensor[[11, 40], pl.FP32]


def places_that(mode: str, dtype: Any) -> Any:
    """A kernel that finds the columns of each row whose elements compare so to two."""

    @pl.jit
    def found(
        x: pl.Tensor[[11, 40], dtype], p: pl.Out[pl.Tensor[[11, 9], pl.INT32]], c: pl.Out[pl.Tensor[[1, 11], pl.UINT32]]
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            places, counts = pl.tile.gather_compare(
                pl.load(x, [0, 0], [11, 40]), 2, cmp_mode=mode, out_cols=9, offset=5, count_dtype=pl.UINT32
            )
            pl.store(places, [0, 0], p)
            pl.store(counts, [0, 0], c)

    return found


@pl.jit
def only_counts(x: Square, c: pl.Out[pl.Tensor[[1, 11], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        _, counts = pl.tile.gather_compare(pl.load(x, [0, 0], [11, 40]), 2.0, cmp_mode="gt", out_cols=9)
        pl.store(counts, [0, 0], c)


def kinds_of(dtype: Any) -> Any:
    """A kernel that tells numbers from what is none, and their signs."""

    @pl.jit
    def told(
        x: pl.Tensor[[11, 40], dtype],
        out: pl.Out[pl.Tensor[[11, 40], pl.INT32]],
        signs: pl.Out[pl.Tensor[[11, 40], dtype]],
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [11, 40])
            made = pl.where(pl.isnan(t), 1, 0) + pl.where(pl.isinf(t), 2, 0) + pl.where(pl.isfinite(t), 4, 0)
            pl.store(made, [0, 0], out)
            pl.store(pl.sign(t), [0, 0], signs)

    return told


@pl.jit
def masks_as_numbers(x: Square, out: pl.Out[Square]):
    """Ones and zeros that are multiplied, added, taken away and summed."""
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [11, 40])
        made = (t > 0.0) + t * (t < 2.0) - (t > 3.0) + pl.maximum(t, t > 1.0)
        pl.store(pl.addc(t > -1.0, made, made), [0, 0], out)


@pl.jit
def selected(
    x: Square,
    y: Square,
    m: pl.Tensor[[11, 2], pl.INT32],
    a: pl.Out[Square],
    b: pl.Out[Square],
    c: pl.Out[pl.Tensor[[11, 5], pl.UINT8]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        s, t = pl.load(x, [0, 0], [11, 40]), pl.load(y, [0, 0], [11, 40])
        bits = pl.cmp(s, t, cmp_type=pl.CmpType.LT)
        pl.store(pl.sel(bits, s, t), [0, 0], a)
        pl.store(pl.sels(pl.load(m, [0, 0], [11, 2]), s, scalar=0.5), [0, 0], b)
        pl.store(bits, [0, 0], c)


@pl.jit
def by_a_row(x: Square, out: pl.Out[Square]):
    """Chosen by a row for all rows, and by one element for all."""
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [11, 40])
        row, one = pl.load(x, [3, 0], [1, 40]), pl.load(x, [2, 1], [1, 1])
        pl.store(pl.where(row > 0.0, t, -1.0) + one, [0, 0], out)


@pl.jit
def three(x: Square, y: Square, out: pl.Out[Square]):
    with pl.at(level=pl.Level.CORE_GROUP):
        s, t = pl.load(x, [0, 0], [11, 40]), pl.load(y, [0, 0], [11, 40])
        pl.store(pl.tile.prelu(pl.tile.addc(s, t, s), pl.tile.subc(t, s, t)), [0, 0], out)


@pl.jit
def with_a_bias(
    x: pl.Tensor[[16, 40], pl.FP16],
    y: pl.Tensor[[40, 24], pl.FP16],
    b: pl.Tensor[[1, 24], pl.FP32],
    a: pl.Out[pl.Tensor[[16, 24], pl.FP32]],
    out: pl.Out[pl.Tensor[[1, 24], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        s, t, row = pl.load(x, [0, 0], [16, 40]), pl.load(y, [0, 0], [40, 24]), pl.load(x, [3, 0], [1, 40])
        bias = pl.load(b, [0, 0], [1, 24])
        pl.store(pl.matmul_bias(s, t, bias), [0, 0], a)
        pl.store(pl.gemv_acc(pl.gemv_bias(row, t, bias) + pl.gemv(row, t), row, t), [0, 0], out)


@pl.jit
def in_step(x: Square, out: pl.Out[Square]):
    """Flags, a fence and an assertion that holds."""
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [11, 40])
        pl.system.sync_src(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=0)
        pl.system.sync_dst(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=0)
        pl.system.sync_src(set_pipe=pl.PipeType.V, wait_pipe=pl.PipeType.MTE3, event_id=1)
        pl.system.fence()
        pl.system.device_assert(pl.read(t, [0, 1]) < 1000.0, message="too much")
        pl.store(t + 1.0, [0, 0], out)


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    """Few different numbers; of floats also zeros of both signs, infinities and NaN."""
    some = np.random.default_rng(0).integers(-6, 6, shape).astype(dtype)
    if some.dtype.kind == "f":
        some.flat[::17], some.flat[5::29], some.flat[3::31], some.flat[4::37] = np.nan, -0.0, np.inf, -np.inf
    return some


def check(kernel: Any, made: Any, platform: str) -> None:
    wanted, found = read_back(kernel, made, platform)
    assert wanted[-1].any()
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got.view(np.uint8), want.view(np.uint8))


ELEMENTS: dict[str, tuple[pl.DataType, Any]] = {
    "fp32": (pl.FP32, np.float32), "fp16": (pl.FP16, np.float16), "int32": (pl.INT32, np.int32),
    "int16": (pl.INT16, np.int16),
}  # fmt: skip


@pytest.mark.parametrize("mode", ["eq", "ne", "lt", "le", "gt", "ge"])
@pytest.mark.parametrize("element", ELEMENTS)
def test_places_of_what_compares_so(mode: str, element: str) -> None:
    dtype, numpy = ELEMENTS[element]
    given = lambda: [numbers(11, 40, dtype=numpy), np.ones((11, 9), np.int32), np.zeros((1, 11), np.uint32)]  # noqa: E731
    for platform in ("interpret", "cpu"):
        check(places_that(mode, dtype), given, platform)


@pytest.mark.parametrize("element", ELEMENTS)
def test_kinds_of_numbers_and_their_signs(element: str) -> None:
    dtype, numpy = ELEMENTS[element]
    given = lambda: [numbers(11, 40, dtype=numpy), np.zeros((11, 40), np.int32), np.zeros((11, 40), numpy)]  # noqa: E731
    for platform in ("interpret", "cpu"):
        check(kinds_of(dtype), given, platform)


def square() -> Any:
    return np.zeros((11, 40), np.float32)


def words() -> Any:
    return np.random.default_rng(2).integers(-(2**31), 2**31, (11, 2)).astype(np.int32)


def halves(*shape: int) -> Any:
    return np.nan_to_num(numbers(*shape, dtype=np.float16), posinf=1, neginf=-1)


CASES: dict[Any, Any] = {
    only_counts: lambda: [numbers(11, 40), np.zeros((1, 11), np.int32)],
    selected: lambda: [
        numbers(11, 40), numbers(11, 40)[::-1].copy(), words(), square(), square(), np.zeros((11, 5), np.uint8)
    ],
    by_a_row: lambda: [numbers(11, 40), square()],
    masks_as_numbers: lambda: [numbers(11, 40), square()],
    three: lambda: [numbers(11, 40), numbers(11, 40)[::-1].copy(), square()],
    with_a_bias: lambda: [
        halves(16, 40), halves(40, 24), numbers(1, 24), np.zeros((16, 24), np.float32), np.zeros((1, 24), np.float32)
    ],
    in_step: lambda: [numbers(11, 40), square()],
}  # fmt: skip


@pytest.mark.parametrize("kernel", CASES, ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("platform", ["interpret", "cpu"])
def test_every_bit_is_the_same_when_it_is_read_back(kernel: Any, platform: str) -> None:
    check(kernel, CASES[kernel], platform)


def test_flags_that_nobody_waits_for_or_that_nobody_sets_are_left_out() -> None:
    text = in_step.compile(*CASES[in_step]()).as_pto()
    assert text.count("pto.set_flag") == text.count("pto.wait_flag") == 1

    @pl.jit
    def waits(x: Square, out: pl.Out[Square]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.system.sync_dst(set_pipe=pl.PipeType.V, wait_pipe=pl.PipeType.MTE3, event_id=0)
            pl.store(pl.load(x, [0, 0], [11, 40]), [0, 0], out)

    assert "_flag" not in waits.compile(*CASES[in_step]()).as_pto()
