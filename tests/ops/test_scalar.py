"""Scalars: what Python's operators mean between numbers of a kernel, folded or run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from ops.kernels import kernel, launch, on_the_interpreter, out, run, scalar, type_of

import tilewright.language as pl
from tilewright.core.op import Kind, OpSpec, specs
from tilewright.core.types import ScalarType
from tilewright.dtypes import DataType
from tilewright.errors import DTypeMismatchError, ExecutionError, OperandError

pytestmark = pytest.mark.usefixtures("on_target")

SCALARS = [s for s in specs() if s.kinds == (Kind.SCALAR,)]
INTEGERS = [(7, 3), (-7, 3), (7, -3), (-8, 2), (2**31 - 1, 1), (-(2**31), 31), (0, 5), (12, 12)]


def spelled(spec: OpSpec, *operands: str) -> str:
    """Return an op as a kernel author writes it."""
    if not spec.symbol:
        return f"pl.{spec.name}({', '.join(operands)})"
    return f" {spec.symbol} ".join(operands) if len(operands) == 2 else f"{spec.symbol} {operands[0]}"


def store(expression: str, result: DataType) -> str:
    """Return statements that write a number or a truth value into `out`."""
    if result != pl.BOOL:
        return f"pl.write(out, [0], {expression})"
    return f"if {expression}:\n    pl.write(out, [0], 1)\nelse:\n    pl.write(out, [0], 0)"


def operand_dtype(spec: OpSpec) -> DataType:
    return pl.BOOL if spec.symbol in ("and", "or", "not") else pl.INT32


def result_dtype(spec: OpSpec) -> DataType:
    return pl.BOOL if spec.symbol in ("and", "or", "not", "==", "!=", "<", "<=", ">", ">=") else pl.INT32


def samples(spec: OpSpec) -> list[tuple[int, ...]]:
    pairs = [(0, 0), (0, 1), (1, 0), (1, 1)] if operand_dtype(spec) == pl.BOOL else INTEGERS
    return [pair[: len(spec.operands)] for pair in pairs if pair[1] >= 0 or spec.symbol not in ("<<", ">>")]


def in_python(spec: OpSpec, values: tuple[int, ...]) -> int:
    """Return what Python itself says, in the width of the kernel's integers."""
    names = dict(zip("ab", values, strict=False))
    text = {"/": "int(a / b)", "": f"{spec.name}(a, b)"}.get(spec.symbol) or spelled(spec, *names)
    exact = int(eval(text, {}, names))
    return (exact + 2**31) % 2**32 - 2**31


@pytest.mark.parametrize("spec", SCALARS, ids=lambda s: s.name)
def test_an_operator_means_what_it_means_in_python(spec: OpSpec) -> None:
    names = ["a", "b"][: len(spec.operands)]
    function = kernel(
        store(spelled(spec, *names), result_dtype(spec)),
        **{name: scalar(operand_dtype(spec)) for name in names},
        out=out(pl.INT32, 1),
    )
    for values in samples(spec):
        given = [bool(v) if operand_dtype(spec) == pl.BOOL else v for v in values]
        assert run(function, *given) == [in_python(spec, values)]


@pytest.mark.parametrize("spec", SCALARS, ids=lambda s: s.name)
def test_a_folded_operator_agrees_with_a_running_one(spec: OpSpec) -> None:
    for values in samples(spec):
        literals = [repr(bool(v)) if operand_dtype(spec) == pl.BOOL else f"pl.const({v}, pl.INT32)" for v in values]
        function = kernel(store(spelled(spec, *literals), result_dtype(spec)), out=out(pl.INT32, 1))
        assert run(function) == [in_python(spec, values)]


def test_operators_read_back_as_they_print() -> None:
    body = (
        "x = (a + b) * (a - b) // 2 % 3\ny = (a << b) >> (a & b | a ^ b)\nz = ~a\nw = not (a < b and a >= b or a == b)"
    )
    text = str(kernel(body, a=scalar(pl.INT32), b=scalar(pl.INT32)))
    assert str(pl.parse(text)) == text


@pytest.mark.parametrize(
    ("lhs", "rhs", "result"),
    [
        (pl.INT8, pl.INT32, pl.INT32),
        (pl.UINT8, pl.INT32, pl.INT32),
        (pl.UINT32, pl.INT32, pl.INT64),
        (pl.INT8, pl.UINT8, pl.INT16),
        (pl.INT8, pl.UINT32, pl.INT64),
        (pl.UINT32, pl.INDEX, pl.INDEX),
        (pl.INDEX, pl.INT64, pl.INDEX),
        (pl.INT64, pl.INDEX, pl.INDEX),
        (pl.FP16, pl.FP32, pl.FP32),
        (pl.BF16, pl.FP16, pl.FP32),
    ],
)
def test_two_numbers_meet_in_the_narrowest_type_that_holds_both(lhs: DataType, rhs: DataType, result: DataType) -> None:
    assert type_of(kernel("c = a + b", a=scalar(lhs), b=scalar(rhs)), "c") == ScalarType(result)


