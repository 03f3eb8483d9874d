"""Tensors on their side, as `w.T`, and in steps, as `x[:, ::2]`: taken as they lie, and with every result the same."""

# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
from tilewright import ir
from tilewright.errors import ExportError
from tilewright.frontend.turned_parameters import stepped
from tilewright.runtime import RunConfig

torch: Any = pytest.importorskip("torch")

CORE = pl.Level.CORE_GROUP
M, N = pl.dynamic("M"), pl.dynamic("N")


@pl.jit
def product(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, a.shape[0], 16):
        for c in pl.parallel(0, b.shape[1], 32):
            with pl.at(level=CORE):
                acc = pl.zeros([16, 32])
                for k in range(0, a.shape[1], 16):
                    acc += pl.load(a, [r, k], [16, 16]) @ pl.load(b, [k, c], [16, 32])
                pl.store(acc, [r, c], out)
    return out


@pl.jit
def increased(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 16):
        for c in pl.parallel(0, x.shape[1], 16):
            with pl.at(level=CORE):
                out = pl.store(pl.load(x, [r, c], [16, 16]) + 1.0, [r, c], out)
    return out


@pl.jit
def dynamic(x: pl.Tensor[[M, N], pl.FP32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
    for r in pl.parallel(0, M, 16):
        with pl.at(level=CORE):
            pl.store(pl.load(x, [r, 0], [16, 64], valid_shape=[16, N]) + 1.0, [r, 0], out)
    return out


@pl.jit
def in_place(x: pl.InOut[pl.Tensor]):
    for r in pl.parallel(0, x.shape[0], 8):
        with pl.at(level=CORE):
            pl.store(pl.load(x, [r, 0], [8, x.shape[1]]) + 1.0, [r, 0], x)
    pl.write(x, [0, 1], pl.read(x, [0, 1]) + 1.0)


@pl.jit
def flattened(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    flat = pl.reshape(x, [1, x.shape[0] * x.shape[1]])
    with pl.at(level=CORE):
        pl.store(pl.load(flat, [0, 0], [1, x.shape[0] * x.shape[1]]) + 1.0, [0, 0], out)
    return out


def matrix(rows: int, columns: int) -> Any:
    return torch.arange(rows * columns, dtype=torch.float32).reshape(rows, columns) % 7 - 3


def ways(x: Any) -> list[Any]:
    """Return a matrix as it lies usually, on its side, alone and as part of a larger one, and in steps."""
    wide = torch.full((x.shape[1], x.shape[0] + 3), -7.0)
    wide[:, : x.shape[0]] = x.T
    return [x, x.T.contiguous().T, wide[:, : x.shape[0]].T, in_steps(x, 2)]


def in_steps(x: Any, step: int) -> Any:
    """Return a matrix whose neighbours along the last axis lie so many elements apart."""
    wide = torch.full((*x.shape[:-1], x.shape[-1] * step), -7.0)
    wide[..., ::step] = x
    return wide[..., ::step]


@pytest.mark.parametrize("shape", [(16, 48, 32), (33, 17, 40), (1, 64, 64), (2, 2, 2)], ids=str)
def test_products_of_tensors_that_lie_in_any_way(shape: tuple[int, int, int]) -> None:
    m, k, n = shape
    expected = matrix(m, k) @ matrix(k, n)
    for a in ways(matrix(m, k)):
        for b in ways(matrix(k, n)):
            for out in ways(torch.zeros(m, n)):
                for _ in range(3):
                    out.zero_()
                    product(a, b, out)
                    assert torch.equal(out, expected)


@pytest.mark.parametrize("kernel", [increased, dynamic], ids=lambda kernel: kernel.name)
@pytest.mark.parametrize("shape", [(32, 48), (19, 33), (1, 5), (5, 1), (2, 3)], ids=str)
def test_elements_of_tensors_that_lie_in_any_way(kernel: Callable[..., Any], shape: tuple[int, int]) -> None:
    x = matrix(*shape)
    for given in ways(x):
        for out in ways(torch.zeros(*shape)):
            for _ in range(3):
                out.zero_()
                kernel(given, out)
                assert torch.equal(out, x + 1)
            assert torch.equal(kernel(given), x + 1)
    array = np.asfortranarray(x.numpy())
    assert np.array_equal(kernel(array), array + 1)


def test_a_tensor_on_its_side_is_written_in_place_and_its_neighbours_are_not() -> None:
    wide = torch.zeros(6, 12)
    for _ in range(3):
        in_place(wide[:, 2:10].T)
    expected = torch.zeros(6, 12)
    expected[:, 2:10] = 3
    expected[1, 2] += 3
    assert torch.equal(wide, expected)


def test_batches_of_matrices_on_their_side() -> None:
    @pl.jit
    def batched(x: pl.Tensor, out: pl.Out[pl.Tensor]):
        for b in pl.parallel(x.shape[0]):
            with pl.at(level=CORE):
                t = pl.load(x, [b, 0, 0], [1, x.shape[1], x.shape[2]])
                pl.store(t * 2.0, [b, 0, 0], out)
        return out

    x = torch.arange(3 * 5 * 7.0).reshape(3, 5, 7)
    for _ in range(3):
        assert torch.equal(batched(x.mT), x.mT * 2)


def test_calls_with_tensors_on_their_side_become_warm() -> None:
    x, out = matrix(40, 24), torch.zeros(40, 24)
    increased(x.T, out.T)
    increased(x.T, out.T)
    before = increased.call_info().direct
    increased(x.T, out.T)
    assert increased.call_info().direct == before + 1


def test_what_needs_adjacent_rows_is_given_a_copy() -> None:
    x = matrix(6, 5)
    for _ in range(3):
        out = torch.zeros(1, 30)
        flattened(x.T, out)
        assert torch.equal(out, x.T.reshape(1, 30) + 1)


@pytest.mark.parametrize("lying", [lambda x: x.T, lambda x: in_steps(x, 2), lambda x: in_steps(x.T, 3)])
def test_the_interpreter_too_is_given_a_copy_of_what_needs_adjacent_elements(lying: Callable[[Any], Any]) -> None:
    x, out = lying(matrix(6, 5)), torch.zeros(1, 30)
    flattened(x, out, config=RunConfig(platform="interpret"))
    assert torch.equal(out, x.reshape(1, 30) + 1)


def test_a_square_is_not_confused_with_its_transpose() -> None:
    x = matrix(16, 16)
    for given in (x, x.T, x, x.T):
        assert torch.equal(increased(given), given + 1)


@pytest.mark.parametrize("step", [2, 3, 5, 8, 9])
@pytest.mark.parametrize("shape", [(19, 33), (16, 64), (5, 1), (1, 2)], ids=str)
def test_elements_of_tensors_in_steps(shape: tuple[int, int], step: int) -> None:
    x = matrix(*shape)
    given, wide = in_steps(x, step), torch.full((shape[0], shape[1] * step), -7.0)
    for _ in range(4):
        out = wide[:, 1::step]
        out.zero_()
        increased(given, out)
        assert torch.equal(out, x + 1)
        assert torch.equal(increased(given), x + 1)
    wide[:, 1::step] = -7.0
    assert torch.equal(wide, torch.full_like(wide, -7.0)), "what lies between is nobody's to write"


def test_calls_with_tensors_in_steps_become_warm() -> None:
    x, out = in_steps(matrix(40, 24), 3), in_steps(torch.zeros(40, 24), 2)
    increased(x, out)
    increased(x, out)
    before = increased.call_info().direct
    increased(x, out)
    assert increased.call_info().direct == before + 1
    assert torch.equal(out, x + 1)


def test_a_step_is_not_confused_with_another() -> None:
    x = matrix(16, 16)
    for step in (1, 2, 3, 2, 1, 9, 3):
        assert torch.equal(increased(in_steps(x, step)), x + 1)


def test_an_output_between_the_elements_of_an_input() -> None:
    wide = torch.arange(512.0).reshape(16, 32)
    expected = wide[:, ::2] + 1
    for _ in range(3):
        increased(wide[:, ::2], wide[:, 1::2])
        assert torch.equal(wide[:, 1::2], expected) and torch.equal(wide[:, ::2], expected - 1)


def test_what_needs_adjacent_elements_is_given_a_copy() -> None:
    x = matrix(6, 5)
    for _ in range(3):
        out = torch.zeros(1, 30)
        flattened(in_steps(x, 2), out)
        assert torch.equal(out, x.reshape(1, 30) + 1)


@pl.jit
def many_axes(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        pl.store(pl.load(x, [0] * 8, [*[1] * 6, 4, 8]) + 1.0, [0] * 8, out)


def test_eight_axes_lie_as_they_do() -> None:
    x = np.arange(32, dtype=np.float32).reshape(1, 1, 1, 1, 1, 1, 4, 8)
    lying = np.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2)
    for _ in range(4):
        for given in (x, lying):
            out = np.zeros_like(x)
            many_axes(given, out)
            assert np.array_equal(out, x + 1)


def test_a_program_that_is_made_for_steps_takes_copies_of_what_lies_otherwise(tmp_path: Path) -> None:
    @pl.program
    class Doubled:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.InOut[pl.Tensor[[16, 8], pl.FP32]]):
            with pl.at(level=CORE):
                pl.store(pl.load(x, [0, 0], [16, 8]) * 2.0, [0, 0], x)

    program = ir.compile(stepped(Doubled, "main", {"x": 2}), platform="cpu")
    for lying in (lambda x: x.clone(), lambda x: in_steps(x, 2), lambda x: in_steps(x, 3), lambda x: x.T.clone().T):
        for _ in range(4):
            x = lying(matrix(16, 8))
            program(x)
            assert torch.equal(x, matrix(16, 8) * 2)
    with pytest.raises(ExportError, match="`main` is made for tensors with gaps"):
        program.export_c(tmp_path / "c")
