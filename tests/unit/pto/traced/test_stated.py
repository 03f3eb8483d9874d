"""What sub-kernels state of what they are given and return: numbers of those types, or a mistake at the call."""
# pyright: reportUnknownParameterType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingParameterType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright import pto
from tilewright.errors import KernelError, ReturnMismatchError
from tilewright.pto import scalar
from tilewright.pto.errors import PtoOperandError

Gm, Ints = pto.gm_ptr(pto.f32), pto.gm_ptr(pto.i32)


@pto.func
def doubled(v: pto.i32, by: pto.f32 = 2) -> pto.i32:
    return v + pto.cast(by / 2.0, pto.i32) * v


@pto.func(returns=pto.f32)
def one(unused: Any):
    return 1


@pto.jit()
def called(out: Ints, floats: Gm) -> None:
    @pto.func(returns=pto.i32)
    def near(v: pto.i32):
        return v + 100

    @pto.simd()
    def lane(tile: pto.Tile) -> None:
        pto.vsts(pto.vlds(tile[1, 0:]), tile[0, 0:], pto.make_mask(pto.f32, pto.PAT.ALL))

    for i in range(0, 4):
        scalar.store(doubled(i), out, i)
        scalar.store(near(i), out, i + 4)
    scalar.store(one(out) + pto.f32(0.5), floats, 0)
    tile = pto.alloc_tile(shape=[2, 64], dtype=pto.f32)
    tile.fill(2.0)
    lane(tile)
    scalar.store(scalar.load(tile[0, 5]), floats, 1)


def test_integers_become_those_that_are_stated() -> None:
    out, floats = np.zeros(8, np.int32), np.zeros(2, np.float32)
    called[1, None](out, floats)
    assert out.tolist() == [0, 2, 4, 6, 100, 101, 102, 103] and floats.tolist() == [1.5, 2]


@pto.func
def whole(v) -> pto.i32:
    return v + pto.f32(0.5)


@pto.func
def nothing(v) -> pto.i32:
    v + 1  # pyright: ignore[reportUnusedExpression]


@pto.simd
def on_a_tile(tile: pto.Tile, rows: pto.i32) -> None:
    pto.vsts(pto.vlds(tile[rows, 0:]), tile[0, 0:], pto.make_mask(pto.f32, pto.PAT.ALL))


def returns_a_float(p, n):
    whole(pto.f32(1))


def returns_nothing(p, n):
    nothing(n)


def takes_a_float(p, n):
    doubled(pto.f32(1))


def takes_a_pointer(p, n):
    doubled(p)


def takes_no_tile(p, n):
    on_a_tile(p, 1)


HOST = np.ones(4)


def takes_an_array(p, n):
    on_a_tile(HOST, 1)


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (returns_a_float, "`whole` returns i32, here f32"),
        (returns_nothing, "`nothing` returns i32, here nothing"),
        (takes_a_float, "parameter `v` is i32, got f32"),
        (takes_a_pointer, "parameter `v` is i32, got !pto.ptr<f32, gm>"),
        (takes_no_tile, "parameter `tile` is pto.Tile, got !pto.ptr<f32, gm>"),
        (takes_an_array, "parameter `tile` is pto.Tile, got"),
    ],
)
def test_what_is_stated_otherwise_is_refused_where_it_is_called(call: Any, why: str) -> None:
    @pto.jit()
    def kernel(p: Gm, n: pto.i32) -> None:
        call(p, n)

    with pytest.raises(KernelError, match=why) as caught:
        kernel.compile()
    assert "^" in str(caught.value) and "help: " in str(caught.value)
    assert ("returns" in why) == isinstance(caught.value, ReturnMismatchError)


@pto.simt(max_threads=32)
def few(out: Ints) -> None:
    pto.stg(1, out, pto.get_tid_x())


def test_more_work_items_than_are_stated_are_refused() -> None:
    @pto.jit()
    def kernel(out: Ints) -> None:
        few[64, 1, 1](out)

    with pytest.raises(PtoOperandError, match="`@few` is for 32 work items at most, and 64 x 1 x 1 are launched"):
        kernel.compile()
