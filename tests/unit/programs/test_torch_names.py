"""Operators of torch and their names: whose they are, and what becomes of those who had one before."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch as pytorch
from unit.programs.programs import HALVES, program_of

import tilewright.language as pl
from tilewright import ir

torch = cast("Any", pytorch)


@pl.jit
def times(x: pl.Tensor, factor: float, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * factor, [0, 0], out)
    return out


@pl.jit
def fifty(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], x.shape) * 50.0, [0, 0], out)
    return out


ONES = torch.ones(8, 16)


def test_an_operator_whose_name_was_given_away_is_the_newest() -> None:
    """Many, since memory that was freed by mistake is only sometimes overwritten."""
    held: list[tuple[Any, Any]] = []
    for k in range(30):
        made: Any = times.as_torch_op(f"tilewright_tests::given_{k}")
        assert torch.equal(made(ONES, 2.0), 2 * ONES)
        held.append((made, getattr(torch.ops.tilewright_tests, f"given_{k}").default))
    for k in range(30):
        fifty.as_torch_op(f"tilewright_tests::given_{k}")
    for old, overload in held:
        for each in (old, overload):
            assert torch.equal(each(ONES), 50 * ONES)
            with pytest.raises(RuntimeError, match="expected at most 1 argument"):
                each(ONES, 2.0)


@pytest.mark.parametrize("name", ["aten::add", "aten::relu", "aten::mine", "prims::add", "prim::mine", "torch::mine"])
def test_names_of_torchs_own_operators_are_refused(name: str) -> None:
    for holder in (fifty, ir.compile(program_of(HALVES))):
        with pytest.raises(ValueError, match=r"the operators of '\w+' are torch's own.*choose another namespace"):
            holder.as_torch_op(name)
    assert torch.equal(ONES + ONES, 2 * ONES) and torch.equal(torch.ops.aten.add(ONES, ONES), 2 * ONES)


def test_the_name_of_an_operator_that_somebody_else_made_is_refused() -> None:
    def identity(x: Any) -> Any:
        return x.clone()

    theirs: Any = torch.library.custom_op(
        "tilewright_tests::theirs", identity, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    with pytest.raises(ValueError, match="torch has an operator 'tilewright_tests::theirs' already"):
        fifty.as_torch_op("tilewright_tests::theirs")
    assert torch.equal(theirs(ONES), ONES)
