"""Rebinding: names mean in a kernel what they would mean in Python, on every target."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.language as pl
from tilewright import ir
from tilewright.errors import ReassignmentError

HEAD = """
@pl.function(type=pl.FunctionType.Orchestration)
def kernel(n: pl.Scalar[pl.INT64], out: pl.InOut[pl.Tensor[[4], pl.INT64]]):
"""


def run(body: str, n: int, target: str) -> list[int]:
    """Return what a kernel leaves in `out`, every pass checked by text on the way."""
    program = pl.parse(HEAD + body + "    return out\n")
    out = np.zeros(4, np.int64)
    with ir.PassContext(verification_level=ir.VerificationLevel.ROUNDTRIP):
        ir.compile(program, platform=target)(n, out)
    return out.tolist()


def test_a_loop_variable_kept_under_another_name_outlives_its_loop(target: str) -> None:
    body = """
    last = 0
    for i in pl.range(n):
        last = i
        other = i
    pl.write(out, [0], pl.cast(last, pl.INT64))
    pl.write(out, [1], pl.cast(other, pl.INT64))
"""
    assert run(body, 5, target) == [4, 4, 0, 0]


def test_a_carried_name_bound_again_in_a_branch_is_what_the_loop_yields(target: str) -> None:
    body = """
    for i, (c, d) in pl.range(6, init_values=(n, n)):
        if i > 2:
            c = c + 10
            i = i + 1
        d = d + pl.cast(i, pl.INT64)
        r, s = pl.yield_(c, d)
    if n > 0:
        r = r + 1000
    pl.write(out, [0], r)
    pl.write(out, [1], s)
"""
    assert run(body, 1, target) == [1031, 19, 0, 0]


def test_a_loop_that_yields_nothing_hands_on_what_its_names_stand_for(target: str) -> None:
    body = """
    for i, (a, b) in pl.range(9, init_values=(n, n)):
        a, b = b, a + 1
        if i == 2:
            continue
        if i > 3:
            b = b + 100
            break
        a = a + 10
    for (c,) in pl.while_(init_values=(n,)):
        pl.cond(c < 20)
        c = c * 3
    pl.write(out, [0], a_out)
    pl.write(out, [1], b_out)
    pl.write(out, [2], c_out)
"""

    def expected(n: int) -> list[int]:
        a = b = n
        for i in range(9):
            a, b = b, a + 1
            if i == 2:
                continue
            if i > 3:
                b += 100
                break
            a += 10
        while n < 20:
            n *= 3
        return [a, b, n, 0]

    assert run(body, 1, target) == expected(1)


def test_the_result_of_a_loop_can_be_bound_again_in_the_next(target: str) -> None:
    body = """
    for i, (total,) in pl.range(4, init_values=(n,)):
        total = pl.yield_(total * 2)
    for u in pl.range(3):
        total = total + 1
    pl.write(out, [0], total)
"""
    assert run(body, 3, target) == [51, 0, 0, 0]


def test_an_alias_keeps_the_value_it_was_given(target: str) -> None:
    body = """
    a = n
    b = n
    for i in pl.range(3):
        b = a
        a = a + 1
    pl.write(out, [0], a)
    pl.write(out, [1], b)
"""
    assert run(body, 7, target) == [10, 9, 0, 0]


def test_a_known_branch_hands_on_what_it_yields(target: str) -> None:
    body = """
    if 1 < 2:
        r = pl.yield_(n)
    else:
        r = pl.yield_(n + 1)
    pl.write(out, [0], r)
"""
    assert run(body, 7, target) == [7, 0, 0, 0]


@pytest.mark.parametrize("condition", ["1 < 2", "n < 100"])
def test_a_yield_assigns_a_name_that_blocks_around_it_have(condition: str, target: str) -> None:
    body = f"""
    a = n
    b = n + 5
    v = n
    for i in pl.range(3):
        if {condition}:
            r = pl.yield_(v)
        else:
            r = pl.yield_(n)
        v = v + 1
        if {condition}:
            a, b = pl.yield_(b, a)
        else:
            a, b = pl.yield_(a, b)
        for j, (c,) in pl.range(2, init_values=(a,)):
            a = pl.yield_(c + 1)
        pl.write(out, [i], pl.cast(a * 100 + r, pl.INT64))
    pl.write(out, [3], pl.cast(b, pl.INT64))
"""
    assert run(body, 1, target) == [801, 302, 1003, 3]


def test_a_name_first_bound_in_an_inner_loop_outlives_both(target: str) -> None:
    body = """
    for i in pl.range(3):
        for j in pl.range(i + 1):
            t = i * 10 + j
    pl.write(out, [0], pl.cast(t, pl.INT64))
"""
    assert run(body, 0, target) == [22, 0, 0, 0]


def test_a_number_keeps_its_type_where_a_variable_had_it(target: str) -> None:
    body = """
    k = pl.cast(n, pl.INT32)
    s = 1
    if k > 5:
        s = s + k
    pl.write(out, [0], pl.cast(s, pl.INT64))
