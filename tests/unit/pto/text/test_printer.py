"""Printed modules: they parse to equal ones and print the same again."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.pto.equality import same
from unit.pto.text.samples import PLAIN, VALID, modules_of, text_of

from tilewright.pto.module import Module
from tilewright.pto.text.parser import parse
from tilewright.pto.text.printer import print_module


def assert_round_trip(module: Module) -> None:
    text = print_module(module)
    again = parse(text)
    assert same(module, again), text
    assert print_module(again) == text


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_a_file_comes_back(path: Path) -> None:
    assert_round_trip(parse(text_of(path)))


@pytest.mark.parametrize("name", PLAIN)
def test_every_op_comes_back(name: str) -> None:
    for module in modules_of(name):
        assert_round_trip(module)


def test_names_that_clash_are_told_apart() -> None:
    text = "module { func.func @k(%c: i1) { scf.if %c { %p:2 = arith.mulsi_extended %c, %c : i1 } return } }"
    module = parse(text.replace("mulsi_extended %c, %c : i1", "addui_extended %c, %c : i1, i1"))
    module_text = print_module(module)
    assert "%p_0, %p_1 = arith.addui_extended %c, %c : i1, i1" in module_text
    assert_round_trip(module)


@pytest.mark.parametrize("number", ["1.5", "1.0e+30", "0x7F800000", "0xFF800000", "0x7FC00000", "-0.0", "1.0e-45"])
def test_floats_come_back(number: str) -> None:
    assert_round_trip(parse(f"module {{ func.func @k() {{ %a = arith.constant {number} : f32 return }} }}"))


@pytest.mark.parametrize(
    ("type_", "number"),
    [
        ("f16", "0x7C00"),
        ("bf16", "0xFF80"),
        ("f64", "0x7FF0000000000000"),
        ("f64", "0xFFF0000000000000"),
        ("f64", "0.1"),
    ],
)
def test_floats_of_every_size_come_back(type_: str, number: str) -> None:
    assert_round_trip(parse(f"module {{ func.func @k() {{ %a = arith.constant {number} : {type_} return }} }}"))
