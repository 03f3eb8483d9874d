"""Conversion: how `cast` rounds, saturates and wraps."""

from __future__ import annotations

import math
import textwrap

import numpy as np
import pytest
from ops.kernels import Array, bfloat16, kernel, launch, out, run, scalar, tensor, type_of
from ops.native import Native

import tilewright.language as pl
from tilewright.core.enums import RoundMode
from tilewright.core.types import TileType
from tilewright.dtypes import DataType
from tilewright.errors import AttributeValueError, DTypeMismatchError

pytestmark = pytest.mark.usefixtures("on_target")

HALVES = [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4, -2.6]


def cast(values: list[float] | Array, source: DataType, target: DataType, mode: str = "") -> list[float]:
    """Return numbers of one type converted to another by a kernel."""
    given = np.array(values, source.numpy)
    body = f"a = pl.load(x, [0], [{len(given)}])\nout = pl.store(pl.cast(a, pl.{target.symbol}{mode}), [0], out)"
    return run(kernel(body, x=tensor(source, len(given)), out=out(target, len(given))), given).tolist()


def test_cast_rounds_ties_away_by_default() -> None:
    assert cast(HALVES, pl.FP32, pl.INT32) == [-3, -2, -1, 1, 2, 3, 2, -3]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ('"none"', [-2, -2, 0, 0, 2, 2, 2, -3]),
        ('"rint"', [-2, -2, 0, 0, 2, 2, 2, -3]),
        ('"round"', [-3, -2, -1, 1, 2, 3, 2, -3]),
        ('"floor"', [-3, -2, -1, 0, 1, 2, 2, -3]),
        ('"ceil"', [-2, -1, 0, 1, 2, 3, 3, -2]),
        ('"trunc"', [-2, -1, 0, 0, 1, 2, 2, -2]),
        ('"odd"', [-3, -1, -1, 1, 1, 3, 3, -3]),
        ("1", [-2, -2, 0, 0, 2, 2, 2, -3]),
        ("3", [-3, -2, -1, 0, 1, 2, 2, -3]),
    ],
)
def test_cast_rounds_to_integers_by_its_mode(mode: str, expected: list[int]) -> None:
    assert cast(HALVES, pl.FP32, pl.INT32, f", mode={mode}") == expected


@pytest.mark.parametrize("integers", [pl.INT64, pl.UINT64], ids=str)
@pytest.mark.parametrize("mode", [mode.name for mode in RoundMode])
def test_whole_doubles_stay_what_they_are_in_every_mode(mode: str, integers: DataType) -> None:
    whole = [2.0**52 + 1, 8672367567484189.0, 2.0**53 - 1, 2.0**53 + 2, 2.0**62]
    assert cast(whole, pl.FP64, integers, f', mode="{mode}"') == whole


def test_the_double_below_half_rounds_down() -> None:
    assert cast([0.49999999999999994, 0.5, -0.49999999999999994], pl.FP64, pl.INT64) == [0, 1, 0]


@pytest.mark.parametrize("mode", ['"nearest"', "7"])
def test_an_unknown_mode_is_refused_with_the_known_ones(mode: str) -> None:
    with pytest.raises(AttributeValueError, match="there is no rounding mode") as caught:
        cast([1.0], pl.FP32, pl.INT32, f", mode={mode}")
    assert "trunc (5)" in caught.value.help


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [
        (pl.INT8, -128, 127),
        (pl.UINT8, 0, 255),
        (pl.INT32, -(2**31), 2**31 - 1),
        (pl.INT64, -(2**63), 2**63 - 1),
        (pl.UINT64, 0, 2**64 - 1),
    ],
)
def test_floats_saturate_at_the_ends_of_an_integer_type(dtype: DataType, low: int, high: int) -> None:
    assert cast([1e30, -1e30, math.inf, -math.inf], pl.FP32, dtype) == [high, low, high, low]


def test_not_a_number_becomes_zero() -> None:
    assert cast([math.nan], pl.FP32, pl.INT32) == [0]


def test_floats_between_int64_and_uint64_are_kept() -> None:
    assert cast([2.0**63, 2.0**63 + 2.0**40], pl.FP32, pl.UINT64) == [2**63, 2**63 + 2**40]


def test_integers_wrap_into_smaller_ones() -> None:
    assert cast([300, -1, 128], pl.INT32, pl.INT8) == [44, -1, -128]


def test_integers_round_to_the_nearest_float() -> None:
    assert cast([2**24 + 1, 2**24 + 3], pl.INT32, pl.FP32) == [2**24, 2**24 + 4]


def test_floats_round_to_the_nearest_even_smaller_float() -> None:
    assert cast([1 + 2**-11, 1 + 3 * 2**-11, 70000.0], pl.FP32, pl.FP16) == [1.0, 1 + 2 * 2**-10, math.inf]


