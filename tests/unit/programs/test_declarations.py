"""Declarations: entries survive being plain data."""

from __future__ import annotations

import json
from typing import Any

import pytest
from unit.programs.programs import HALVES, SEVERAL, UNDECLARED, program_of

from tilewright.core.enums import ParamDirection
from tilewright.core.expr import Symbol, Var
from tilewright.core.program import Function, Program
from tilewright.core.types import Extent, ScalarType, TileType, tensor
from tilewright.dtypes import ALL, FP32, DataType
from tilewright.errors import UnsupportedFeatureError
from tilewright.frontend.outputs import returned_parameters
from tilewright.passes.manager import PassManager
from tilewright.programs.declarations import plain_entries, read_entries


def there_and_back(program: Program) -> Program:
    return read_entries(program.name, json.loads(json.dumps(plain_entries(program))))


def facts(function: Function) -> list[Any]:
    params = [(p.name_hint, p.type, p.bounds) for p in function.params]
    given_back = returned_parameters(function) if function.body else None
    return [function.name, function.func_type, params, function.param_directions, function.return_types, given_back]


@pytest.mark.parametrize("text", [HALVES, SEVERAL])
def test_entries_come_back_as_they_were(text: str) -> None:
    program = program_of(text)
    assert [facts(f) for f in there_and_back(program).entries] == [facts(f) for f in program.entries]


@pytest.mark.parametrize("text", [HALVES, SEVERAL])
def test_what_entries_declare_survives_the_passes(text: str) -> None:
    program = program_of(text)
    lowered = PassManager.get_strategy().run_passes(program)
    assert [facts(lowered[f.name])[2:] for f in program.entries] == [facts(f)[2:] for f in program.entries]


def test_what_an_entry_writes_undeclared_is_declared() -> None:
    (entry,) = there_and_back(program_of(UNDECLARED)).entries
    assert entry.param_directions == (ParamDirection.InOut, ParamDirection.In)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_every_scalar_type_comes_back(dtype: DataType) -> None:
    (back,) = there_and_back(Program("P", (Function("f", (Var("n", ScalarType(dtype)),)),))).function_list
    assert back.params[0].type == ScalarType(dtype)


@pytest.mark.parametrize("extent", [0, 1 << 40, Symbol("M"), None], ids=str)
def test_every_kind_of_extent_comes_back(extent: Extent) -> None:
    type_ = tensor([extent, 4], FP32, [extent, 2])
    (back,) = there_and_back(Program("P", (Function("f", return_types=(type_,)),))).function_list
    assert back.return_types == (type_,)


def test_what_no_caller_can_have_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="cannot take or return tile"):
        plain_entries(Program("P", (Function("f", (Var("t", TileType((4, 4), FP32, (4, 4))),)),)))
