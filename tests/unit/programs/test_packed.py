"""Packed tensors are held to what all tensors are: memory of their own, all of it, before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, cast

import pytest
import torch as pytorch
from unit.programs.programs import program_of

from tilewright import ir
from tilewright.dtypes import TORCH_PACKED
from tilewright.ir import CompiledProgram

torch = cast("Any", pytorch)

TEXT = """
import tilewright.language as pl
M = pl.dynamic("M")

@pl.program
class Both:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[M, 8], pl.FP4], y: pl.Tensor[[M, 8], pl.FP4],
             a: pl.Out[pl.Tensor[[M, 8], pl.FP4]], b: pl.Out[pl.Tensor[[M, 8], pl.FP4]]):
        for r in pl.range(M):
            pl.store(pl.load(x, [r, 0], [1, 8]), [r, 0], a)
            pl.store(pl.load(y, [r, 0], [1, 8]), [r, 0], b)
        return a, b
"""
PACKED = list(TORCH_PACKED)


@cache
def program(platform: str) -> CompiledProgram:
    return ir.compile(program_of(TEXT), platform=platform)


@pytest.fixture(params=["cpu", "interpret"])
def compiled(request: pytest.FixtureRequest) -> CompiledProgram:
    return program(request.param)


def number(start: int, rows: int = 4) -> Any:
    return (torch.arange(rows * 4) + start).to(torch.uint8).reshape(rows, 4)


def shrunk(given: Any, size: int = 4) -> Any:
    given.untyped_storage().resize_(size)
    return given


View = Callable[[Any], Any]
WRONG: dict[str, tuple[Callable[[View, Any, Any], list[Any]], str]] = {
    "one output twice": (lambda v, x, a: [v(x), v(x), v(a[:4]), v(a[:4])], "`a` is written and shares memory"),
    "outputs that meet": (lambda v, x, a: [v(x), v(x), v(a[:4]), v(a[2:6])], "`a` is written and shares memory"),
    "an output that is the input": (lambda v, x, a: [v(x), v(x), v(x), v(a[:4])], "`a` is written and shares"),
    "an output between the input": (
        lambda v, x, a: [v(a[::2]), v(x), v(x.clone()), v(a[2:6])],
        "`b` is written and shares memory with `x`",
    ),
    "an expanded output": (lambda v, x, a: [v(x), v(x), v(a[:4]), v(a[4:5]).expand(4, 4)], "`b` is written, but sev"),
    "a shrunk input": (lambda v, x, a: [shrunk(v(number(0))), v(x), v(a[:4]), v(a[4:])], "`x` has no memory"),
    "a shrunk output": (lambda v, x, a: [v(x), v(x), v(a[:4]), shrunk(v(number(0)))], "`b` has no memory"),
    "a freed output": (lambda v, x, a: [v(x), v(x), v(a[:4]), shrunk(v(number(0)), 0)], "`b` has no memory"),
    "meta": (lambda v, x, a: [v(x), v(x.to("meta")), v(a[:4]), v(a[4:])], "`y` is on device meta, where tensors have"),
    "an output on meta": (lambda v, x, a: [v(x), v(x), v(a[:4]), v(a[4:].to("meta"))], "`b` is on device meta"),
}


@pytest.mark.parametrize("name", PACKED)
@pytest.mark.parametrize("case", WRONG)
def test_a_packed_tensor_is_refused_as_another_would_be(case: str, name: str, compiled: CompiledProgram) -> None:
    given, message = WRONG[case]
    x, outputs = number(0), torch.full((8, 4), 77, dtype=torch.uint8)
    for _ in range(3):
        with pytest.raises(ValueError) as caught:
            compiled(*given(lambda t: t.view(getattr(torch, name)), x, outputs))
        assert str(caught.value).startswith(message)
    assert torch.equal(x, number(0)) and (outputs == 77).all()


@pytest.mark.parametrize("rows", [0, 1, 4])
@pytest.mark.parametrize("name", PACKED)
def test_parts_that_do_not_meet_are_written(name: str, rows: int, compiled: CompiledProgram) -> None:
    dtype, memory = getattr(torch, name), torch.zeros(8, 8, dtype=torch.uint8)
    a, b = memory[:rows, ::2], memory[4 : 4 + rows, 1::2]
    compiled(number(0, rows).view(dtype), number(100, rows).view(dtype), a.view(dtype), b.view(dtype))
    assert torch.equal(a, number(0, rows)) and torch.equal(b, number(100, rows))
    first, second = compiled(number(0, rows).view(dtype), number(100, rows).view(dtype))
    assert torch.equal(first.view(torch.uint8), a) and torch.equal(second.view(torch.uint8), b)