def test_large_integers_round_once_to_bfloat16() -> None:
    assert cast([2**24 + 2**16 + 1], pl.INT32, pl.BF16) == [2**24 + 2**17]


def test_bfloat16_converts_to_integers() -> None:
    assert cast(np.array([2.5, -3.5], bfloat16), pl.BF16, pl.INT16) == [3, -4]


def test_anything_but_zero_is_true() -> None:
    assert cast([0.0, -0.0, 0.25, math.nan], pl.FP32, pl.BOOL) == [False, False, True, True]


def test_truth_is_one() -> None:
    assert cast([True, False], pl.BOOL, pl.FP16) == [1.0, 0.0]


@pytest.mark.parametrize("value", ["x", "n", "t"])
def test_casting_to_the_type_a_value_has_is_the_value_itself(value: str) -> None:
    function = kernel(
        f"t = pl.load(x, [0], [4])\nsame = pl.cast({value}, pl.FP16)\nout = pl.store(t, [0], out)",
        x=tensor(pl.FP16, 4),
        n=scalar(pl.FP16),
        out=out(pl.FP16, 4),
    )
    assert "cast" not in str(function)


def test_a_kernel_can_be_generic_in_its_element_type() -> None:
    body = "t = pl.cast(pl.load(x, [0], [2]), pl.FP32) * 0.5\nout = pl.store(pl.cast(t, pl.{}), [0], out)"
    for dtype in (pl.FP32, pl.FP16, pl.INT32):
        function = kernel(body.format(dtype.symbol), x=tensor(dtype, 2), out=out(dtype, 2))
        assert run(function, np.array([2, 4], dtype.numpy)).tolist() == [1, 2]


def test_a_task_id_is_not_converted() -> None:
    with pytest.raises(DTypeMismatchError, match="task_id values cannot be converted"):
        kernel("tid = pl.system.task_invalid()\nn = pl.cast(tid, pl.INT32)")


def test_a_cast_keeps_the_valid_part() -> None:
    body = "a = pl.cast(pl.load(x, [0], [4], valid_shape=[3]), pl.FP16)"
    type_ = type_of(kernel(body, x=tensor(pl.FP32, 4)), "a")
    assert isinstance(type_, TileType) and (type_.valid, type_.dtype) == ((3,), pl.FP16)


def test_an_index_becomes_a_number_that_meets_elements() -> None:
    body = "for i in pl.range(3):\n    pl.write(out, [i], pl.cast(i, pl.FP32) * 0.5)"
    assert run(kernel(body, out=out(pl.FP32, 3))).tolist() == [0, 0.5, 1]


@pytest.mark.parametrize(("value", "result"), [(2.5, 3), (-1e30, -128), (math.nan, 0)])
def test_a_float_scalar_converts_like_an_element(value: float, result: int) -> None:
    function = kernel("pl.write(out, [0], pl.cast(v, pl.INT8))", v=scalar(pl.FP32), out=out(pl.INT8, 1))
    assert run(function, value) == [result]


def test_a_converted_scalar_is_rounded() -> None:
    function = kernel(
        "pl.write(out, [0], pl.cast(pl.cast(v, pl.FP16), pl.FP32))", v=scalar(pl.FP32), out=out(pl.FP32, 1)
    )
    assert run(function, 0.1) == [np.float16(0.1)]


def test_a_converted_constant_is_a_constant() -> None:
    function = kernel("pl.write(out, [0], pl.cast(2.5, pl.INT16))", out=out(pl.INT16, 1))
    assert "cast" not in str(function)
    assert run(function) == [3]


def test_an_integer_tensor_is_left_alone_by_its_conversion() -> None:
    x = np.array([1, 2], np.int8)
    launch(kernel("y = pl.cast(x, pl.UINT8)\npl.write(y, [0], 9)", x=tensor(pl.INT8, 2)), x)
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize(("dtype", "numbers"), [(pl.INT4, [-8, -2, 3, 7]), (pl.UINT4, [0, 9, 14, 15])], ids=str)
def test_integers_of_four_bits_are_read_from_half_a_byte(dtype: DataType, numbers: list[int]) -> None:
    body = """
    out = pl.store(pl.cast(pl.load(x, [0], [4]), pl.INT32), [0], out)
    one = pl.write(one, [0], pl.cast(pl.read(x, [1]), pl.INT32))
    """
    function = kernel(body, x=tensor(dtype, 4), out=out(pl.INT32, 4), one=out(pl.INT32, 1))
    for beside in (0x00, 0x50, 0xF0):
        halves: Array = np.frombuffer(bytes(number & 15 | beside for number in numbers), dtype.numpy)
        _, *results = Native(function).run([halves, np.zeros(4, np.int32), np.zeros(1, np.int32)])
        for (native, interpreted), want in zip(results, (numbers, numbers[1:2]), strict=True):
            assert native.tolist() == interpreted.tolist() == want