@pytest.mark.parametrize("literal", ["1", "1.0"])
def test_a_literal_takes_the_type_of_the_number_it_meets(literal: str) -> None:
    assert type_of(kernel(f"c = a * {literal}", a=scalar(pl.FP16)), "c") == ScalarType(pl.FP16)


def test_an_integer_does_not_meet_a_float() -> None:
    with pytest.raises(DTypeMismatchError, match="scalars of one category meet, got int32 and fp32") as caught:
        kernel("c = a + b", a=scalar(pl.INT32), b=scalar(pl.FP32))
    assert "pl.cast" in caught.value.help


def test_an_integer_does_not_meet_a_float_literal() -> None:
    with pytest.raises(DTypeMismatchError, match="scalars of one category meet, got int32 and fp32"):
        kernel("c = a + 1.5", a=scalar(pl.INT32))


def test_a_bool_takes_no_part_in_arithmetic() -> None:
    with pytest.raises(DTypeMismatchError, match="arithmetic needs numbers, got bool and int32"):
        kernel("c = a + b", a=scalar(pl.BOOL), b=scalar(pl.INT32))


def test_a_number_is_no_condition() -> None:
    with pytest.raises(DTypeMismatchError, match="`and` joins two conditions, got int32 and int32"):
        kernel("c = a and a", a=scalar(pl.INT32))


def test_a_number_is_not_negated_as_a_condition() -> None:
    with pytest.raises(DTypeMismatchError, match="`not` negates a condition, got int32"):
        kernel("c = not a", a=scalar(pl.INT32))


def test_a_float_has_no_bits() -> None:
    with pytest.raises(OperandError, match="must be an integer, got scalar"):
        kernel("c = a << a", a=scalar(pl.FP32))


def test_integers_wrap_in_their_own_width() -> None:
    function = kernel("pl.write(out, [0], a * a)", a=scalar(pl.INT8), out=out(pl.INT8, 1))
    assert run(function, 100) == [16]


def test_floats_round_in_their_own_width() -> None:
    function = kernel("pl.write(out, [0], a + a * 0.001)", a=scalar(pl.FP16), out=out(pl.FP16, 1))
    small = np.float16(0.001)
    assert run(function, 1.0) == [np.float16(1) + small]


def test_a_literal_is_rounded_to_the_type_it_is_compared_in() -> None:
    function = kernel(store("a == 0.1", pl.BOOL), a=scalar(pl.FP32), out=out(pl.INT32, 1))
    assert run(function, float(np.float32(0.1))) == [1]


@on_the_interpreter
@pytest.mark.parametrize("symbol", ["/", "//", "%"])
def test_an_integer_divided_by_zero_stops_the_program(symbol: str) -> None:
    function = kernel(f"c = a {symbol} b", a=scalar(pl.INT32), b=scalar(pl.INT32))
    with pytest.raises(ExecutionError, match="division by zero"):
        launch(function, 1, 0)


@pytest.mark.parametrize(("symbol", "result"), [("/", math.inf), ("//", math.inf), ("%", math.nan)])
def test_a_float_divided_by_zero_follows_ieee(symbol: str, result: float) -> None:
    function = kernel(f"pl.write(out, [0], a {symbol} b)", a=scalar(pl.FP32), b=scalar(pl.FP32), out=out(pl.FP32, 1))
    np.testing.assert_array_equal(run(function, 1.0, 0.0), [result])


@pytest.mark.parametrize(("count", "result"), [(33, 6), (-31, 6), (10**9, 3)])
def test_shift_counts_are_taken_modulo_the_width(count: int, result: int) -> None:
    function = kernel("pl.write(out, [0], a << b)", a=scalar(pl.INT32), b=scalar(pl.INT32), out=out(pl.INT32, 1))
    assert run(function, 3, count) == [result]


@pytest.mark.parametrize("name", ["min", "max"])
@pytest.mark.parametrize("pair", [(1.0, math.nan), (math.nan, 1.0)])
def test_nan_wins_a_minimum_and_a_maximum(name: str, pair: tuple[float, float]) -> None:
    function = kernel(f"pl.write(out, [0], pl.{name}(a, b))", a=scalar(pl.FP32), b=scalar(pl.FP32), out=out(pl.FP32, 1))
    assert np.isnan(run(function, *pair)).all()


@pytest.mark.parametrize("expression", ["a + 0", "0 + a", "a - 0", "a * 1", "a // 1"])
def test_an_operation_that_changes_nothing_disappears(expression: str) -> None:
    text = str(kernel(f"pl.write(out, [0], {expression})", a=scalar(pl.INT32), out=out(pl.INT32, 1)))
    assert "pl.tensor.write(out, [0], a)" in text


def test_zero_minus_a_number_does_not_disappear() -> None:
    function = kernel("pl.write(out, [0], 0 - a)", a=scalar(pl.INT32), out=out(pl.INT32, 1))
    assert run(function, 4) == [-4]
