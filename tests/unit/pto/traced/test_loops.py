"""Loops of traced bodies, and what they carry."""

from __future__ import annotations

from typing import Any

import pytest
from unit.pto.traced.tracing import lines

from tilewright import pto
from tilewright.errors import UnsupportedFeatureError


def test_a_range_has_one_to_three_bounds() -> None:
    def body(n: Any, m: Any, w: Any) -> None:
        for i in range(n):
            pto.store_scalar(1, w, i)
        for i in range(2, m):
            pto.store_scalar(1, w, i)
        for i in range(0, n, 4):
            pto.store_scalar(1, w, i)

    assert [line for line in lines(body) if "scf" in line or "cast" in line] == [
        "scf.for %i = %c0 to %n step %c1 {",
        "%0 = arith.index_cast %m : i32 to index",
        "scf.for %i_1 = %c2 to %0 step %c1 {",
        "scf.for %i_2 = %c0 to %n step %c4 {",
    ]


def test_a_number_that_a_loop_changes_becomes_a_value_of_the_type_it_turns_into() -> None:
    def body(n: Any, u: Any) -> None:
        total = 0
        for i in range(n):
            total = total + pto.load_scalar(u, i)
        pto.store_scalar(total, u, 0)

    assert lines(body) == [
        "%total_2 = scf.for %i = %c0 to %n step %c1 iter_args(%total = %cst) -> (f32) {",
        "  %0 = pto.load_scalar %u[%i] : !pto.ptr<f32, ub> -> f32",
        "  %total_1 = arith.addf %total, %0 : f32",
        "  scf.yield %total_1 : f32",
        "}",
        "pto.store_scalar %total_2, %u[%c0] : !pto.ptr<f32, ub>, f32",
    ]


def test_a_counter_without_another_type_is_an_index() -> None:
    def body(n: Any, w: Any) -> None:
        count = 0
        for _ in range(n):
            count += 1
        pto.store_scalar(pto.cast(count, pto.i32), w, 0)

    assert lines(body)[0] == "%count_2 = scf.for %_ = %c0 to %n step %c1 iter_args(%count = %c0) -> (index) {"


def test_nested_loops_carry_through_each_other() -> None:
    def body(n: Any, w: Any) -> None:
        total = 0
        for i in range(n):
            for j in range(i):
                total += j
        pto.store_scalar(pto.cast(total, pto.i32), w, 0)

    assert lines(body)[:7] == [
        "%total_4 = scf.for %i = %c0 to %n step %c1 iter_args(%total = %c0) -> (index) {",
        "  %total_3 = scf.for %j = %c0 to %i step %c1 iter_args(%total_1 = %total) -> (index) {",
        "    %total_2 = arith.addi %total_1, %j : index",
        "    scf.yield %total_2 : index",
        "  }",
        "  scf.yield %total_3 : index",
        "}",
    ]


def test_a_name_that_is_bound_anew_each_round_is_not_carried() -> None:
    def body(n: Any, w: Any) -> None:
        offset = n * 2
        pto.store_scalar(0, w, offset)
        for i in range(n):
            offset = i + 1
            pto.store_scalar(1, w, offset)

    assert "scf.for %i = %c0 to %n step %c1 {" in lines(body)


def test_swapped_tiles_are_carried() -> None:
    def body(n: Any) -> None:
        ping = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
        pong = pto.alloc_tile(shape=[8, 64], dtype=pto.f32)
        for _ in range(n):
            pto.tile.exp(ping, ping)
            ping, pong = pong, ping

    found = lines(body)
    assert "iter_args(%ping_1 = %ping, %pong_1 = %pong)" in found[2]
    assert found[4].startswith("  scf.yield %pong_1, %ping_1 : ")