STATED: dict[str, tuple[DataType, DataType, str, list[float], list[float]]] = {
    "round takes ties away from zero": (
        pl.FP32, pl.INT32, "round", [0.5, 1.5, 2.5, -0.5, -2.5, 2.4, 0.49999997], [1, 2, 3, -1, -3, 2, 0],
    ),
    "rint takes ties to even": (pl.FP32, pl.INT32, "rint", [0.5, 1.5, 2.5, -0.5, -2.5, 2.6], [0, 2, 2, 0, -2, 3]),
    "none takes ties to even": (pl.FP16, pl.INT64, "none", [0.5, 1.5, 2.5, -0.5, -2.5, 2.6], [0, 2, 2, 0, -2, 3]),
    "floor goes down": (pl.FP32, pl.INT16, "floor", [0.5, -0.5, 2.0, -2.25], [0, -1, 2, -3]),
    "ceil goes up": (pl.BF16, pl.INT16, "ceil", [0.5, -0.5, 2.0, -2.25], [1, 0, 2, -2]),
    "trunc goes towards zero": (pl.FP32, pl.INT8, "trunc", [0.9, -0.9, 2.0, -2.25], [0, 0, 2, -2]),
    "odd takes the odd neighbour": (pl.FP32, pl.INT32, "odd", [0.5, -0.5, 2.0, 2.25, 3.75], [1, -1, 2, 3, 3]),
    "floats too large become the nearest integer": (
        pl.FP32, pl.INT8, "round", [1e3, -1e3, math.inf, -math.inf, math.nan], [127, -128, 127, -128, 0],
    ),
    "floats below zero become zero without a sign": (pl.FP32, pl.UINT8, "round", [-5.0, 255.5, 1e9], [0, 255, 255]),
    "floats become narrower floats, ties to even": (
        pl.FP32, pl.FP16, "floor",
        [2049.0, 2051.0, 65519.0, 65520.0, 1e-8, math.nan], [2048, 2052, 65504, math.inf, 0, math.nan],
    ),
    "floats keep their range in bfloat16": (pl.FP32, pl.BF16, "round", [257.0, 259.0, 3.4e38], [256, 260, math.inf]),
    "floats become wider floats as they are": (pl.FP16, pl.FP32, "round", [0.125, 65504.0], [0.125, 65504.0]),
    "integers become the nearest float, ties to even": (
        pl.INT32, pl.FP32, "floor", [2**24 + 1, 2**24 + 3, -(2**24) - 1], [2**24, 2**24 + 4, -(2**24)],
    ),
    "large integers are rounded once": (
        pl.INT64, pl.FP32, "round", [2**60 + 2**36 + 1, 2**63 - 1], [2**60 + 2**37, 2**63],
    ),
    "integers too large become infinite": (
        pl.INT32, pl.FP16, "round", [65519, 65520, -70000], [65504, math.inf, -math.inf],
    ),
    "integers keep their last bits": (pl.INT32, pl.INT8, "round", [300, -129, 128, -1], [44, 127, -128, -1]),
    "integers lose their sign": (pl.INT8, pl.UINT32, "round", [-1, -128, 5], [2**32 - 1, 2**32 - 128, 5]),
    "integers gain a sign": (pl.UINT64, pl.INT64, "round", [2**64 - 1, 2**63, 5], [-1, -(2**63), 5]),
    "everything but zero is true": (pl.FP32, pl.BOOL, "round", [0.0, -0.0, 0.25, math.nan], [0, 0, 1, 1]),
    "true is one": (pl.BOOL, pl.INT32, "round", [0, 1], [0, 1]),
}  # fmt: skip
"""What the reference page says of `pl.cast`: source, target, mode, what is given, what comes out."""


@pytest.mark.parametrize("statement", STATED)
def test_a_cast_does_what_its_page_says(statement: str) -> None:
    source, target, mode, given, expected = STATED[statement]
    count = len(given)
    body = f"""
        t = pl.load(x, [0], [{count}])
        tile = pl.store(pl.cast(t, pl.{target.symbol}, mode="{mode}"), [0], tile)
        whole = pl.assemble(whole, pl.cast(x, pl.{target.symbol}, mode="{mode}"), [0])
    """
    lines = [
        f'pl.write(each, [{at}], pl.cast(pl.read(x, [{at}]), pl.{target.symbol}, mode="{mode}"))' for at in range(count)
    ]
    outputs = {name: out(target, count) for name in ("tile", "whole", "each")}
    function = kernel(textwrap.dedent(body) + "\n".join(lines), x=tensor(source, count), **outputs)
    results = [np.zeros(count, target.numpy) for _ in outputs]
    for pair in Native(function).run([np.array(given, source.numpy), *results])[1:]:
        for found in pair:
            np.testing.assert_array_equal(found.astype(np.float64), np.array(expected, np.float64))
