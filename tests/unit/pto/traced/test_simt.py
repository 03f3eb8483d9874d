"""SIMT in bodies: functions launched over work items, scopes of them, and ops by name."""

# pyright: reportUnknownParameterType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.pto.traced.tracing import check

from tilewright import pto
from tilewright.errors import KernelError, OutsideKernelError
from tilewright.pto import scalar

Ints, Floats = pto.gm_ptr(pto.i32), pto.gm_ptr(pto.f32)


@pto.simt(max_threads=256)
def place(out: Ints, n: pto.i32, *, SCALE: int = 256) -> None:
    x, y, _ = pto.get_tid()
    pto.stg(x + SCALE * y + n, out, y * pto.get_block_dim_x() + x)


@pto.jit()
def placed(out: Ints, n: pto.i32) -> None:
    place[32, 4](out, n)
    place[n, 1, 1](out, n, SCALE=0)


def test_a_function_is_launched() -> None:
    out = np.zeros(128, np.int32)
    placed[1, None](out, 7)
    expected = (np.arange(32) + 256 * np.arange(4)[:, None] + 7).ravel()
    expected[:7] = np.arange(7) + 7
    assert out.tolist() == expected.tolist()
    text = placed.mlir_text()
    assert "pto.simt_max_threads = 256 : i32" in text and text.count("pto.simt_entry") == 2
    check(pto.parse(text))
    with pytest.raises(OutsideKernelError, match=r"pto\.simt function"):
        place(1, 2)


@pto.simt
def softened(x: Floats, out: Floats) -> None:
    """A softmax of each warp."""
    lane = pto.get_laneid()
    value = pto.ldg(x, lane, l1cache="cache")
    shifted = scalar.exp(value - pto.redux_max(value))
    pto.stg(shifted / pto.redux_add(shifted), out, lane)
    if pto.vote_any(lane > 40):
        pto.stg(0.0, out, lane)


@pto.jit()
def soft(x: Floats, out: Floats) -> None:
    pto.simt_launch(softened, x, out, dims=(32, 1, 1))


def test_lanes_reduce_together() -> None:
    x = np.random.default_rng(0).normal(size=32).astype(np.float32)
    out = np.zeros(32, np.float32)
    soft[1, None](x, out)
    whole = np.exp(x - x.max())
    np.testing.assert_allclose(out, whole / whole.sum(), rtol=1e-6)


@pto.jit()
def counted(x: Ints, out: Ints, n: pto.i32) -> None:
    base = n * 2
    with pto.simt(64, 1, 1):
        t = pto.get_tid_x()
        other = pto.shuffle_bfly(t, 1, width=16)
        pto.atomic_add(out, other)
        pto.syncthreads()
        total = pto.ldg(out)
        pto.stg(total + base + t, x, t)
    with pto.simt():
        old = pto.atomic_max(out, 5, signedness="unsigned")
        pto.stg(pto.mulhi(old, 1 << 30), out, 1)
        pto.stg(pto.convert(2.5, pto.i32, round="a"), out, 2)


def test_a_scope_is_launched_with_what_it_uses() -> None:
    x, out = np.zeros(64, np.int32), np.zeros(3, np.int32)
    counted[1, None](x, out, 10)
    total = sum(range(64))
    assert out.tolist() == [total, total >> 2, 3]
    assert x.tolist() == [total + 20 + t for t in range(64)]


@pto.simt
def numbered(x: Floats, out: Ints) -> None:
    t = pto.get_tid_x()
    value = pto.ldg(x, t)
    kept = pto.fma(value, 2.0, pto.fmax(value, 0.5))
    pto.stg(pto.prmt(pto.convert(kept, pto.i32), 0, 0x7654), out, t)
    pto.keep(pto.convert(pto.pow(value, 2.0), pto.i32), 4)


@pto.simt
def resumed(out: Ints) -> None:
    before = pto.resume(4, pto.i32)
    t, n = pto.get_tid_x(), pto.get_block_dim_x()
    pto.stg(before, out, t + n)


@pto.jit()
def numbers(x: Floats, out: Ints) -> None:
    numbered[8, 1, 1](x, out)
    resumed[8, 1, 1](out)


def test_numbers_are_kept_between_launches() -> None:
    x, out = np.arange(8, dtype=np.float32), np.zeros(16, np.int32)
    numbers[1, None](x, out)
    first = np.rint(2 * x + np.maximum(x, 0.5)).astype(int)
    assert out.tolist() == [*first.tolist(), *(n * n for n in range(8))]


def returns() -> Any:
    return pto.get_tid_x()


def test_wrong_launches_are_refused() -> None:
    @pto.jit()
    def four_axes(out: Ints) -> None:
        place[1, 1, 1, 1](out, 1)

    @pto.jit()
    def no_function(out: Ints) -> None:
        pto.simt_launch(returns, out)

    @pto.jit()
    def too_many(out: Ints) -> None:
        place[64, 64, 1](out, 1)

    for kernel, said in ((four_axes, "three axes"), (no_function, "@pto.simt function"), (too_many, "64 x 64")):
        with pytest.raises(KernelError, match=said):
            kernel.compile()
