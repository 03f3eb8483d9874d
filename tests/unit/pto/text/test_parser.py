"""Parsed texts: what lies where in a module."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.pto.text.samples import VALID, text_of

from tilewright.errors import KernelError
from tilewright.pto.errors import PtoNestingError, PtoSyntaxError
from tilewright.pto.module import Enumerated, Op, SymbolRef
from tilewright.pto.text.parser import parse
from tilewright.pto.text.printer import print_module
from tilewright.pto.types import F32, I64, INDEX, TensorView
from tilewright.pto.verify import verify

TILE = "!pto.tile_buf<vec, 16x64xf32>"


def ops(body: str, arguments: str = "") -> list[Op]:
    module = parse(f"module {{ func.func @k({arguments}) {{\n{body}\nreturn }} }}")
    func = next(module.funcs())
    assert func.body is not None
    return func.body.ops


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_a_valid_file_is_read_and_verified(path: Path) -> None:
    verify(parse(text_of(path), str(path)))


def test_a_parsed_module_prints_as_the_text_it_was_read_from() -> None:
    text = "module {\n  func.func @k() { return }\n}\n"
    assert str(parse(text)) == text and repr(parse(text)).startswith("Module(")


def test_both_spellings_of_a_tile_are_one_type() -> None:
    long = "loc=vec, dtype=f32, rows=16, cols=64, v_row=16, v_col=64, blayout=row_major, slayout=none_box"
    first, second, _ = ops(f"%a = pto.alloc_tile : {TILE}\n%b = pto.alloc_tile : !pto.tile_buf<{long}>")
    assert first.results[0].type == second.results[0].type


def test_words_hold_their_operands() -> None:
    copy, _ = ops(
        "pto.mte_ub_gm %u, %g, %n nburst(%n, %n, %n) loop(%n, %n, %n) loop(%n, %n, %n)"
        " : !pto.ptr<f32, ub>, !pto.ptr<f32>, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64",
        "%u: !pto.ptr<f32, ub>, %g: !pto.ptr<f32>, %n: i64",
    )
    assert [(clause.name, len(clause.values)) for clause in copy.clauses] == [("nburst", 3), ("loop", 3), ("loop", 3)]
    assert len(copy.operands) == 3


def test_brackets_after_a_pointer_are_its_offset() -> None:
    store, _ = ops("pto.store %v, %p[%i] : !pto.ptr<f32>, f32", "%v: f32, %p: !pto.ptr<f32>, %i: index")
    assert [value.name for value in store.operands] == ["v", "p"]
    assert [value.type for value in store.clause("offset") or ()] == [INDEX]


@pytest.mark.parametrize("pipe", ['"PIPE_V"', "<PIPE_V>", "#pto.pipe<PIPE_V>", "#pto<pipe PIPE_V>"])
def test_every_spelling_of_a_pipe_is_one_word(pipe: str) -> None:
    barrier, _ = ops(f"pto.barrier {pipe}")
    assert barrier.attributes == {"pipe": Enumerated("pipe", "PIPE_V")}


def test_a_dictionary_may_stand_in_three_places() -> None:
    inside, after, _ = ops(
        f"pto.texp ins(%a {{x = 1}} : {TILE}) outs(%a : {TILE})\npto.texp ins(%a : {TILE}) outs(%a : {TILE}) {{x = 1}}",
        f"%a: {TILE}",
    )
    between, _ = ops(f"pto.texp ins(%a : {TILE}) {{x = 1}} outs(%a : {TILE})", f"%a: {TILE}")
    assert inside.attributes == after.attributes == between.attributes == {"x": 1}


def test_old_partitions_have_the_type_their_sizes_make() -> None:
    view = "!pto.tensor_view<?x?xf32>"
    part, _ = ops(
        f"%p = pto.partition_view %v, offsets = [%i, %i], sizes = [%i, %i] : {view}", f"%v: {view}, %i: index"
    )
    assert part.results[0].type == TensorView((None, None), F32, partition=True)


def test_a_loop_has_its_variable_before_what_it_carries() -> None:
    loop, _ = ops(
        "%r = scf.for %i = %n to %n step %n iter_args(%x = %f) -> (f32) {\nscf.yield %x : f32\n}", "%n: index, %f: f32"
    )
    assert [value.name for value in loop.regions[0].arguments] == ["i", "x"]
    assert [value.name for value in loop.clause("iter_args") or ()] == ["f"]


def test_a_while_has_two_regions() -> None:
    loop, _ = ops(
        "%r = scf.while (%i = %n) : (index) -> index {\nscf.condition(%c) %i : index\n"
        "} do {\n^bb0(%j: index):\nscf.yield %j : index\n}",
        "%n: index, %c: i1",
    )
    before, after = loop.regions
    assert [value.name for value in (*before.arguments, *after.arguments)] == ["i", "j"]
    assert [value.name for value in before.ops[0].operands] == ["c", "i"]


def test_results_are_counted_or_listed() -> None:
    first, second, _ = ops("%p:2 = arith.mulsi_extended %a, %a : i32\n%q = arith.addi %p#1, %a : i32", "%a: i32")
    assert second.operands[0] is first.results[1]


def test_a_call_names_its_function() -> None:
    module = parse("module { func.func @h() { return } func.func @k() { call @h() : () -> () return } }")
    _, caller = module.funcs()
    assert caller.body is not None
    assert caller.body.ops[0].name == "func.call"
    assert caller.body.ops[0].attributes == {"callee": SymbolRef("h")}


def test_the_generic_form_is_the_same_op() -> None:
    generic, plain, _ = ops(
        f'"pto.tmov"(%a, %a) <{{operandSegmentSizes = array<i32: 1, 0, 1>}}> : ({TILE}, {TILE}) -> ()\n'
        f"pto.tmov ins(%a : {TILE}) outs(%a : {TILE})",
        f"%a: {TILE}",
    )
    assert (generic.name, generic.ins, generic.outs) == (plain.name, plain.ins, plain.outs)
    assert generic.attributes == plain.attributes == {}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("-1 : i32", -1),
        ("255 : i8", -1),
        ("255 : ui8", 255),
        ("true", True),
        ("0x3F800000 : f32", 1.0),
        ("1e3 : f16", 1e3),
    ],
)
def test_constants_are_plain_numbers(text: str, value: float) -> None:
    constant, _ = ops(f"%c = arith.constant {text}")
    assert constant.attributes["value"] == value
    assert type(constant.attributes["value"]) is type(value)


def test_places_count_lines_from_one_and_columns_from_zero() -> None:
    constant, _ = ops("  %c = arith.constant 1 : i64")
    assert constant.span[1:5] == (2, 7, 2, 29)
    assert constant.results[0].span[1:5] == (2, 2, 2, 4)
    assert constant.results[0].type == I64


def test_columns_of_text_beyond_ascii_count_bytes() -> None:
    with pytest.raises(PtoSyntaxError) as caught:
        parse('module attributes {a = "äöü", ?} {\n}')
    assert caught.value.place.column == len('module attributes {a = "äöü", '.encode())
    assert str(caught.value).splitlines()[2].index("^") == len(' 1 | module attributes {a = "äöü", ')


def test_text_without_a_module_is_one() -> None:
    module = parse("func.func @k() { return }")
    assert [func.name for func in module.funcs()] == ["k"]


def test_a_module_keeps_its_text() -> None:
    text = "module {\n  // nothing\n}\n"
    assert parse(text).text == text


def test_depth_is_refused_before_python_refuses() -> None:
    with pytest.raises(PtoNestingError):
        parse("module {" * 100_000)


@pytest.mark.parametrize(
    "text", ["", " ", "//", "\0", "module", "%", "<" * 5000, "module { func.func @k(%a: " + "<" * 5000]
)
def test_any_text_is_refused_with_a_place(text: str) -> None:
    with pytest.raises(KernelError) as caught:
        parse(text)
    assert caught.value.place.is_known


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    text = "module {\n  func.func @k() {\n    return\n  }\n}\n"
    assert print_module(parse("\ufeff" + text)) == print_module(parse(text))
