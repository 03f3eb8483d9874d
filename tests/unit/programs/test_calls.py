"""Calls: by position, by name, in place and returning, and by entry."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from unit.programs.programs import HALVES, SEVERAL, program_of, rows

import tilewright.language as pl
from tilewright import ir
from tilewright.core.program import Function, Program
from tilewright.ir import CompiledProgram

X = rows(4)

BOTH_WAYS = """
import tilewright.language as pl
M = pl.dynamic("M")

@pl.program
class Sums:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[M], pl.INT32], total: pl.InOut[pl.Tensor[[1], pl.INT32]],
             first: pl.Out[pl.Tensor[[M], pl.INT32]], second: pl.Out[pl.Tensor[[M * 2], pl.INT32]]):
        for i in pl.range(M):
            pl.write(total, [0], pl.read(total, [0]) + pl.read(x, [i]))
            pl.write(first, [i], pl.read(x, [i]) + 1)
            pl.write(second, [i * 2], pl.read(x, [i]) + 2)
        return first, second
"""
"""Two outputs, one of a formula's extent, and a tensor that is read and written."""


@cache
def compiled(text: str) -> CompiledProgram:
    return ir.compile(program_of(text))


def test_every_parameter_is_in_place_and_returns_nothing() -> None:
    out = np.zeros_like(X)
    assert compiled(HALVES)(X, 0, out) is None
    np.testing.assert_array_equal(out, X / 2)


def test_the_inputs_alone_return_new_outputs_of_the_callers_kind() -> None:
    of_numpy, of_torch = compiled(HALVES)(X, 0), compiled(HALVES)(torch.as_tensor(X), 0)
    assert type(of_numpy) is np.ndarray and isinstance(of_torch, torch.Tensor)
    np.testing.assert_array_equal(of_numpy, X / 2)
    assert torch.equal(of_torch, torch.as_tensor(X / 2))


def test_several_outputs_are_a_tuple_and_inout_is_always_passed() -> None:
    x, total = np.arange(3, dtype=np.int32), np.zeros(1, np.int32)
    first, second = compiled(BOTH_WAYS)(x, total)
    assert (first.tolist(), second.tolist(), total.tolist()) == ([1, 2, 3], [2, 0, 3, 0, 4, 0], [3])
    with pytest.raises(TypeError, match=r"expects 4 \(in-place\) or 2 \(return\) arguments, got 1: \(x, total, first"):
        compiled(BOTH_WAYS)(x)


@pytest.mark.parametrize(
    ("args", "named"),
    [((X, 0), {}), ((X,), {"n": 0}), ((), {"x": X, "n": 0}), ((), {"n": 0, "x": X})],
    ids=["positions", "mixed", "names", "names in another order"],
)
def test_arguments_come_by_position_or_by_name(args: tuple[Any, ...], named: dict[str, Any]) -> None:
    np.testing.assert_array_equal(compiled(HALVES)(*args, **named), X / 2)
    out = np.zeros_like(X)
    assert compiled(HALVES)(*args, **named, out=out) is None
    np.testing.assert_array_equal(out, X / 2)


