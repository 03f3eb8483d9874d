"""Kernels on the GPU that choose among configurations by measuring, and schedules that settings choose."""

from __future__ import annotations

from typing import Any

import pytest

import tilewright.language as pl

torch: Any = pytest.importorskip("torch")


@pl.autotune([pl.Config(ROWS=64), pl.Config(ROWS=128)])
@pl.jit
def matmul(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor], *, ROWS: int):
    for i in pl.parallel(0, a.shape[0], ROWS):
        for j in pl.parallel(0, b.shape[1], 128):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.tile.full([ROWS, 128], dtype=pl.FP32, value=0.0)
                for k in pl.range(0, a.shape[1], 64):
                    acc = pl.matmul_acc(acc, pl.load(a, [i, k], [ROWS, 64]), pl.load(b, [k, j], [64, 128]))
                pl.store(pl.cast(acc, out.dtype, mode="rint"), [i, j], out)
    return out


def inputs(rows: int, columns: int, common: int) -> tuple[Any, Any, Any]:
    generator = torch.Generator(device="cuda").manual_seed(3)
    a, b = (
        torch.randn(shape, generator=generator, device="cuda", dtype=torch.float16)
        for shape in ((rows, common), (common, columns))
    )
    return a, b, torch.full((rows, columns), torch.nan, device="cuda", dtype=torch.float16)


def check(a: Any, b: Any, out: Any) -> None:
    want = a.double() @ b.double()
    assert ((out.double() - want).norm() / want.norm()).item() < 1e-3


def test_a_kernel_is_tuned_where_its_tensors_lie() -> None:
    given = inputs(512, 256, 256)
    matmul(*given)
    check(*given)


@pytest.mark.parametrize("sizes", [(512, 384, 200), (500, 250, 72), (130, 129, 65)], ids=str)
def test_a_product_of_any_size_is_right_whatever_loads_it(sizes: tuple[int, int, int]) -> None:
    given = inputs(*sizes)
    matmul(*given)
    check(*given)


@pytest.mark.parametrize("schedule", ["warps=4 stages=2", "specialized=0", "stages=1"])
def test_a_schedule_that_is_set_changes_no_result(schedule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CUDA_SCHEDULE", schedule)
    given = inputs(384, 256, 192)
    matmul(*given)
    check(*given)
