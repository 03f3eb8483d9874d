"""Kernels inside torch's graphs: numbers, text and defaults of their parameters."""

# pyright: reportUnknownLambdaType=false, reportUnnecessaryComparison=false
from __future__ import annotations

from typing import Any, cast

import pytest
import torch as pytorch

import tilewright.language as pl
from tilewright.jit.function import JITFunction

torch = cast("Any", pytorch)
pytestmark = pytest.mark.filterwarnings("ignore")  # torch's compiler warns of its own affairs
ROWS = pl.dynamic("ROWS")


@pl.jit
def shift(x: pl.Tensor[[ROWS, 8], pl.FP32], by: int, out: pl.Out[pl.Tensor[[ROWS, 8], pl.FP32]]):
    for r in pl.parallel(0, ROWS, 4):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [r, 0], [4, 8]) + by, [r, 0], out)
    return out


@pl.jit
def several(
    x: pl.Tensor,
    factor: float = 2.0,
    more: int = -3,
    twice: bool = True,
    how: str = 'a "quoted" one',
    other: pl.Tensor = None,  # pyright: ignore[reportArgumentType]
    out: pl.Out[pl.Tensor] = None,  # pyright: ignore[reportArgumentType]
):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], x.shape) * factor + more
        if twice:
            t = t * 2.0
        if how == "plus":
            t = t + 100.0
        if other is not None:
            t = t + pl.load(other, [0, 0], x.shape)
        pl.store(t, [0, 0], out)
    return out


CALLS: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
    ((), {}),
    ((3.0,), {}),
    ((3.0, 4), {}),
    ((3.0, 4, False), {}),
    ((3.0, 4, False, "plus"), {}),
    ((3.0, 4, False, "plus", torch.full((4, 8), 5.0)), {}),
    ((), {"how": "plus"}),
    ((1.0,), {"twice": False, "other": torch.ones(4, 8)}),
]


def ones(rows: int = 4) -> Any:
    return torch.ones(rows, 8)


@pytest.mark.parametrize("dynamic", [None, True, False])
@pytest.mark.parametrize("is_operator", [False, True])
def test_numbers_that_change_are_those_of_each_call(is_operator: bool, dynamic: bool | None) -> None:
    called: Any = shift.as_torch_op("tilewright_tests::shift") if is_operator else shift
    torch._dynamo.reset()
    compiled = torch.compile(lambda x, by: called(x, by), backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for by in (2, 3, 4, -5, 0, 1, 2):
        assert torch.equal(compiled(ones(), by), ones() + by)


def test_an_exported_graph_takes_numbers_from_shapes() -> None:
    shift.as_torch_op("tilewright_tests::shift")

    class Model(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return torch.ops.tilewright_tests.shift(x, x.shape[0])

    rows = torch.export.Dim("rows", min=2, max=64)
    exported = torch.export.export(Model(), (ones(8),), dynamic_shapes={"x": {0: rows}}).module()
    for count in (4, 8, 20):
        assert torch.equal(exported(ones(count)), ones(count) + count)


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_defaults_are_those_of_the_kernel(number: int) -> None:
    args, named = CALLS[number]
    expected = several(ones(), *args, **named)
    operator: Any = several.as_torch_op("tilewright_tests::several")
    assert torch.equal(operator(ones(), *args, **named), expected)
    for called in (several, operator):
        torch._dynamo.reset()
        compiled = torch.compile(lambda x: called(x, *args, **named), backend="aot_eager", fullgraph=True)  # noqa: B023
        assert torch.equal(compiled(ones()), expected)
    out = torch.zeros(4, 8)
    torch.compile(lambda x, out: several(x, *args, out=out, **named), backend="aot_eager", fullgraph=True)(ones(), out)
    assert torch.equal(out, expected)


def test_the_operators_type_has_the_defaults() -> None:
    several.as_torch_op("tilewright_tests::several")
    schema = str(torch.ops.tilewright_tests.several.default._schema)
    assert "float factor=2., SymInt more=-3, bool twice=True, str how=" in schema and "Tensor? other=None" in schema


@pytest.mark.parametrize("is_warm", [False, True])
def test_torchs_compiler_leaves_a_compiled_program_to_python(is_warm: bool) -> None:
    program = shift.compile(ones(), 2)
    for _ in range(5 * is_warm):
        program(ones(), 2)
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: program(x + 1, 2) + 1, backend="aot_eager")
    for k in range(3):
        assert torch.equal(compiled(k * ones()), k * ones() + 4)


def test_one_graph_with_a_compiled_program_is_told_of_operators() -> None:
    program = JITFunction(shift.function).compile(ones(), 2)
    torch._dynamo.reset()
    with pytest.raises(Exception, match=r"torch's compiler cannot look into it.*as_torch_op"):
        torch.compile(lambda x: program(x, 2), backend="eager", fullgraph=True)(ones())
