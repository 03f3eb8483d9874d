"""What the host's functions do to tensors of the GPU: single elements, copies, numbers everywhere, results it makes."""

from __future__ import annotations

from typing import Any

import pytest

import tilewright.language as pl
from tilewright.errors import ExecutionError
from tilewright.runtime import RunConfig

torch: Any = pytest.importorskip("torch")


@pl.jit
def steered(x: pl.Tensor, at: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor], sums: pl.Out[pl.Tensor[[4], pl.FP64]]):
    """What the host reads decides what is launched; a launch before is done when it reads."""
    partial = pl.create_tensor([16, 64], dtype=pl.FP32, init_value=2.5)
    for row in pl.parallel(0, 16, 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [8, 64]) * 2.0, [row, 0], out)
    gain = pl.read(out, [at, 1])
    pl.write(partial, [1, 1], gain + 1.0)
    for place in pl.range(4):
        pl.write(sums, [place], pl.cast(place, pl.FP64) + 0.5)
    if gain > 0.0:
        for row in pl.parallel(0, 16, 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                pl.store(pl.load(out, [row, 0], [8, 64]) + pl.load(partial, [row, 0], [8, 64]), [row, 0], out)
    return out, sums


def test_the_host_reads_and_writes_elements_between_launches() -> None:
    for seed in range(4):
        x = torch.randn(16, 64, generator=torch.Generator().manual_seed(seed))
        for ours, theirs in zip(steered(x.cuda(), 3), steered(x, 3), strict=True):
            assert torch.equal(ours.cpu(), theirs)


def test_an_element_outside_its_tensor_is_raised_at_once() -> None:
    x = torch.zeros(16, 64, device="cuda")
    program = steered.compile(x, at=pl.RUNTIME)
    with pytest.raises(ExecutionError, match="an index lies outside its tensor"):
        program(x, 16)


@pl.jit
def doubled(x: pl.Tensor):
    y = pl.create_tensor([16, 64], dtype=pl.BF16)
    for row in pl.parallel(0, 16, 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.cast(pl.load(x, [row, 0], [8, 64]) * 2.0, pl.BF16), [row, 0], y)
    return y


def test_a_program_returns_a_tensor_that_it_makes() -> None:
    x = torch.randn(16, 64, generator=torch.Generator().manual_seed(1)).cuda()
    made = [doubled(x + n) for n in range(5)]
    assert all(torch.equal(each, ((x + n) * 2).bfloat16()) and each.is_cuda for n, each in enumerate(made))


@pl.jit
def pasted(x: pl.Tensor, out: pl.Out[pl.Tensor[[3, 16, 64], pl.FP32]]):
    for plane in pl.range(3):
        out[plane : plane + 1, :, :] = x
    return out


def test_tensors_are_copied_into_others() -> None:
    x = torch.randn(64, 16, generator=torch.Generator().manual_seed(1)).T
    assert torch.equal(pasted(x.cuda()).cpu(), x.expand(3, 16, 64))


@pl.jit
def shown(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, 16, 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [row, 0], [8, 64]) + 1.0, [row, 0], out)
    pl.print("found ", pl.read(out, [0, 0]))
    pl.print(out)
    return out


def test_the_host_prints_elements(capfd: pytest.CaptureFixture[str]) -> None:
    x = torch.arange(1024.0).reshape(16, 64)
    shown(x)
    wanted = capfd.readouterr().out
    shown(x.cuda())
    assert capfd.readouterr().out == wanted and wanted.startswith("found  1\n")


@pl.jit
def shown_inside(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for row in pl.parallel(0, x.shape[0], 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [row, 0], [8, 64])
            pl.print("row", row, t, pl.row_sum(t) > 3.0)
            if row == 8:
                pl.print(x, pl.cast(t, pl.INT8), pl.cast(t, pl.BF16), pl.read(t, [1, 2]))
            pl.store(t + 1.0, [row, 0], out)
    pl.print("done")
    return out


def test_kernels_print_in_the_order_of_their_turns(capfd: pytest.CaptureFixture[str]) -> None:
    x = torch.arange(4096.0).reshape(64, 64) / 7
    shown_inside(x, config=RunConfig(platform="interpret"))
    wanted = capfd.readouterr().out
    for _ in range(3):
        assert torch.equal(shown_inside(x.cuda()).cpu(), x + 1)
        assert capfd.readouterr().out == wanted
    there, out, graph = x.cuda(), torch.empty(64, 64, device="cuda"), torch.cuda.CUDAGraph()
    with pytest.raises(ExecutionError, match="cannot while a CUDA graph is captured"), torch.cuda.graph(graph):
        shown_inside(there, out)
