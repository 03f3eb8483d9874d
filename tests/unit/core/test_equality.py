"""Structural equality: what counts, what does not, and what is said about the first difference."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from unit.core.programs import EVERYTHING, everything, function, functions

import tilewright.language as pl
from tilewright.core.build import scalar
from tilewright.core.enums import ForKind
from tilewright.core.equality import assert_structural_equal, structural_equal, structural_hash
from tilewright.core.expr import Attribute, Call, Expr, Symbol, Var, constant, integer
from tilewright.core.op import get_op
from tilewright.core.program import Function, Program
from tilewright.core.serialize import deserialize, serialize
from tilewright.core.stmt import AssignStmt, ForStmt, IterArg, ReturnStmt, SeqStmts, Stmt, WhileStmt, YieldStmt
from tilewright.core.types import MemRef, ScalarType, Type, tensor, tile
from tilewright.dtypes import FP16, FP32, INDEX, INT32

KERNEL = """
@pl.function(type=pl.FunctionType.InCore)
def kernel(x: pl.Tensor[[M, 64], pl.FP32], n: pl.Scalar[pl.INT32], y: pl.Out[pl.Tensor[[M, 64], pl.FP32]]):
    for i in pl.range(4):
        a = pl.load(x, [i * 16, 0], [16, 64])
        b = pl.add(a, 1.0)
        c = pl.add(a, b)
        pl.store(c, [i * 16, 0], y)
