"""Branches of traced bodies."""

from __future__ import annotations

from typing import Any

from unit.pto.traced.tracing import lines

from tilewright import pto

DEBUG = False


def test_a_branch_hands_on_what_both_sides_bind() -> None:
    def body(n: Any, w: Any, m: Any) -> None:
        if n > 2:
            a = m
        elif n > 1:
            a = m + 1
        else:
            a = 3
        pto.store_scalar(a, w, 0)

    assert lines(body) == [
        "%0 = arith.cmpi sgt, %n, %c2 : index",
        "%a_2 = scf.if %0 -> (i32) {",
        "  scf.yield %m : i32",
        "} else {",
        "  %1 = arith.cmpi sgt, %n, %c1 : index",
        "  %a_1 = scf.if %1 -> (i32) {",
        "    %a = arith.addi %m, %c1_i32 : i32",
        "    scf.yield %a : i32",
        "  } else {",
        "    scf.yield %c3_i32 : i32",
        "  }",
        "  scf.yield %a_1 : i32",
        "}",
        "pto.store_scalar %a_2, %w[%c0] : !pto.ptr<i32, ub>, i32",
    ]


def test_a_side_that_leaves_a_variable_alone_hands_on_what_it_was() -> None:
    def body(n: Any, x: Any, u: Any) -> None:
        a = x
        if n > 2:
            a = a * 2
        pto.store_scalar(a, u, 0)

    assert lines(body) == [
        "%0 = arith.cmpi sgt, %n, %c2 : index",
        "%a_1 = scf.if %0 -> (f32) {",
        "  %a = arith.mulf %x, %cst : f32",
        "  scf.yield %a : f32",
        "} else {",
        "  scf.yield %x : f32",
        "}",
        "pto.store_scalar %a_1, %u[%c0] : !pto.ptr<f32, ub>, f32",
    ]


def test_what_nobody_reads_afterwards_is_not_handed_on() -> None:
    def body(n: Any, u: Any, x: Any) -> None:
        if n > 2:
            a = x * 2
            pto.store_scalar(a, u, 0)

    assert lines(body)[1] == "scf.if %0 {"


def test_tiles_pointers_and_tuples_pass_through_a_branch() -> None:
    def body(n: Any, u: Any) -> None:
        first = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
        second = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
        if n > 2:
            pair = (first, u, 4)
        else:
            pair = (second, u + 64, 4)
        pto.tile.exp(pair[0], pair[0])
        pto.store_scalar(1.0, pair[1], pair[2])

    found = "\n".join(lines(body))
    assert "%pair, %pair_2 = scf.if %0 -> (!pto.tile_buf<" in found
    assert "pto.store_scalar %cst, %pair_2[%c4]" in found


def test_a_known_condition_takes_one_side() -> None:
    def body(n: Any, w: Any, *, WIDE: Any = True) -> None:
        if DEBUG:
            undefined.anything()  # noqa: F821 # pyright: ignore
        if WIDE and not DEBUG:
            size = 64
        else:
            size = 32
        pto.store_scalar(size, w, 0)

    assert lines(body, WIDE=True) == ["pto.store_scalar %c64_i32, %w[%c0] : !pto.ptr<i32, ub>, i32"]
    assert lines(body, WIDE=False) == ["pto.store_scalar %c32_i32, %w[%c0] : !pto.ptr<i32, ub>, i32"]


def test_a_known_return_ends_the_function() -> None:
    def body(n: Any, w: Any, *, SKIP: Any = True) -> None:
        if SKIP:
            return
        pto.store_scalar(1, w, 0)

    assert lines(body, SKIP=True) == []
    assert len(lines(body, SKIP=False)) == 1
