"""The cache of a kernel: what finds a program again, and what does not."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
from __future__ import annotations

import threading

import numpy as np
import pytest
import torch
from unit.jit.kernels import doubled_rows, numbers, tripled

import tilewright.language as pl
from tilewright.runtime import RunConfig

M = pl.dynamic("M")
X = numbers(4, 8)


def triple(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    return tripled(x, out)


def times(x: pl.Tensor, factor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(pl.load(x, [0, 0], [4, 8]) * factor, [0, 0], out)
    return out


def test_a_kernel_that_was_never_called_has_done_nothing() -> None:
    info = pl.jit(triple).cache_info()
    assert info._fields == ("hits", "misses", "compiles", "currsize")
    assert info == (0, 0, 0, 0)


def test_the_same_shapes_hit() -> None:
    kernel = pl.jit(triple)
    for calls in range(1, 6):
        kernel(X, torch.zeros(4, 8))
        assert kernel.cache_info() == (calls - 1, 1, 1, 1)


def test_returning_and_in_place_calls_share_a_program() -> None:
    kernel = pl.jit(triple)
    kernel(X)
    kernel(X, torch.zeros(4, 8))
    kernel(out=torch.zeros(4, 8), x=X)
    kernel(X.numpy())
    assert kernel.cache_info() == (3, 1, 1, 1)


def test_a_new_static_shape_misses() -> None:
    kernel = pl.jit(triple)
    for shape in ((4, 8), (8, 4), (2, 8), (4, 8)):
        assert torch.equal(kernel(numbers(*shape)), 3 * numbers(*shape))
    assert kernel.cache_info() == (1, 3, 3, 3)


def test_a_new_element_type_misses() -> None:
    kernel = pl.jit(triple)
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float16):
        assert torch.equal(kernel(X.to(dtype)), 3 * X.to(dtype))
    assert kernel.cache_info() == (1, 3, 3, 3)


def test_a_dynamic_axis_never_compiles_again() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        x.bind_dynamic(0, M)
        out.bind_dynamic(0, M)
        for i in pl.parallel(0, M, 4):
            out = doubled_rows(x, i, out)
        return out

    for rows in range(1, 20):
        assert torch.equal(kernel(numbers(rows, 8)), 2 * numbers(rows, 8))
    assert kernel.cache_info() == (18, 1, 1, 1)
    kernel(numbers(5, 4))
    assert kernel.cache_info() == (18, 2, 2, 2)


@pytest.mark.parametrize(
    "values",
    [(1, 1.0, True), (0.0, -0.0), (0, 0.0, False), (float("nan"), 1.0)],
    ids=["ones", "zeros", "nothings", "nan"],
)
def test_numbers_are_told_apart_by_type_and_bits(values: tuple[float, ...]) -> None:
    kernel = pl.jit(times)
    for value in values:
        expected = X.numpy() * np.float32(value)
        assert np.array_equal(kernel(X, value).numpy().view(np.int32), expected.view(np.int32))
        kernel(X, value)
    assert kernel.cache_info() == (len(values), len(values), len(values), len(values))


def test_a_number_of_numpy_is_the_same_number() -> None:
    kernel = pl.jit(times)
    for value in (2.0, np.float32(2.0), np.float64(2.0), np.float16(2.0)):
        kernel(X, value)
    assert kernel.cache_info().compiles == 1


def test_an_optional_tensor_makes_two_programs() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, y: pl.Tensor | None = None, out: pl.Out[pl.Tensor] = None):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [4, 8])
            if y is not None:
                t = t + pl.load(y, [0, 0], [4, 8])
            out = pl.store(t, [0, 0], out)
        return out

    kernel(X)
    kernel(X, None)
    kernel(X, X)
    assert kernel.cache_info() == (1, 2, 2, 2)


def test_compile_gives_the_program_that_calls_use() -> None:
    kernel = pl.jit(triple)
    program = kernel.compile(X)
    assert kernel.compile(X) is program
    kernel(X)
    assert kernel.cache_info() == (2, 1, 1, 1)


def test_lower_and_specialize_leave_no_trace() -> None:
    kernel = pl.jit(triple)
    kernel.lower(X)
    kernel.specialize(X)
    assert kernel.cache_info() == (0, 0, 0, 0)
    kernel(X)
    kernel.lower(X)
    assert kernel.cache_info() == (0, 1, 1, 1)


def test_a_configuration_is_part_of_what_a_program_is_found_by() -> None:
    kernel = pl.jit(triple)
    interpreted = RunConfig(platform="interpret")
    assert torch.equal(kernel(X, config=interpreted), kernel(X))
    kernel(X, config=interpreted)
    assert kernel.cache_info() == (1, 2, 2, 2)


def test_a_cleared_cache_starts_anew() -> None:
    kernel = pl.jit(triple)
    for _ in range(3):
        kernel(X, torch.zeros(4, 8))
    kernel.cache_clear()
    assert kernel.cache_info().currsize == 0
    assert torch.equal(kernel(X), 3 * X)
    assert kernel.cache_info().currsize == 1


def test_a_call_that_fails_to_compile_keeps_nothing() -> None:
    @pl.jit
    def kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        pl.static_assert(x.shape[0] == 4)
        return tripled(x, out)

    with pytest.raises(AssertionError):
        kernel(numbers(8, 8))
    assert kernel.cache_info().currsize == 0
    assert torch.equal(kernel(X), 3 * X)


def test_of_many_threads_one_compiles() -> None:
    kernel, barrier = pl.jit(triple), threading.Barrier(8)
    right: list[bool] = []

    def call() -> None:
        barrier.wait()
        right.extend(torch.equal(kernel(X), 3 * X) for _ in range(10))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert right == [True] * 80
    assert kernel.cache_info().compiles == 1
    assert kernel.cache_info().currsize == 1
