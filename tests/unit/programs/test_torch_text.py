"""Torch text: what it looks like, what it needs, and what is said where there can be none."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from unit.programs.programs import HALVES, program_of

import tilewright.language as pl
from tilewright import ir
from tilewright.debug import torch_codegen, validate_pass_ir_codegen_results
from tilewright.errors import NoTorchError
from tilewright.frontend.programs import as_program

torch: Any = pytest.importorskip("torch")


def ran(program: Any, name: str, *args: Any, **options: Any) -> Any:
    scope: dict[str, Any] = {}
    exec(torch_codegen(program, **options), scope)
    return scope[name](*args)


COUNTS = pl.parse("""
@pl.program
class Counts:
    @pl.function(type=pl.FunctionType.InCore)
    def row(self, x: pl.Tensor[[8, 16], pl.FP32], i: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        total = pl.tile.full([1, 16], dtype=pl.FP32, value=0.0)
        for k in pl.range(i + 1):
            if k % 2 == 0:
                total = pl.add(total, pl.load(x, [k, 0], [1, 16]))
            else:
                total = pl.sub(total, pl.load(x, [k, 0], [1, 16]))
        out = pl.store(total, [i, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[8, 16], pl.FP32], out: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        n = 0
        while n < 8:
            out = self.row(x, n, out)
            n = n + 1
        return out
""")


def alternating(x: Any) -> Any:
    signs = torch.tensor([1.0, -1.0] * 4).unsqueeze(1)
    return torch.cumsum(x * signs, 0)


def test_functions_go_by_their_names_and_write_in_place() -> None:
    x, out = torch.randn(8, 16), torch.zeros(8, 16)
    assert ran(COUNTS, "main", x, out) is out
    torch.testing.assert_close(out, alternating(x))
    ran(COUNTS, "row", x, 2, out.zero_())
    torch.testing.assert_close(out[2], alternating(x)[2])
    assert not out[3].any()


def test_a_lowered_program_computes_the_same() -> None:
    x, out = torch.randn(8, 16), torch.zeros(8, 16)
    ran(ir.PassManager.get_strategy().run_passes(COUNTS), "main", x, out, check_shapes=True)
    torch.testing.assert_close(out, alternating(x))


def test_a_single_function_will_do() -> None:
    @pl.function
    def double(x: pl.Tensor[[4, 8], pl.BF16], out: pl.Out[pl.Tensor[[4, 8], pl.BF16]]):
        return pl.store(pl.mul(pl.load(x, [0, 0], [4, 8]), 2.0), [0, 0], out)

    x, out = torch.randn(4, 8).bfloat16(), torch.zeros(4, 8, dtype=torch.bfloat16)
    ran(double, "double", x, out)
    assert torch.equal(out, 2 * x)


def test_a_window_is_read_before_the_window_that_it_overlaps_is_written() -> None:
    @pl.function
    def move(x: pl.InOut[pl.Tensor[[8, 8], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            x[2:4, 1:3] = pl.transpose(x[1:3, 1:3], 0, 1)
            x[1:8, :] = x[0:7, :]
        return x

    x = torch.arange(64.0).reshape(8, 8)
    expected = x.clone()
    expected[2:4, 1:3] = x[1:3, 1:3].T
    expected[1:] = expected[:-1].clone()
    for program in (move, ir.PassManager.get_strategy().run_passes(as_program(move))):
        found = x.clone()
        ran(program, "move", found)
        assert torch.equal(found, expected)


def test_rows_and_elements_are_put_where_indices_say_the_last_one_last() -> None:
    @pl.function
    def moved(
        x: pl.Tensor[[8, 8], pl.UINT16],
        at: pl.Tensor[[1, 6], pl.INT32],
        rows: pl.InOut[pl.Tensor[[8, 8], pl.UINT16]],
        ones: pl.InOut[pl.Tensor[[8, 8], pl.UINT16]],
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            index = pl.load(at, [0, 0], [1, 6])
            some = pl.load(at, [0, 0], [1, 8], clamp=True)
            pl.put(rows, index, pl.load(x, [0, 0], [6, 8]))
            pl.put(rows, some, 7, mask=some > 5)
            pl.put(ones, some * 3, pl.take(x, some + 8, mask=some < 5, pad=99, axis=None), axis=None)
        return rows, ones

    x = torch.arange(64).reshape(8, 8).to(torch.uint16)
    at = torch.tensor([[5, 1, 5, 2, 6, 1]], dtype=torch.int32)
    rows, ones = torch.zeros_like(x), torch.zeros_like(x)
    ran(moved, "moved", x, at, rows, ones, check_shapes=True)
    expected = torch.zeros(8, 8, dtype=torch.int64)
    expected[[1, 2, 5]], expected[6] = x.long()[[5, 3, 2]], 7
    assert torch.equal(rows.long(), expected)
    assert ones.long().flatten().nonzero().flatten().tolist() == [3, 6, 15, 18]
    assert ones.long().flatten()[[3, 6, 15, 18]].tolist() == [9, 10, 99, 99]


def test_the_text_needs_torch_alone() -> None:
    tree = ast.parse(torch_codegen(COUNTS))
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert imported <= {"torch", "math"} and not any(isinstance(node, ast.ImportFrom) for node in ast.walk(tree))


def test_only_what_is_used_is_defined() -> None:
    text = torch_codegen(COUNTS)
    assert "def _load(" in text and "def _matmul(" not in text


def test_anything_but_a_program_is_refused() -> None:
    wrong: Any = "program"
    with pytest.raises(TypeError, match="takes a Program or a Function, got str"):
        torch_codegen(wrong)


def test_what_torch_has_not_is_named() -> None:
    @pl.function
    def add(x: pl.Tensor[[4, 8], pl.UINT64], out: pl.Out[pl.Tensor[[4, 8], pl.UINT64]]):
        tile = pl.load(x, [0, 0], [4, 8])
        return pl.store(pl.add(tile, tile), [0, 0], out)

    with pytest.raises(NoTorchError, match="torch_codegen has no torch for `tile.add` of uint64"):
        torch_codegen(add)


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    ir.compile(program_of(HALVES), output_dir=tmp_path, dump_passes=True)
    return tmp_path


def test_dumped_passes_are_validated_by_torch(dumps: Path) -> None:
    x, out = torch.randn(16, 64), torch.zeros(16, 64)
    done = validate_pass_ir_codegen_results(dumps, [x, 0, out], x / 2)
    assert done[0] == "frontend" and "ConvertToSSA" in done and not out.any()
    assert validate_pass_ir_codegen_results(dumps, {"x": x, "n": 0, "out": out}, {"out": x / 2}) == done
    assert validate_pass_ir_codegen_results(dumps / "passes_dump" / "00_frontend.py", [x, 0, out], [x / 2]) == [
        "frontend"
    ]
    skipped = (x / 2).clone()
    skipped[0] = float("nan")
    assert validate_pass_ir_codegen_results(dumps, [x, 0, out], skipped) == done


WRONG: dict[str, tuple[Callable[[Any, Any], tuple[Any, Any]], type[Exception], str]] = {
    "another answer": (lambda x, out: ([x, 0, out], x), AssertionError, "frontend changed the answer"),
    "no arguments": (lambda x, out: (3, x), TypeError, "tensors are a list or a dict"),
    "too few arguments": (lambda x, out: ([x], x), ValueError, "`main` takes x, n, out, got 1 arguments"),
    "text as an argument": (lambda x, out: ([x, "0", out], x), TypeError, "takes tensors and numbers, got str"),
    "an unknown output": (lambda x, out: ([x, 0, out], {"y": x}), ValueError, "does not give y; it gives out"),
    "two outputs": (lambda x, out: ([x, 0, out], [x, x]), ValueError, "2 outputs are expected"),
    "a run that fails": (lambda x, out: ([x, 1, out], x), RuntimeError, "after frontend does not run"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_with_a_validation_is_said(name: str, dumps: Path) -> None:
    given, error, message = WRONG[name]
    tensors, expected = given(torch.ones(16, 64), torch.zeros(16, 64))
    with pytest.raises(error, match=message):
        validate_pass_ir_codegen_results(dumps, tensors, expected)


def test_a_place_without_dumps_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no pass dump at"):
        validate_pass_ir_codegen_results(tmp_path / "nowhere", [], [])
    with pytest.raises(ValueError, match="there is no pass dump in"):
        validate_pass_ir_codegen_results(tmp_path, [], [])
