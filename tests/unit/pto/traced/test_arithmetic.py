"""Operators on scalars, as `arith` ops."""

# ruff: noqa: F841
# pyright: reportUnusedVariable=false

from __future__ import annotations

from typing import Any

from unit.pto.traced.tracing import lines, traced

from tilewright import pto

SCALE = 4


def test_numbers_take_the_type_of_the_other_side() -> None:
    def body(m: Any, k: Any, x: Any) -> None:
        a = m + 1
        b = 2 * k
        c = x - 1

    module = traced(body).module
    func = next(module.funcs())
    assert func.body is not None
    constants = {op.results[0].name: str(op.results[0].type) for op in func.body.ops if op.name == "arith.constant"}
    assert constants == {"c1_i32": "i32", "c2_i64": "i64", "cst": "f32"}
    assert lines(body) == [
        "%a = arith.addi %m, %c1_i32 : i32",
        "%b = arith.muli %c2_i64, %k : i64",
        "%c = arith.subf %x, %cst : f32",
    ]


def test_an_integer_that_meets_an_index_becomes_one() -> None:
    def body(n: Any, m: Any) -> None:
        a = n + m

    assert lines(body) == ["%0 = arith.index_cast %m : i32 to index", "%a = arith.addi %n, %0 : index"]


def test_an_index_becomes_a_float_as_a_wide_integer_does() -> None:
    def body(n: Any) -> None:
        a = pto.f32(n)
        b = pto.index(a)

    assert lines(body) == [
        "%0 = arith.index_cast %n : index to i64",
        "%a = arith.sitofp %0 : i64 to f32",
        "%1 = arith.fptosi %a : f32 to i64",
        "%b = arith.index_cast %1 : i64 to index",
    ]


def test_two_kinds_of_half_floats_meet_in_whole_ones() -> None:
    def body(x: Any) -> None:
        a = pto.bf16(pto.f16(x))

    assert lines(body) == [
        "%0 = arith.truncf %x : f32 to f16",
        "%1 = arith.extf %0 : f16 to f32",
        "%a = arith.truncf %1 : f32 to bf16",
    ]


def test_floor_division_and_remainder_round_down_as_in_python() -> None:
    def body(n: Any) -> None:
        a = n // 4
        b = n % 4

    assert lines(body) == [
        "%a = arith.floordivsi %n, %c4 : index",
        "%0 = arith.floordivsi %n, %c4 : index",
        "%1 = arith.muli %0, %c4 : index",
        "%b = arith.subi %n, %1 : index",
    ]


def test_a_remainder_of_what_is_never_negative_is_one_op() -> None:
    def body(n: Any) -> None:
        block = pto.get_block_idx()
        a = block % 4
        for i in range(n):
            b = (i * 2 + 1) % 3
            pto.store_scalar(a + b, pto.castptr(0, pto.ptr(pto.index, "ub")), i)

    found = lines(body)
    assert "%a = arith.remsi %block, %c4_i64 : i64" in found
    assert "  %b = arith.remsi %1, %c3 : index" in found


def test_unsigned_operands_have_unsigned_ops() -> None:
    def body(h: Any) -> None:
        a = h // 3
        b = h % 3
        c = h >> 1
        d = h < 4
        e = max(h, 4)
        f = ~h

    assert lines(body) == [
        "%a = arith.divui %h, %c3_ui32 : ui32",
        "%b = arith.remui %h, %c3_ui32 : ui32",
        "%c = arith.shrui %h, %c1_ui32 : ui32",
        "%d = arith.cmpi ult, %h, %c4_ui32 : ui32",
        "%e = arith.maxui %h, %c4_ui32 : ui32",
        "%f = arith.xori %h, %c4294967295_ui32 : ui32",
    ]


def test_bits_shifts_and_signs() -> None:
    def body(m: Any, x: Any, flag: Any) -> None:
        a = (m << 2) | (m >> 1)
        b = ~m ^ -m
        c = -x / 2
        d = not flag

    assert lines(body) == [
        "%0 = arith.shli %m, %c2_i32 : i32",
        "%1 = arith.shrsi %m, %c1_i32 : i32",
        "%a = arith.ori %0, %1 : i32",
        "%2 = arith.xori %m, %cn1_i32 : i32",
        "%3 = arith.subi %c0_i32, %m : i32",
        "%b = arith.xori %2, %3 : i32",
        "%4 = arith.negf %x : f32",
        "%c = arith.divf %4, %cst : f32",
        "%d = arith.xori %flag, %true : i1",
    ]


