"""Verified modules: what is let through, beside the texts of `rejects/` that are not."""

from __future__ import annotations

import pytest

from tilewright.pto.errors import PtoUndeclaredValueError, PtoUnknownOpError
from tilewright.pto.module import Func, Module, Op, Region
from tilewright.pto.text.parser import parse
from tilewright.pto.verify import verify

TILE = "!pto.tile_buf<vec, 16x64xf32>"


def accepted(body: str, arguments: str = "") -> None:
    verify(parse(f"module {{ func.func @k({arguments}) {{\n{body}\nreturn }} }}"))


def test_scratch_tiles_have_any_element_type() -> None:
    scratch = "!pto.tile_buf<vec, 1x64xui8>"
    arguments = f"%a: {TILE}, %b: {TILE}, %s: {scratch}"
    accepted(f"pto.tprelu ins(%a, %a, %s : {TILE}, {TILE}, {scratch}) outs(%b : {TILE})", arguments)


@pytest.mark.parametrize("memory", ["vec", "ub", "mat", "l1"])
def test_a_buffer_lies_in_a_memory_by_either_of_its_names(memory: str) -> None:
    accepted(f'%b = pto.reserve_buffer {{name = "s", size = 64, location = #pto.address_space<{memory}>}} -> i32')


def test_a_scalar_divides_on_either_side() -> None:
    accepted(f"pto.tdivs ins(%a, %s : {TILE}, f32) outs(%a : {TILE})", f"%a: {TILE}, %s: f32")
    accepted(f"pto.tdivs ins(%s, %a : f32, {TILE}) outs(%a : {TILE})", f"%a: {TILE}, %s: f32")


def test_registers_of_64_bits_take_masks_of_32() -> None:
    register = "!pto.vreg<32xi64>"
    arguments = f"%v: {register}, %m: !pto.mask<b32>"
    accepted(f"%w = pto.vabs %v, %m : {register}, !pto.mask<b32> -> {register}", arguments)


def test_an_accumulator_converts_as_it_is_stored() -> None:
    acc, part = "!pto.tile_buf<acc, 16x16xf32>", "!pto.partition_tensor_view<16x16xbf16>"
    accepted(f"pto.tstore ins(%a : {acc}) outs(%p : {part})", f"%a: {acc}, %p: {part}")


def test_an_inner_module_calls_its_own_function_first() -> None:
    inner = "module { func.func @h(%x: f32) { return } func.func @k(%x: f32) { call @h(%x) : (f32) -> () return } }"
    verify(parse(f"module {{ func.func @h() {{ return }} {inner} }}"))


def test_functions_of_an_inner_module_are_not_seen_outside() -> None:
    with pytest.raises(PtoUndeclaredValueError):
        verify(parse("module { module { func.func @h() { return } } func.func @k() { call @h() : () -> () return } }"))


def test_a_declaration_may_be_called() -> None:
    text = (
        "module { func.func private @h(i32) -> i32 func.func @k(%x: i32) { %y = call @h(%x) : (i32) -> i32 return } }"
    )
    verify(parse(text))


def test_an_op_nobody_knows_is_named_in_a_made_module_too() -> None:
    made = Module([Func("k", body=Region((), [Op("pto.nothing"), Op("func.return")]))])
    with pytest.raises(PtoUnknownOpError, match=r"pto\.nothing"):
        verify(made)