@pytest.mark.parametrize(
    ("args", "named", "message"),
    [
        ((X,), {}, "expects 3 (in-place) or 2 (return) arguments, got 1: (x, n, out) or (x, n)"),
        ((X, 0, X, X), {}, "expects 3 (in-place) or 2 (return) arguments, got 4"),
        ((X, 0), {"x": X}, "got two values for `x`, by position and by name"),
        ((X,), {"x": X}, "got two values for `x`, by position and by name"),
        ((X,), {"m": 0}, "`main` has no parameter `m`; it has x, n, out"),
        ((), {"n": 0, "out": X}, "got the output `out`, but not the input `x`"),
    ],
    ids=str,
)
def test_arguments_that_do_not_add_up_are_refused(args: tuple[Any, ...], named: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        compiled(HALVES)(*args, **named)
    assert message in str(caught.value)


def test_a_program_without_outputs_names_its_one_count() -> None:
    with pytest.raises(TypeError, match=r"expects 2 arguments, got 1: \(x, by\)"):
        compiled(SEVERAL).double(np.zeros(4, np.int32))


def test_outputs_follow_the_first_tensor_whatever_kind_the_numbers_are() -> None:
    assert isinstance(compiled(HALVES)(torch.as_tensor(X), np.array(0)), torch.Tensor)
    assert isinstance(compiled(HALVES)(n=torch.tensor(0), x=X), np.ndarray)


def test_a_configuration_is_no_argument() -> None:
    np.testing.assert_array_equal(compiled(HALVES)(X, 0, config=None), X / 2)


# entries


def test_entries_are_called_by_name_and_describe_themselves() -> None:
    several, x = compiled(SEVERAL), np.arange(4, dtype=np.int32)
    assert several.entry_names == ["double", "repeat"]
    assert several["double"] is several.double and repr(several.double) == "<entry double(x, by) of Several>"
    by, same = several.double(by=3, x=x)
    assert (by, same is x, x.tolist()) == (4, True, [3, 5, 7, 9])
    assert several.repeat(x=np.arange(3, dtype=ml_dtypes.bfloat16)).tolist() == [0, 0, 0, 1, 1, 1, 2]


def test_several_entries_called_as_one_are_named() -> None:
    with pytest.raises(TypeError, match="has several entries: call one of double, repeat by name"):
        compiled(SEVERAL)(X)
    with pytest.raises(ValueError, match="program Several has several entries: double, repeat"):
        compiled(SEVERAL).param_names  # noqa: B018


def test_an_entry_there_is_not_is_answered_with_those_there_are() -> None:
    with pytest.raises(KeyError, match="has no entry 'triple'; it has double, repeat"):
        compiled(SEVERAL)["triple"]
    with pytest.raises(AttributeError, match="CompiledProgram has no attribute 'triple'"):
        compiled(SEVERAL).triple  # noqa: B018


def test_a_program_without_an_entry_says_so() -> None:
    program = Program("P", (Function("f"), Function("g")))
    with pytest.raises(ValueError, match="no Orchestration function in program P, and more than one function"):
        ir.compile(program)()


# numbers that a program was compiled for


@pl.jit
def scale(x: pl.Tensor, n: int, out: pl.Out[pl.Tensor]):  # pyright: ignore[reportUnknownParameterType]
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * n, [0, 0], out)
    return out


def test_kernels_compile_to_the_same_type_as_programs() -> None:
    program = scale.compile(X, 3)
    assert type(program) is CompiledProgram
    np.testing.assert_array_equal(program(X, 3), X * 3)
    np.testing.assert_array_equal(program(X, n=3), X * 3)


def test_a_name_that_no_parameter_has_is_named_however_many_there_are() -> None:
    x, out = np.ones((8, 64), np.float32), np.zeros((8, 64), np.float32)
    for arguments in ((x,), (x, out), (x, out, out)):
        with pytest.raises(TypeError, match="has no parameter `oot`"):
            copied(*arguments, oot=out)
        with pytest.raises(TypeError, match="`copied` has no parameter `oot`; it has x, out"):
            copied.compile(x)(*arguments, oot=out)
    assert not out.any()


@pl.jit
def copied(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape), [0, 0], out)
    return out


def test_another_number_than_it_was_compiled_for_is_refused_by_both() -> None:
    with pytest.raises(ValueError, match="`n` is 3 in this program, which was compiled for that value, got 4: call"):
        scale.compile(X, 3)(X, 4)


SCALED = """
import tilewright.language as pl

@pl.program
class Scaled:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, s: pl.Scalar[pl.FP32], x: pl.Tensor[[4], pl.FP32], out: pl.Out[pl.Tensor[[4], pl.FP32]]):
        for i in pl.range(4):
            pl.write(out, [i], pl.read(x, [i]) * s)
        return out
"""


@pytest.mark.parametrize(("known", "other"), [(0.1, 0.2), (math.nan, 0.0), (0.0, -0.0), (1.0, math.inf)])
def test_floats_are_compared_as_the_code_has_them(known: float, other: float) -> None:
    program, x = ir.compile(program_of(SCALED)), np.ones(4, np.float32)
    program.specialized["s"] = known
    np.testing.assert_array_equal(program(np.float32(known), x), np.full(4, known, np.float32))
    with pytest.raises(ValueError, match=f"`s` is {known} in this program, .* got {other:.1f}"):
        program(other, x)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e30, -0.0])
def test_scalars_that_are_no_ordinary_number_arrive(value: float) -> None:
    given = compiled(SCALED)(value, np.ones(4, np.float32))
    assert given.tobytes() == np.full(4, value, np.float32).tobytes()


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_integers_are_never_nan_or_infinite(value: float) -> None:
    with pytest.raises(TypeError, match=f"`n` is a scalar of index, which cannot hold {value}"):
        compiled(HALVES)(X, value)


def test_empty_tensors_give_empty_outputs() -> None:
    assert compiled(HALVES)(rows(0), 0).shape == (0, 64)
    assert compiled(HALVES)(torch.zeros(0, 64), 0).shape == (0, 64)
