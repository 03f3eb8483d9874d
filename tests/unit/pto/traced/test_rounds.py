"""Rounds that `continue` ends, and loops that `break` does: they give what Python's do."""

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
def left(x: Whole, out: Whole, n: pto.i32):
    s, c = pto.i32(0), pto.i32(0)
    for i in range(1, n, 2):
        if scalar.load(x, i) < 0:
            break
        if i == 5:
            continue
        s = s + scalar.load(x, i)
        for j in range(n):
            if j > i:
                break
            c = c + 1
            if j == 2:
                c = c + 10
                break
        c = c + 100
    q = pto.i32(0)
    while True:
        if q * q > n:
            break
        q = q + 1
    r = pto.i32(0)
    while scalar.load(x, r) > -2:
        r = r + 1
        if r == 7:
            break
        elif r == 3:
            continue
        c = c + 1000
    for at, number in enumerate((s, c, q, r)):
        scalar.store(number, out, at)


def left_in_python(x: list[int], n: int) -> list[int]:
    s = c = q = r = 0
    for i in range(1, n, 2):
        if x[i] < 0:
            break
        if i == 5:
            continue
        s += x[i]
        for j in range(n):
            if j > i:
                break
            c += 1
            if j == 2:
                c += 10
                break
        c += 100
    while q * q <= n:
        q += 1
    while x[r] > -2:
        r += 1
        if r == 7:
            break
        c += 1000 * (r != 3)
    return [s, c, q, r]


@pytest.mark.parametrize("n", [0, 1, 2, 6, 9, 16])
@pytest.mark.parametrize("seed", range(3))
def test_a_loop_ends_where_it_is_left(n: int, seed: int) -> None:
    x, out = np.random.default_rng(seed).integers(-2, 9, 20).astype(np.int32), np.zeros(4, np.int32)
    left[1, None](x, out, n)
    assert out.tolist() == left_in_python(x.tolist(), n)


@pto.jit()
def once(out: Whole, n: pto.i32):
    """Loops whose condition is a variable that nothing else reads."""
    more = n > 0
    while more:
        scalar.store(n, out, 0)
        more = pto.i1(False)
    for i in range(n):
        scalar.store(pto.i32(i + 7), out, 1)
        break


@pytest.mark.parametrize(("n", "wanted"), [(-1, [0, 0]), (3, [3, 7])])
def test_a_condition_may_be_a_variable(n: int, wanted: list[int]) -> None:
    out = np.zeros(2, np.int32)
    once[1, None](out, n)
    assert out.tolist() == wanted


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


@pto.jit()
def written_out_and_left(out: Whole, n: pto.i32):
    for i in pto.static_range(3):
        if n > i:
            break
        scalar.store(pto.i32(i), out, 0)


@pytest.mark.parametrize(
    ("kernel", "word"), [(in_a_scope, "continue"), (too_often, "continue"), (written_out_and_left, "break")]
)
def test_other_ways_are_refused_at_their_line(kernel: pto.KernelHandle, word: str) -> None:
    with pytest.raises(KernelError, match=f"has no `{word}`") as caught:
        kernel.compile()
    assert "help: " in str(caught.value) and "test_rounds.py:" in str(caught.value)