def test_comparisons_chain_and_join() -> None:
    def body(n: Any, x: Any) -> None:
        a = 0 <= n < 8
        b = x > 1 or x != x

    assert lines(body) == [
        "%0 = arith.cmpi sle, %c0, %n : index",
        "%1 = arith.cmpi slt, %n, %c8 : index",
        "%a = arith.andi %0, %1 : i1",
        "%2 = arith.cmpf ogt, %x, %cst : f32",
        "%3 = arith.cmpf une, %x, %x : f32",
        "%b = arith.ori %2, %3 : i1",
    ]


def test_conditional_expressions_and_extremes() -> None:
    def body(n: Any, x: Any) -> None:
        a = n if n > 2 else 7
        b = min(n, 16, a)
        c = pto.max(x, 0.5)
        d = pto.select(n == 0, 1.0, x)
        e = max(3, 4, n)

    assert lines(body) == [
        "%0 = arith.cmpi sgt, %n, %c2 : index",
        "%a = arith.select %0, %n, %c7 : index",
        "%1 = arith.minsi %n, %c16 : index",
        "%b = arith.minsi %1, %a : index",
        "%c = arith.maximumf %x, %cst : f32",
        "%2 = arith.cmpi eq, %n, %c0 : index",
        "%d = arith.select %2, %cst_1, %x : f32",
        "%e = arith.maxsi %c4, %n : index",
    ]


def test_casts_between_all_kinds_of_scalars() -> None:
    def body(m: Any, h: Any, x: Any, flag: Any) -> None:
        a = pto.cast(m, pto.index)
        b = pto.cast(m, pto.f16)
        c = pto.cast(h, pto.f32)
        d = pto.cast(x, pto.i8)
        e = pto.cast(x, pto.bf16)
        f = pto.cast(e, pto.f32)
        g = pto.cast(m, pto.i64)
        i = pto.cast(g, pto.i16)
        j = pto.cast(flag, pto.i32)
        k = pto.cast(m, pto.i32)
        o = pto.cast(h, pto.i32)

    assert lines(body) == [
        "%a = arith.index_cast %m : i32 to index",
        "%b = arith.sitofp %m : i32 to f16",
        "%c = arith.uitofp %h : ui32 to f32",
        "%d = arith.fptosi %x : f32 to i8",
        "%e = arith.truncf %x : f32 to bf16",
        "%f = arith.extf %e : bf16 to f32",
        "%g = arith.extsi %m : i32 to i64",
        "%i = arith.trunci %g : i64 to i16",
        "%j = arith.extui %flag : i1 to i32",
        "%o = arith.bitcast %h : ui32 to i32",
    ]


def test_known_values_are_computed_by_python() -> None:
    def body(n: Any) -> None:
        size = SCALE**2 // 3 + len((1, 2)) if SCALE > 1 else 0
        assert size == 7 and SCALE in (2, 4)
        a = n + size

    assert lines(body) == ["%a = arith.addi %n, %c7 : index"]


def test_constants_are_written_once_at_the_start() -> None:
    def body(n: Any) -> None:
        a = n + 8
        if a > 8:
            pto.store_scalar(8, pto.castptr(8, pto.ptr(pto.index, "ub")), 8)

    func = next(traced(body).module.funcs())
    assert func.body is not None
    assert [op.name for op in func.body.ops[:3]] == ["arith.constant", "arith.constant", "arith.addi"]
    assert [op.results[0].name for op in func.body.ops[:2]] == ["c8", "c8_i64"]


def test_a_constant_can_be_any_float() -> None:
    def body(u: Any) -> None:
        pto.store_scalar(float("-inf"), u, 0)
        pto.store_scalar(pto.const(1e-6, pto.f32), u, 1)

    assert len(lines(body)) == 2