"""
    assert run(body, 7, target) == [8, 0, 0, 0]


def test_break_and_continue_carry_what_the_loop_carries(target: str) -> None:
    body = """
    total = n
    count = 0
    while count < 10:
        count += 1
        if count == 3:
            continue
        if count == 6:
            break
        total = total + pl.cast(count, pl.INT64)
    pl.write(out, [0], total)
    pl.write(out, [1], pl.cast(count, pl.INT64))
"""
    assert run(body, 100, target) == [112, 6, 0, 0]


def test_names_bound_at_once_are_given_what_the_others_were(target: str) -> None:
    body = """
    a = n
    b = n + 1
    for i in pl.range(5):
        a, b = b, a + b
    pl.write(out, [0], a)
    pl.write(out, [1], b)
    if n > 0:
        a, b = b, a
    pl.write(out, [2], a)
    k = 0
    while k < 3:
        a, b, k = b, a, k + 1
    pl.write(out, [3], a)
"""
    a, b = 2, 3
    for _ in range(5):
        a, b = b, a + b
    assert run(body, 2, target) == [a, b, b, a]


def test_tiles_change_places_in_a_loop_and_in_a_branch(target: str) -> None:
    @pl.jit
    def turned(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t, u = pl.load(x, [0, 0], [4, 8]), pl.load(y, [0, 0], [4, 8])
            for _ in pl.range(3):
                t, u = u, t
            if t[0, 0] > 0.0:
                t, u = u + 1.0, t
            pl.store(t * 10.0 + u, [0, 0], out)
        return out

    x, y = np.full((4, 8), 3.0, np.float32), np.full((4, 8), 5.0, np.float32)
    found = np.zeros_like(x)
    ir.compile(turned.specialize(x, y, found).program, platform=target)(x, y, found)
    assert (found == 45.0).all()


@pytest.mark.parametrize("before", ["if n > 9:\n            a = a + 1", "a = a + 1"], ids=["in a branch", "beside it"])
def test_what_a_loop_carries_keeps_its_type(before: str) -> None:
    body = f"""
    a = pl.read(out, [0])
    for i in pl.range(3):
        {before}
        a = pl.cast(a, pl.FP32) * 0.5
    pl.write(out, [0], pl.cast(a, pl.INT64))
"""
    with pytest.raises(ReassignmentError, match=r"Cannot reassign 'a' with a different type") as caught:
        run(body, 1, "interpret")
    assert caught.value.help == "convert the new value: pl.cast(..., pl.INT64), or use a new name for it"


BLOCKS = {
    "loop": ("for i in pl.range(3):", "{0}"),
    "branch": ("if n > 2:", "{0}"),
    "other branch": ("if n < 2:\n        b = 1\n    else:", "{0}"),
    "loop in a loop": ("for i in pl.range(2):", "for j in pl.range(2):\n            {0}"),
    "branch in a loop": ("for i in pl.range(2):", "if n > i:\n            {0}"),
    "while": ("c = pl.read(out, [3])\n    while c < 3:", "{0}\n        c = c + 1"),
}
"""Blocks that run a statement, as often as five runs it."""
TIMES = {"loop": 3, "branch": 1, "other branch": 1, "loop in a loop": 4, "branch in a loop": 2, "while": 3}


@pytest.mark.parametrize("first", BLOCKS)
@pytest.mark.parametrize("second", BLOCKS)
def test_a_change_of_type_is_refused_or_as_python_has_it(first: str, second: str) -> None:
    """Whatever blocks have changed a name before: what a block adds in another type is never lost."""
    lines = ("a = a + 1", "a = pl.cast(a, pl.FP32) * 0.5")
    parts = [
        f"    {head}\n        {rest.format(line)}\n"
        for (head, rest), line in zip((BLOCKS[first], BLOCKS[second]), lines, strict=True)
    ]
    body = f"    a = pl.read(out, [0])\n{''.join(parts)}    pl.write(out, [0], pl.cast(a * 64, pl.INT64))\n"
    try:
        found = run(body, 5, "interpret")[0]
    except ReassignmentError:
        return
    assert found == int(TIMES[first] * 0.5 ** TIMES[second] * 64)


@pytest.mark.parametrize(("n", "expected"), [(1, 2), (5, 16)])
def test_what_a_loop_in_a_branch_yields_is_the_name_that_an_ended_block_bound(
    n: int, expected: int, target: str
) -> None:
    body = """
    for i in pl.range(3):
        for (k, a) in pl.while_(init_values=(0, n)):
            pl.cond(k < 2)
            k_end, r = pl.yield_(k + 1, n + 1)
    if n > 2:
        for (k, a) in pl.while_(init_values=(0, r)):
            pl.cond(k < 2)
            k_end, r = pl.yield_(k + 1, a + 5)
    pl.write(out, [0], pl.cast(r, pl.INT64))
"""
    assert run(body, n, target)[0] == expected