"""


def real(name: str = "x") -> Var:
    return Var(name, ScalarType(FP32))


def body(*stmts: Stmt) -> SeqStmts:
    return SeqStmts(stmts)


def doubled(var: Var, source: Expr) -> AssignStmt:
    return AssignStmt(var, scalar("add", source, source))


def test_a_program_equals_itself_read_twice() -> None:
    assert_structural_equal(everything(), everything())


def test_equal_programs_have_equal_hashes() -> None:
    assert structural_hash(everything()) == structural_hash(everything())


def test_the_hash_is_the_same_in_another_process() -> None:
    code = (
        "from unit.core.programs import *; from tilewright.core.equality import *; print(structural_hash(everything()))"
    )
    env = {"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": "17"}
    run = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True, env=env)
    assert int(run.stdout) == structural_hash(everything())


def test_spans_names_of_variables_and_of_the_program_do_not_count() -> None:
    renamed = EVERYTHING.replace("acc", "sum_").replace("class Everything", "\n\nclass Other")
    assert_structural_equal(everything(), pl.parse(renamed))


def test_the_order_of_functions_does_not_count() -> None:
    program = everything()
    turned = program.with_functions(program.function_list[::-1])
    assert structural_equal(program, turned)
    assert structural_hash(program) == structural_hash(turned)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("add(a, b)", "sub(a, b)", "statement 1 / for body / statement 3 / value: expected tile.add, got tile.sub"),
        ("add(a, b)", "add(b, a)", "statement 3 / value / operand 1: expected the counterpart of a, got b"),
        ("1.0", "2.0", "statement 2 / value / operand 2: expected 1.0, got 2.0"),
        ("range(4)", "range(5)", "statement 1 / stop: expected 4, got 5"),
        ("pl.range", "pl.parallel", "statement 1 / kind: expected ForKind.Sequential, got ForKind.Parallel"),
        ("[M, 64]", "[N, 64]", "parameter 1 / type / extent 1: expected M, got N"),
        ("pl.Out", "pl.InOut", "direction of parameter 3: expected ParamDirection.Out, got ParamDirection.InOut"),
        ("pl.INT32", "pl.INT16", "parameter 2 / type / dtype: expected DataType.INT32, got DataType.INT16"),
        ("InCore", "AIV", "func type: expected FunctionType.InCore, got FunctionType.AIV"),
        (
            "        pl.store(c, [i * 16, 0], y)\n",
            "",
            "statement 4: expected pl.tile.store(c, [i * 16, 0], y), got nothing",
        ),
        ("n: pl.Scalar[pl.INT32], ", "", "parameter 2 / type: expected scalar[int32], got tensor[M, 64, fp32]"),
    ],
)
def test_the_first_difference_is_named_with_its_place(old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError) as error:
        assert_structural_equal(function(KERNEL), function(KERNEL.replace(old, new)))
    assert message in str(error.value)


def test_a_difference_is_shown_with_the_statement_on_both_sides() -> None:
    with pytest.raises(ValueError) as error:
        assert_structural_equal(function(KERNEL), function(KERNEL.replace("range(4)", "range(5)")))
    assert str(error.value) == (
        "function kernel / statement 1 / stop: expected 4, got 5\n"
        "    expected: for i in pl.range(4):\n"
        "    got:      for i in pl.range(5):"
    )


def test_the_name_of_a_function_counts_in_a_program_only() -> None:
    text = "@pl.function\ndef {}(x: pl.Scalar[pl.INT32]):\n    return x + {}\n"
    first, second = pl.parse(text.format("first", 1)), pl.parse(text.format("second", 1))
    assert_structural_equal(first, second)
    assert structural_hash(first) == structural_hash(second)
    assert not structural_equal(first, pl.parse(text.format("first", 2)))
    assert isinstance(first, Function) and isinstance(second, Function)
    with pytest.raises(ValueError, match="Map key mismatch"):
        assert_structural_equal(Program("P", (first,)), Program("P", (second,)))


def test_a_missing_function_is_named() -> None:
    program = everything()
    with pytest.raises(
        ValueError, match=r"^Map key mismatch: program Everything / function kernel: expected .*, got nothing"
    ):
        assert_structural_equal(program, program.with_functions(program.function_list[1:]))


def test_nodes_of_different_kinds_differ() -> None:
    with pytest.raises(ValueError, match=r"function f: expected def f\(\):, got x"):
        assert_structural_equal(Function("f"), real())


def test_free_variables_are_only_equal_to_themselves() -> None:
    x = real()
    assert structural_equal(body(doubled(real(), x)), body(doubled(real(), x)))
    assert not structural_equal(body(doubled(real(), x)), body(doubled(real(), real())))


def test_auto_mapping_lets_free_variables_stand_for_each_other() -> None:
    assert structural_equal(
        body(doubled(real(), real("a"))), body(doubled(real(), real("b"))), enable_auto_mapping=True
    )


@pytest.mark.parametrize("auto", [False, True])
def test_variables_are_paired_one_to_one(auto: bool) -> None:
    x, y, z = real(), real(), real()
    apart = body(doubled(y, x), doubled(z, x), ReturnStmt((y, z)))
    together = body(doubled(y, x), doubled(z, x), ReturnStmt((y, y)))
    assert not structural_equal(apart, together, auto)
    assert not structural_equal(together, apart, auto)


def test_free_variables_are_paired_one_to_one() -> None:
    x, y = real(), real()
    assert not structural_equal(scalar("add", x, y), scalar("add", x, x), enable_auto_mapping=True)
    assert not structural_equal(scalar("add", x, x), scalar("add", x, y), enable_auto_mapping=True)


def test_a_free_variable_does_not_pair_with_a_defined_one() -> None:
    free, left, right = real(), real(), real()
    assert not structural_equal(
        body(doubled(left, free), ReturnStmt((left,))), body(doubled(right, free), ReturnStmt((free,)))
    )


def test_a_value_is_read_before_its_name_is_bound() -> None:
    a, b = real(), real()
    assert not structural_equal(body(doubled(a, a)), body(doubled(b, b)))


def test_variables_assigned_many_times_stay_paired() -> None:
    def program(first: Var, second: Var, free: Var) -> SeqStmts:
        return body(doubled(first, free), doubled(second, first), doubled(first, second), doubled(first, first))

    x, a, b = real(), real(), real()
    assert structural_equal(program(a, b, x), program(b, a, x))
    assert structural_hash(program(a, b, x)) == structural_hash(program(b, a, x))
    assert not structural_equal(program(a, b, x), program(a, a, x))


def test_the_type_of_a_variable_counts_where_it_is_defined() -> None:
    x, narrow = real(), Var("y", ScalarType(FP16))
    assert not structural_equal(AssignStmt(real(), x), AssignStmt(narrow, x))


def test_what_is_known_about_bounds_does_not_count() -> None:
    assert structural_equal(
        Function("f", (Var("i", ScalarType(INDEX), bounds=(0, 3)),)), Function("f", (Var("i", ScalarType(INDEX)),))
    )


def test_functions_may_share_variable_objects() -> None:
    x, a, b = real(), real(), real()
    shared = Program(
        "P", (Function("f", (x,), body=body(ReturnStmt((x,)))), Function("g", (x,), body=body(ReturnStmt((x,)))))
    )
    apart = Program(
        "P", (Function("f", (a,), body=body(ReturnStmt((a,)))), Function("g", (b,), body=body(ReturnStmt((b,)))))
    )
    assert_structural_equal(shared, apart)
    assert_structural_equal(apart, shared)
    assert structural_hash(shared) == structural_hash(apart)


def test_carried_values_and_results_are_definitions() -> None:
    def loop(init: Var) -> SeqStmts:
        i, a, result = Var("i", ScalarType(INDEX)), real(), real()
        inner = body(YieldStmt((scalar("add", a, init),)))
        carried = (IterArg(a, init),)
        count = ForStmt(i, integer(0), integer(4), integer(1), inner, ForKind.Sequential, carried, (result,))
        b, last = real(), real()
        test = scalar("lt", b, init)
        return body(count, WhileStmt(test, body(YieldStmt((b,))), (IterArg(b, result),), (last,)), ReturnStmt((last,)))

    x = real()
    assert_structural_equal(loop(x), loop(x))
    assert not structural_equal(loop(x), loop(real()))


VALUES: list[Attribute] = [
    None,
    False,
    True,
    0,
    1,
    0.0,
    -0.0,
    1.0,
    float("nan"),
    "1",
    FP32,
    ForKind.Unroll,
    (1,),
    (1.0,),
    (),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_attributes_are_compared_with_their_types_and_bits(value: Attribute) -> None:
    def call(attribute: Attribute) -> Call:
        return Call(get_op("tensor.add"), (), (("option", attribute),), ScalarType(FP32))

    equal = [other for other in VALUES if structural_equal(call(value), call(other))]
    assert list(map(repr, equal)) == [repr(value)]


def test_attributes_are_compared_by_name() -> None:
    with pytest.raises(ValueError, match="function f / attribute split: expected 1, got nothing"):
        assert_structural_equal(Function("f", attrs={"split": 1}), Function("f", attrs={"slot": 1}))


def test_the_order_of_attributes_does_not_count() -> None:
    one, other = Function("f", attrs={"a": 1, "b": 2}), Function("f", attrs={"b": 2, "a": 1})
    assert structural_equal(one, other)
    assert structural_hash(one) == structural_hash(other)


def test_constants_are_compared_by_bits_and_dtype() -> None:
    constants = [
        constant(0.0),
        constant(-0.0),
        constant(0.0, FP16),
        integer(0),
        integer(0, INT32),
        constant(False),
        constant(float("nan")),
    ]
    equal = [[structural_equal(a, b) for a in constants] for b in constants]
    assert equal == [[a is b for a in constants] for b in constants]


def test_every_nan_is_one_nan() -> None:
    infinity = float("inf")
    assert structural_equal(constant(infinity - infinity), constant(-float("nan")))


def test_types_compare_shape_valid_extents_memory_and_place() -> None:
    plain = tile((16, 64), FP32)
    types: list[Type] = [
        plain,
        tile((16, 64), FP16),
        tile((64, 16), FP32),
        tile((16, 64), FP32, valid=(8, 64)),
        tile((16, 64), FP32, valid=(None, 64)),
        tile((16, 64), FP32, valid=(Symbol("M"), 64)),
        replace(plain, memref=MemRef(0, 4096)),
        replace(plain, memref=MemRef(64, 4096)),
        tensor((16, 64), FP32),
        tensor((Symbol("M"), 64), FP32),
        tensor((scalar("floordiv", Symbol("M"), integer(2)), 64), FP32),
    ]
    assert all(structural_equal(a, b) == (a is b) for a in types for b in types)
    assert len({structural_hash(type_) for type_ in types}) == len(types)


def test_formulas_over_symbols_are_compared_by_what_they_say() -> None:
    def half(name: str) -> Type:
        return tensor((scalar("floordiv", Symbol(name), integer(2)),), FP32)

    assert structural_equal(half("M"), half("M"))
    assert not structural_equal(half("M"), half("N"))


def test_a_shared_subexpression_is_compared_once() -> None:
    def tower() -> Expr:
        value: Expr = Symbol("M")
        for _ in range(200):
            value = Call(get_op("scalar.add"), (value, value), (), ScalarType(INDEX))
        return value

    assert structural_equal(tower(), tower())
    assert structural_hash(tower()) == structural_hash(tower())


def test_ten_thousand_statements_are_no_problem() -> None:
    def long() -> Function:
        names = [real() for _ in range(10_001)]
        stmts = [doubled(new, old) for old, new in pairwise(names)]
        return Function("f", tuple(names[:1]), body=SeqStmts(tuple(stmts)))

    assert structural_equal(long(), long())
    assert structural_hash(long()) == structural_hash(long())


@given(functions())
def test_a_copy_is_equal_and_hashes_alike(function: Function) -> None:
    copy = deserialize(serialize(function))
    assert_structural_equal(function, copy)
    assert structural_hash(function) == structural_hash(copy)


@given(functions(), functions())
def test_equality_is_symmetric_and_equal_functions_hash_alike(one: Function, other: Function) -> None:
    assert structural_equal(one, other) == structural_equal(other, one)
    assert structural_equal(one, other) <= (structural_hash(one) == structural_hash(other))


@given(functions())
def test_a_lost_statement_is_noticed(function: Function) -> None:
    assert not structural_equal(function, function.with_body(SeqStmts(function.body.stmts[:-1])))


@given(functions())
def test_a_changed_return_value_is_noticed(function: Function) -> None:
    changed = ReturnStmt((constant(0.5, FP16),))
    assert not structural_equal(function, function.with_body(SeqStmts((*function.body.stmts[:-1], changed))))


def test_every_statement_of_a_body_is_compared() -> None:
    for whole in everything().function_list:
        for count in range(len(whole.body)):
            assert not structural_equal(whole, whole.with_body(SeqStmts(whole.body.stmts[:count])))
