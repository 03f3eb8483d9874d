"""Rounds that `continue` ends: they give what Python's do."""

# pyright: reportUnknownParameterType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingParameterType=false, reportUnknownLambdaType=false

from __future__ import annotations

import numpy as np
import pytest

from tilewright import pto
from tilewright.errors import KernelError
from tilewright.pto import scalar

Whole = pto.gm_ptr(pto.i32)


@pto.jit()
def counted(out: Whole, n: pto.i32):
    s, c = pto.i32(0), pto.i32(0)
    for i in range(n):
        if i == 3:
            continue
        if i > 5:
            if i == 7:
                s = s + 1000
                continue
            c = c + 1
        elif i == 1:
            continue
        s = s + pto.i32(i)
    scalar.store(s, out, 0)
    scalar.store(c, out, 1)


@pto.jit()
def asked(out: Whole, n: pto.i32):
    j, c = pto.i32(0), pto.i32(0)
    while j < n:
        j = j + 1
        if j % 2 == 0:
            continue
        c = c + j
    scalar.store(c, out, 0)
    scalar.store(j, out, 1)


@pto.jit()
def written_out(out: Whole, n: pto.i32):
    c = pto.i32(0)
    s = 0
    for q in pto.static_range(5):
        if q == 2:
            continue
        s = s + q
        for r in range(n):
            if r < q:
                continue
            c = c + 1
    scalar.store(pto.i32(s), out, 0)
    scalar.store(c, out, 1)


def counted_in_python(n: int) -> list[int]:
    kept = [i for i in range(n) if i not in (1, 3, 7)]
    return [sum(kept) + 1000 * (n > 7), sum(i > 5 for i in kept)]


WAYS = {
    "counted": (counted, counted_in_python),
    "asked": (asked, lambda n: [sum(range(1, n + 1, 2)), n]),
    "written out": (written_out, lambda n: [8, sum(max(n - q, 0) for q in (0, 1, 3, 4))]),
}


@pytest.mark.parametrize("n", [0, 2, 6, 9])
@pytest.mark.parametrize("way", WAYS)
def test_the_rest_of_a_round_is_left_out(way: str, n: int) -> None:
    kernel, wanted = WAYS[way]
    out = np.zeros(2, np.int32)
    kernel[1, None](out, n)
    assert out.tolist() == wanted(n)


@pto.jit()
def in_a_scope(out: Whole, n: pto.i32):
    for _ in range(n):
        with pto.simd():
            continue


@pto.jit()
def too_often(out: Whole, n: pto.i32):
    for i in range(n):
        if i > 1:
            if i > 11:
                continue
        if i > 2:
            if i > 12:
                continue
        if i > 3:
            if i > 13:
                continue
        if i > 4:
            if i > 14:
                continue
        if i > 5:
            if i > 15:
                continue
        scalar.store(pto.i32(i), out, 0)


@pytest.mark.parametrize("kernel", [in_a_scope, too_often])
def test_other_ways_are_refused_at_their_line(kernel: pto.KernelHandle) -> None:
    with pytest.raises(KernelError, match="has no `continue`") as caught:
        kernel.compile()
    assert "help: " in str(caught.value) and "test_continues.py:" in str(caught.value)