def test_a_branch_inside_a_loop_carries_too() -> None:
    def body(n: Any, x: Any, u: Any) -> None:
        best = x
        for i in range(n):
            value = pto.load_scalar(u, i)
            if value > best:
                best = value
        pto.store_scalar(best, u, 0)

    assert lines(body) == [
        "%best_2 = scf.for %i = %c0 to %n step %c1 iter_args(%best = %x) -> (f32) {",
        "  %value = pto.load_scalar %u[%i] : !pto.ptr<f32, ub> -> f32",
        "  %0 = arith.cmpf ogt, %value, %best : f32",
        "  %best_1 = scf.if %0 -> (f32) {",
        "    scf.yield %value : f32",
        "  } else {",
        "    scf.yield %best : f32",
        "  }",
        "  scf.yield %best_1 : f32",
        "}",
        "pto.store_scalar %best_2, %u[%c0] : !pto.ptr<f32, ub>, f32",
    ]


def test_a_while_loop_tests_what_it_carries() -> None:
    def body(n: Any, w: Any) -> None:
        left = n
        steps = 0
        while left > 0:
            left = left - 64
            steps += 1
        pto.store_scalar(pto.cast(steps, pto.i32), w, 0)

    assert lines(body)[:9] == [
        "%left_3, %steps_3 = scf.while (%left = %n, %steps = %c0) : (index, index) -> (index, index) {",
        "  %0 = arith.cmpi sgt, %left, %c0 : index",
        "  scf.condition(%0) %left, %steps : index, index",
        "} do {",
        "^bb0(%left_1: index, %steps_1: index):",
        "  %left_2 = arith.subi %left_1, %c64 : index",
        "  %steps_2 = arith.addi %steps_1, %c1 : index",
        "  scf.yield %left_2, %steps_2 : index, index",
        "}",
    ]


def test_a_while_loop_that_never_starts_is_nothing() -> None:
    def body(n: Any, w: Any) -> None:
        i = 4
        while i < 4:
            i += 1
        pto.store_scalar(i, w, 0)

    assert lines(body) == ["pto.store_scalar %c4_i32, %w[%c0] : !pto.ptr<i32, ub>, i32"]


def test_static_ranges_and_tuples_are_unrolled() -> None:
    def body(n: Any, w: Any) -> None:
        for i in pto.static_range(2):
            pto.store_scalar(i, w, i)
        for i, value in ((4, 7), (5, 8)):
            pto.store_scalar(value, w, i)
        pto.store_scalar(i, w, n)

    assert lines(body) == [
        "pto.store_scalar %c0_i32, %w[%c0] : !pto.ptr<i32, ub>, i32",
        "pto.store_scalar %c1_i32, %w[%c1] : !pto.ptr<i32, ub>, i32",
        "pto.store_scalar %c7_i32, %w[%c4] : !pto.ptr<i32, ub>, i32",
        "pto.store_scalar %c8_i32, %w[%c5] : !pto.ptr<i32, ub>, i32",
        "pto.store_scalar %c5_i32, %w[%n] : !pto.ptr<i32, ub>, i32",
    ]


def test_numbers_find_their_types_in_turn() -> None:
    def body(n: Any, j: Any) -> None:
        a, b, d, k = n, 3, 0, 0
        while k < 3:
            a, d = d, a + b
            if a > 2:
                b = a
            k += 1
        pto.store_scalar(a + b + d, pto.castptr(0, pto.ptr(pto.index, "ub")), 0)

    assert lines(body)[0].startswith("%a_2, %d_3, %b_3, %k_3 = scf.while (%a = %n, %d = %c0, %b = %c3, %k = %c0)")


def test_a_loop_that_would_be_written_out_too_often_is_refused() -> None:
    def body(n: Any) -> None:
        for _ in pto.static_range(1 << 40):
            pto.barrier("ALL")

    with pytest.raises(UnsupportedFeatureError, match="cannot be unrolled"):
        lines(body)


def test_a_comprehension_is_its_items() -> None:
    def body(n: Any, w: Any) -> None:
        base = 7
        values = [n + i * base for i in pto.static_range(4) if i != 2]
        sums = tuple(a + b for a in values[:2] for b in (1, 2))
        for place in pto.static_range(7):
            pto.store_scalar(pto.cast((*values, *sums)[place], pto.i32), w, place)

    stored = [line for line in lines(body) if "store" in line]
    assert len(stored) == 7
