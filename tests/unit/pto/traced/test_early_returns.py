"""Early returns of traced functions: from branches that the running program decides."""

# pyright: reportUnknownParameterType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingParameterType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import pto
from tilewright.errors import KernelError
from tilewright.pto import scalar

Gm, Whole = pto.gm_ptr(pto.f32), pto.gm_ptr(pto.i32)


@pto.func
def clamped(x: pto.f32, low: pto.f32, high: pto.f32) -> pto.f32:
    if x < low:
        return low
    if x > high:
        return high
    return x


@pto.func
def side_of(x: pto.f32) -> pto.i32:
    """One side goes on, since only some of its paths return."""
    if x > 0.0:
        y = 1
        if x > 1.0:
            return 2
    elif x < 0.0:
        return -1
    else:
        return 0
    return y


def grown(x: Any, n: Any) -> Any:
    if n > 2:
        return x * 10.0, n
    return x, 0


@pto.jit()
def helped(x: Gm, out: Gm, sides: Whole):
    for i in range(0, 8):
        value = scalar.load(x, i)
        scalar.store(clamped(value, -0.5, 0.5), out, i)
        scalar.store(side_of(value), sides, i)
        large, number = grown(value, i)
        scalar.store(large, out, i + 8)
        scalar.store(pto.cast(number, pto.i32), sides, i + 8)


def test_helpers_return_from_branches() -> None:
    x = np.array([0, 3, 0.25, -0.25, -2, 0.75, 1, -0.0], np.float32)
    out, sides = np.zeros(16, np.float32), np.zeros(16, np.int32)
    helped[1, None](x, out, sides)
    places = np.arange(8)
    np.testing.assert_array_equal(out, np.concatenate([np.clip(x, -0.5, 0.5), np.where(places > 2, x * 10, x)]))
    wanted = [2 if v > 1 else 1 if v > 0 else -1 if v < 0 else 0 for v in x]
    np.testing.assert_array_equal(sides, [*wanted, *np.where(places > 2, places, 0)])


@pto.jit()
def left_early(x: Gm, out: Gm, n: pto.i32):
    if n < 2:
        return
    scalar.store(scalar.load(x, 0), out, 0)
    if n < 4:
        scalar.store(pto.f32(7.0), out, 1)
        return
    for i in range(0, n):
        scalar.store(scalar.load(x, i) * 2.0, out, i)


@pytest.mark.parametrize(("n", "wanted"), [(1, [0, 0, 0, 0, 0]), (3, [1, 7, 0, 0, 0]), (4, [2, 4, 6, 8, 0])])
def test_a_kernel_ends_early(n: int, wanted: list[int]) -> None:
    out = np.zeros(5, np.float32)
    left_early[1, None](np.arange(1, 6, dtype=np.float32), out, n)
    assert out.tolist() == wanted


@pto.simt
def some(x: Gm, out: Gm, n: pto.i32):
    i = pto.get_tid_x()
    if i >= n:
        return
    pto.stg(pto.ldg(x, scalar.index_cast(i)) + 1.0, out, scalar.index_cast(i))


@pto.jit()
def launched(x: Gm, out: Gm, n: pto.i32):
    some[64, 1, 1](x, out, n)


def test_work_items_end_early() -> None:
    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    launched[1, None](x, out, 40)
    np.testing.assert_array_equal(out, np.where(x < 40, x + 1, 0))


@pto.jit()
def in_a_loop(out: Gm, n: pto.i32):
    for i in range(0, n):
        if i > 2:
            return
        scalar.store(pto.f32(1.0), out, i)


@pto.jit()
def in_a_scope(out: Gm, n: pto.i32):
    with pto.simd():
        if n > 2:
            return
        pto.make_mask(pto.f32, pto.MaskPattern.ALL)


@pto.func
def sometimes(x: pto.f32, n: pto.i32):
    if n > 2:
        return x
    if n > 1:
        return None
    return x


@pto.jit()
def of_something(out: Gm, n: pto.i32):
    scalar.store(sometimes(pto.f32(1.0), n), out, 0)


@pto.func
def either(x: pto.f32, n: pto.i32):
    if n > 2:
        return x
    return n


@pto.jit()
def of_some_type(out: Gm, n: pto.i32):
    scalar.store(either(pto.f32(1.0), n), out, 0)


@pto.jit()
def again_and_again(out: Gm, n: pto.i32):
    if n > 1:
        if n > 11:
            return
    if n > 2:
        if n > 12:
            return
    if n > 3:
        if n > 13:
            return
    if n > 4:
        if n > 14:
            return
    if n > 5:
        if n > 15:
            return
    scalar.store(pto.f32(1.0), out, 0)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (in_a_loop, "a `return` inside a loop, a scope, or a branch in one of them"),
        (in_a_scope, "a `return` inside a loop, a scope, or a branch in one of them"),
        (of_something, "paths through this branch return nothing and f32"),
        (of_some_type, "paths through this branch return f32 and i32"),
        (again_and_again, "would be written more than 16 times"),
    ],
)
def test_other_returns_are_refused_at_their_line(kernel: Any, message: str) -> None:
    with pytest.raises(KernelError, match=message) as caught:
        kernel.compile()
    assert "help: " in str(caught.value) and "test_early_returns.py:" in str(caught.value)
