"""Serialization: bytes that say what a program is, and nothing else that is read back."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from hashlib import sha256
from random import Random
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.core.programs import everything, function, functions

from tilewright.core import expr, program, stmt, types
from tilewright.core import serialize as serialization
from tilewright.core.build import scalar
from tilewright.core.equality import assert_structural_equal, structural_equal
from tilewright.core.expr import ConstFloat, Symbol, Var
from tilewright.core.program import Function, Program
from tilewright.core.serialize import MAGIC, VERSION, deserialize, serialize
from tilewright.core.stmt import AssignStmt, ReturnStmt, SeqStmts
from tilewright.core.types import ScalarType
from tilewright.dtypes import FP32, INDEX
from tilewright.source import UNKNOWN

HEADER = len(MAGIC) + 1 + 32


def resealed(table: bytes) -> bytes:
    """Return a table with the header that belongs to it."""
    return MAGIC + bytes([VERSION]) + sha256(table).digest() + table


def test_a_program_comes_back_equal() -> None:
    program = everything()
    assert_structural_equal(program, deserialize(serialize(program)))


def test_a_function_comes_back_as_a_function() -> None:
    main = everything()["main"]
    copy = deserialize(serialize(main))
    assert isinstance(copy, Function)
    assert_structural_equal(main, copy)


def test_names_and_bounds_come_back() -> None:
    original = Function("f", (Var("i", ScalarType(INDEX), bounds=(-3, 70)),))
    copy = deserialize(serialize(original))
    assert isinstance(copy, Function)
    assert (copy.params[0].name_hint, copy.params[0].bounds) == ("i", (-3, 70))


def test_the_name_of_a_program_and_the_order_of_its_functions_come_back() -> None:
    copy = deserialize(serialize(everything()))
    assert isinstance(copy, Program)
    assert (copy.name, copy.function_names) == ("Everything", ["kernel", "main"])


def test_the_functions_a_free_function_calls_come_along() -> None:
    callee = Function("g")
    copy = deserialize(serialize(Function("f", callees=(callee,))))
    assert isinstance(copy, Function)
    assert [f.name for f in copy.callees] == ["g"]


def test_spans_are_dropped() -> None:
    copy = deserialize(serialize(everything()))
    assert copy.span == UNKNOWN
    assert everything().span != UNKNOWN


def test_equal_input_gives_equal_bytes() -> None:
    data = serialize(everything())
    assert serialize(everything()) == data
    assert serialize(deserialize(data)) == data


def test_a_variable_is_one_object_wherever_it_stands() -> None:
    x = Var("x", ScalarType(FP32))
    copy = deserialize(serialize(Function("f", (x,), body=SeqStmts((ReturnStmt((x,)),)))))
    assert isinstance(copy, Function)
    (returned,) = copy.body
    assert isinstance(returned, ReturnStmt)
    assert returned.values[0] is copy.params[0]


def test_equal_statements_stay_separate_objects() -> None:
    x = Var("x", ScalarType(FP32))
    copy = deserialize(serialize(Function("f", (x,), body=SeqStmts((ReturnStmt((x,)), ReturnStmt((x,)))))))
    assert isinstance(copy, Function)
    first, second = copy.body
    assert first is not second


def test_every_bit_of_a_float_comes_back() -> None:
    odd_nan = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0123))[0]
    copy = deserialize(serialize(Function("f", body=SeqStmts((ReturnStmt((ConstFloat(odd_nan, FP32),)),)))))
    assert isinstance(copy, Function)
    (returned,) = copy.body
    assert isinstance(returned, ReturnStmt) and isinstance(returned.values[0], ConstFloat)
    assert struct.pack("<d", returned.values[0].value) == struct.pack("<d", odd_nan)


@pytest.mark.parametrize("value", [0, -1, 127, 128, -128, -129, 255, 2**63, -(2**63), 2**200])
def test_integers_of_any_size_come_back(value: int) -> None:
    copy = deserialize(serialize(Function("f", attrs={"n": value})))
    assert isinstance(copy, Function)
    assert copy.attrs == {"n": value}


def test_shared_subexpressions_take_the_space_of_one() -> None:
    value = scalar("add", Symbol("M"), Symbol("N"))
    for _ in range(100):
        value = scalar("add", value, value)
    x = Var("x", ScalarType(INDEX))
    original = Function("f", body=SeqStmts((AssignStmt(x, value),)))
    assert len(serialize(original)) < 5000
    assert_structural_equal(original, deserialize(serialize(original)))


def test_a_long_program_is_no_problem() -> None:
    source = "@pl.function\ndef f(x: pl.Tensor[[64, 64], pl.FP32]):\n    a = pl.load(x, [0, 0], [64, 64])\n"
    original = function(source + "    a = pl.add(a, 1.0)\n" * 500)
    assert_structural_equal(original, deserialize(serialize(original)))


def node_classes() -> Iterator[type[Any]]:
    for module in (expr, stmt, types, program):
        yield from (cls for cls in vars(module).values() if is_node_class(cls, module))


def is_node_class(cls: Any, module: ModuleType) -> bool:
    return isinstance(cls, type) and is_dataclass(cls) and cls.__module__ == module.__name__


@pytest.mark.parametrize("cls", list(node_classes()), ids=lambda cls: cls.__name__)
def test_every_class_of_nodes_is_known(cls: type[Any]) -> None:
    assert vars(serialization)["_BY_NAME"][cls.__name__] is cls
    assert {f.name for f in fields(cls)} <= vars(serialization)["_hints"](cls).keys()


def test_what_no_program_holds_is_refused() -> None:
    with pytest.raises(TypeError, match="no program holds a list"):
        serialize(Function("f", attrs={"a": [1]}))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "does not start with TWIR"),
        (b"\x80\x04K\x01.", "does not start with TWIR"),
        (b"TWIR", "cut off inside its header"),
        (serialize(Function("f"))[:-1], "checksum does not match"),
        (serialize(Function("f")) + b"N", "checksum does not match"),
        (b"TWIR\x09" + bytes(40), "format 9; this version of tilewright reads 4"),
        (resealed(b""), "ends in neither a program nor a function"),
        (resealed(b"\x01N"), "ends in neither a program nor a function"),
        (resealed(b"\x00"), "an entry is cut off"),
        (resealed(b"\x05N"), "an entry is cut off"),
        (resealed(b"\x80"), "a number is cut off"),
        (resealed(b"\x02(\x00"), "refers to a later one"),
        (resealed(b"\x02(\x80"), "a number is cut off"),
        (resealed(b"\x02S\xff"), "not UTF-8"),
        (resealed(b"\x02D\x00"), "no value"),
        (resealed(b"\x02Zx"), "no value"),
        (resealed(b"\x08EOs.path"), "no value"),
        (resealed(b"\x09Otile.ads"), "no op is called 'tile.ads'"),
        (resealed(b"\x03Sos\x02C\x00"), "no node 'os'"),
        (resealed(b"\x01C"), "no node None"),
        (resealed(b"\x07SMemRef\x02C\x00"), "MemRef has 5 fields, got 0"),
        (resealed(b"\x07SMemRef\x01N\x07C\x00\x01\x01\x01\x01\x01"), "MemRef.offset cannot be NoneType"),
        (resealed(b"\x07SMemRef\x01T\x07C\x00\x01\x01\x01\x01\x01"), "MemRef.offset cannot be bool"),
        (resealed(b"\x01N\x02{\x00"), "not made of names and values"),
    ],
)
def test_other_data_is_refused_with_a_reason(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        deserialize(data)


@given(functions())
def test_any_function_comes_back_equal_and_to_the_same_bytes(original: Function) -> None:
    data = serialize(original)
    copy = deserialize(data)
    assert_structural_equal(original, copy)
    assert serialize(copy) == data


@given(functions(), st.integers(0), st.integers(1, 255))
def test_a_flipped_byte_is_noticed(original: Function, position: int, change: int) -> None:
    data = bytearray(serialize(original))
    data[position % len(data)] ^= change
    with pytest.raises(ValueError):
        deserialize(bytes(data))


@given(functions(), st.integers(0))
def test_a_truncation_is_noticed(original: Function, position: int) -> None:
    data = serialize(original)
    with pytest.raises(ValueError):
        deserialize(data[: position % len(data)])


@given(st.binary(max_size=200))
def test_arbitrary_tables_give_a_node_or_a_value_error(table: bytes) -> None:
    try:
        deserialize(resealed(table))
    except ValueError:
        pass


def test_forged_tables_give_a_node_or_a_value_error() -> None:
    random, table = Random(7), serialize(everything())[HEADER:]
    refused = 0
    for _ in range(1500):
        forged = bytearray(table)
        for _ in range(random.randint(1, 3)):
            forged[random.randrange(len(forged))] = random.randrange(256)
        try:
            deserialize(resealed(bytes(forged)))
        except ValueError:
            refused += 1
    assert refused > 750
    assert structural_equal(everything(), deserialize(resealed(table)))
