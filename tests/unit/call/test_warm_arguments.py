"""The arguments of warm calls: which memory goes directly, element types, ranks, extents, numbers."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np
import pytest
import torch
from unit.call.subjects import IS_NATIVE, SHAPE, frames, outcome
from unit.call.warming import (
    FEW,
    KINDS,
    add,
    fresh,
    in_rows,
    moved,
    native_only,
    ones,
    took,
    warm,
)
from unit.programs.programs import HALVES, program_of, rows

import tilewright.language as pl
from tilewright import errors, ir

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # torch's own, about sparse and quantized tensors


# which calls of kernels go directly

DIRECT = [
    "dense", "strided", "broadcast", "overlapping", "parameter", "inference", "array", "sealed", "view", "followed",
    "every second row", "an offset", "a result of autograd", "a parameter that is followed", "a broadcast array",
]  # fmt: skip


@native_only
@pytest.mark.parametrize("kind", KINDS)
def test_plain_memory_goes_directly(kind: str) -> None:
    kernel = fresh(add)
    warm(kernel, ones(*SHAPE), ones(*SHAPE), ones(*SHAPE))
    x, out = KINDS[kind](), torch.zeros(SHAPE)
    with torch.no_grad():
        try:
            went = took(kernel, x, ones(*SHAPE), out)
        except (TypeError, ValueError, errors.KernelError):
            went = False
    assert went == (kind in DIRECT)


def test_batched_tensors_are_refused() -> None:
    kernel = fresh(add)
    warm(kernel, ones(), ones(), ones())
    with pytest.raises((ValueError, RuntimeError)):
        torch.vmap(lambda x: kernel(x, ones(), ones()) or x)(ones(2, 4, 8))


def test_overlapping_arguments_are_refused_and_interleaved_ones_are_not(dispatch: str) -> None:
    kernel, x, both = fresh(add), ones(), ones(4, 16)
    warm(kernel, x, x, torch.zeros(4, 8))
    with pytest.raises(ValueError, match="`out` is written and shares memory with `x`"):
        kernel(x, ones(), x)
    with pytest.raises(ValueError, match="shares memory"):
        kernel(both[:, :8], x, both[:, 4:12])
    assert not took(kernel, both[:, :8], x, both[:, 8:])  # as ranges they overlap: Python looks closer
    assert (both[:, 8:] == 3.0).all()


def test_a_kernel_is_called_by_its_class_too(dispatch: str) -> None:
    kernel, x, out = fresh(add), ones(), torch.zeros(4, 8)
    warm(kernel, x, x, out)
    out.zero_()
    type(kernel).__call__(kernel, x, x, out)
    assert (out == 3.0).all() and took(kernel, x, x, out) == IS_NATIVE
    with pytest.raises(TypeError):
        type(kernel)()


def test_lazy_clones_stay_lazy_until_they_are_written(dispatch: str) -> None:
    kernel, x, out = fresh(add), ones(), torch.zeros(4, 8)
    is_lazy: Any = getattr(torch._C, "_is_cow_tensor")  # noqa: B009
    for _ in range(5):
        read, written = (getattr(torch, "_lazy_clone")(x) for _ in range(2))  # noqa: B009
        kernel(read, x, out)
        kernel(x, x, written)
        assert is_lazy(read) and not is_lazy(written)
        assert (x == 1.0).all() and (written == 3.0).all() and (out == 3.0).all()


class Handing:
    """A tensor that is only handed over by DLPack, as of version 1.0 or before."""

    def __init__(self, data: Any, *, is_old: bool = False) -> None:
        self.data, self.is_old = data, is_old

    def __dlpack__(self, **options: Any) -> Any:
        if self.is_old and options:
            raise TypeError("max_version")
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.data.__dlpack_device__()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=str)
def test_producers_hand_over_what_numpy_does_not_know(dtype: torch.dtype) -> None:
    kernel, x, out = fresh(moved), ones(4, 32, dtype=dtype), torch.zeros(4, 32, dtype=dtype)
    kernel(Handing(x, is_old=True), Handing(out))
    assert torch.equal(x, out)
    with pytest.raises(ValueError, match="`out` is written, but its producer does not say that it may be"):
        kernel(x, Handing(out, is_old=True))


def test_a_proxy_of_torch_fx_is_refused_by_name() -> None:
    kernel = fresh(moved)
    with pytest.raises(ValueError, match=r"torch.fx traces this call with the proxy `Proxy\(x\)`.*as_torch_op"):
        torch.fx.symbolic_trace(lambda x: kernel(x, torch.zeros(4, 32)))


# types, ranks and extents


@pytest.mark.parametrize(
    "dtype",
    [torch.float16, torch.bfloat16, torch.float32, torch.bool, torch.int8, torch.int16, torch.int32, torch.int64],
    ids=str,
)
def test_every_type_has_a_program_of_its_own(dtype: torch.dtype, dispatch: str) -> None:
    kernel, x, out = fresh(moved), ones(4, 32, dtype=dtype), torch.zeros(4, 32, dtype=dtype)
    warm(kernel, x, out)
    assert torch.equal(x, out)
    with pytest.raises((TypeError, ValueError, errors.KernelError)):
        kernel(x, torch.zeros(4, 32, dtype=torch.float32 if dtype is not torch.float32 else torch.int32))


@pytest.mark.parametrize("name", ["int64", "longlong", "uint64", "ulonglong", "intp", "float32", "float16", "int16"])
def test_types_of_numpy_that_are_as_wide_are_the_same(name: str) -> None:
    kernel, plain = fresh(moved), np.dtype(name).name
    x: Any = np.arange(32, dtype=plain).reshape(1, 32)
    out: Any = np.zeros((1, 32), name)
    warm(kernel, x, np.zeros((1, 32), plain))
    kernel(x.astype(name), out)
    assert (out == x).all()


@pytest.mark.parametrize("rank", range(10))
@pytest.mark.parametrize("array", [torch.as_tensor, np.array], ids=["torch", "NumPy"])
def test_every_rank_is_taken_or_left_as_python_has_it(rank: int, array: Any, dispatch: str) -> None:
    kernel, x = fresh(moved), array(np.ones([2] * rank, np.float32))
    outcomes = [outcome(kernel, [x, array(np.zeros([2] * rank, np.float32))], {}) for _ in range(5)]
    assert outcomes[1:] == outcomes[:1] * 4


def test_axes_of_one_and_of_none_may_have_any_stride() -> None:
    column, empty = torch.as_strided(ones(64), (4, 1), (3, 7)), torch.as_strided(ones(64), (0, 8), (5, 3))
    kernel, move, out = fresh(add), fresh(moved), torch.zeros(4, 1)
    for _ in range(4):
        kernel(column, column, out)
        move(empty, torch.zeros(0, 8))
    assert (out == 3.0).all()
    assert took(kernel, column, column, torch.as_strided(torch.zeros(64), (4, 1), (2, 9)))


def test_dynamic_axes_share_a_program_and_have_to_agree(dispatch: str) -> None:
    kernel = fresh(in_rows)
    warm(kernel, ones(), ones(), torch.zeros(4, 8))
    warm(kernel, ones(), ones())
    for count in (1, 3, 8, 13, 64, 0):
        x = torch.arange(8.0 * count).reshape(count, 8)
        for _ in range(3):
            out = torch.zeros(count, 8)
            kernel(x, x, out)
            assert torch.equal(out, 2.0 * x) and torch.equal(kernel(x, x), 2.0 * x)
        assert dispatch == "python" or (took(kernel, x, x, out) and took(kernel, x, x))
    assert kernel.cache_info().compiles <= 1
    for shapes in ((4, 5, 4), (5, 4, 4), (4, 4, 5), (4, 5)):
        given = [ones(n, 8) for n in shapes]
        assert outcome(kernel, given, {}) == outcome(fresh(in_rows), given, {})
    with pytest.raises(ValueError, match="expects shape"):
        kernel(ones(4, 9), ones(4, 9), ones(4, 9))


def test_there_is_an_end_to_what_is_remembered() -> None:
    kernel = fresh(in_rows)

    def growth(first: int) -> int:
        gc.collect()
        before = sys.getallocatedblocks()
        for count in range(first, first + 1100):
            x = torch.ones(count, 8)
            assert kernel(x, x)[-1, -1] == 2.0
        gc.collect()
        return sys.getallocatedblocks() - before

    at_first = growth(1)
    assert growth(1101) < max(at_first / 2, 5000)


# numbers


def scaled(x: pl.Tensor, n: pl.FP32, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * n, [0, 0], out)
    return out


def counted(x: pl.Tensor, n: pl.INT64, flag: bool, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], x.shape)
        if flag:
            t = t * 2.0
        pl.store(t * pl.cast(n, pl.FP32), [0, 0], out)
    return out


def optional(x: pl.Tensor, y: pl.Tensor | None, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], x.shape)
        if y is not None:
            t = t + pl.load(y, [0, 0], y.shape)
        pl.store(t, [0, 0], out)
    return out


def test_numbers_are_told_apart_by_type_and_bits(dispatch: str) -> None:
    kernel, x, out = fresh(scaled), ones(), torch.zeros(4, 8)
    numbers = [2.0, 0.0, -0.0, float("nan"), float("inf"), 1e30]
    for value in numbers:
        warm(kernel, x, value, out)
    compiles = kernel.cache_info().misses
    for value in (*numbers, float("nan")):
        assert took(kernel, x, value, out) or dispatch == "python"
        expected = torch.full((4, 8), value)
        assert torch.equal(out.view(torch.int32), expected.view(torch.int32)) or (value != value and out.isnan().all())
    assert kernel.cache_info().misses == compiles
    kernel(x, 2, out)
    assert (out == 2.0).all() and kernel.cache_info().misses == compiles + 1


def test_zeros_are_told_apart_whatever_came_first(dispatch: str) -> None:
    kernel, x, out = fresh(scaled), ones(), torch.zeros(4, 8)
    warm(kernel, x, 2, out)
    for value in (0.0, -0.0, 2.0, 2) * 3:
        kernel(x, value, out)
        assert torch.equal(out.view(torch.int32), torch.full((4, 8), float(value)).view(torch.int32))


def test_integers_of_any_size_are_taken_or_refused(dispatch: str) -> None:
    kernel, x, out = fresh(counted), ones(), torch.zeros(4, 8)
    for n in (3, -3, 2**31, 2**62):
        warm(kernel, x, n, False, out)
        assert (out == float(n)).all()
    for n in (2**63, -(2**63) - 1, 2**64, 10**30):
        with pytest.raises(TypeError, match="cannot hold"):
            kernel(x, n, False, out)
    for wrong in (True, 3.0, "3", None, [3], 3j):
        with pytest.raises(TypeError, match="`n` is"):
            kernel(x, wrong, False, out)
    assert not took(kernel, x, np.int64(3), False, out) and (out == 3.0).all()


def test_bools_are_no_integers_and_none_is_a_kind_of_its_own(dispatch: str) -> None:
    kernel, either, x, out = fresh(counted), fresh(optional), ones(), torch.zeros(4, 8)
    for flag in (True, False, True):
        warm(kernel, x, 1, flag, out)
        assert (out == 1.0 + flag).all()
    for y in (None, x, None):
        warm(either, x, y, out)
        assert (out == (1.0 if y is None else 2.0)).all()


def test_the_numbers_of_programs_are_checked_and_few_are_remembered() -> None:
    program, x = ir.compile(program_of(HALVES)), rows(8)
    out = np.zeros_like(x)
    for _ in range(4):
        program(x, 0, out)
    for wrong in (0.0, True, "0", 1 << 70):
        with pytest.raises(TypeError, match="`n` is a scalar"):
            program(x, wrong, out)
    for number in range(-400, 0):
        with pytest.raises(errors.ExecutionError):
            program(x, number, out)
    for _ in range(4):
        program(x, 0, out)
    assert frames(program, x, 0, out) <= FEW or not IS_NATIVE


def rated(x: pl.Tensor, rate: pl.Scalar[pl.FP32, pl.RUNTIME], out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * rate, [0, 0], out)
    return out


def test_a_number_that_calls_bring_is_that_of_each_call(dispatch: str) -> None:
    kernel, x, out = fresh(rated), ones(), ones()
    for rate in (2.0, 3.0, 2.0, 2.0, 2.0, 3.0, 3.0):
        assert (kernel(x, rate) == rate).all()
        assert kernel(x, rate, out) is None and (out == rate).all()
    assert kernel.cache_info().compiles <= 1
