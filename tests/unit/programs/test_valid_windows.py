"""Windows of which a part is valid: an all-reduce changes that part, whoever says how much it is and when."""
# annotations are evaluated: they name what encloses the functions

from typing import Any

import numpy as np
import pytest

import tilewright.language as pl
import tilewright.language.distributed as pld
from tilewright import ir
from tilewright.core.program import Program
from tilewright.errors import ControlPlaneComputeError, ExecutionError, ShapeMismatchError
from tilewright.ir.distributed_compiled_program import DistributedConfig
from tilewright.runtime import RunConfig

RANKS = 3


def reducing(shape: tuple[int, ...], dtype: pl.DataType, mode: str) -> tuple[pl.JITFunction, pl.JITFunction]:
    """Return host functions that all-reduce some rows and columns of windows, and what a kernel does so in."""
    tensors, size, start = [RANKS, *shape], [*shape], [0] * len(shape)
    steps = 2 * (RANKS - 1) + 1

    @pl.jit
    def publish(
        x: pl.Tensor[size, dtype],
        w: pl.InOut[pld.DistributedTensor[size, dtype]],
        s: pl.InOut[pld.DistributedTensor[[steps, RANKS], pl.INT32]],
        rows: pl.Scalar[pl.INT32],
        columns: pl.Scalar[pl.INT32],
        is_kernel: bool,
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, start, size), start, w)
            if is_kernel:
                pld.tensor.allreduce(pl.set_validshape(w, rows, columns), s, mode=mode)

    @pl.jit
    def consume(w: pld.DistributedTensor[size, dtype], y: pl.Out[pl.Tensor[size, dtype]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.store(pl.load(w, start, size), start, y)
        return y

    def host(is_kernel: bool) -> pl.JITFunction:
        @pl.jit.host
        def reduce(x: pl.Tensor[tensors, dtype], told: pl.Tensor[[2], pl.INT32], y: pl.Out[pl.Tensor[tensors, dtype]]):
            data = pld.alloc_window_buffer(size, dtype=dtype)
            cells = pld.alloc_window_buffer([steps, RANKS], dtype=pl.INT32)
            w, s = pld.window(data, size, dtype=dtype), pld.window(cells, [steps, RANKS], dtype=pl.INT32)
            rows, columns = pl.read(told, [0]), pl.read(told, [1])
            for r in pl.range(RANKS):
                publish(x[r], w, s, rows, columns, is_kernel, device=r)
            if not is_kernel:
                pld.tensor.allreduce(pl.set_validshape(w, rows, columns), s, mode=mode)
            for r in pl.range(RANKS):
                consume(w, y[r], device=r)
            return y

        return reduce

    return host(False), host(True)


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
@pytest.mark.parametrize(
    ("shape", "dtype", "mode", "parts"),
    [
        ((6, 40), pl.FP32, "mesh", [(6, 40), (3, 7), (1, 1), (0, 5), (6, 0)]),
        ((6, 40), pl.FP32, "ring", [(6, 40), (3, 7), (1, 1), (0, 5), (6, 0)]),
        ((2, 3, 5), pl.FP16, "mesh", [(2, 4), (3, 1)]),
        ((2, 9000), pl.FP32, "mesh", [(2, 8999), (1, 4097)]),
        ((2, 5000), pl.FP32, "ring", [(2, 4999), (1, 1025)]),
    ],
    ids=["mesh", "ring", "three axes", "wide", "wide around"],
)
def test_a_part_is_reduced_and_the_rest_is_as_it_was(
    platform: str, shape: tuple[int, ...], dtype: pl.DataType, mode: str, parts: list[tuple[int, int]]
) -> None:
    config = RunConfig(platform=platform, device_ids=range(RANKS))
    x: Any = np.random.default_rng(0).integers(-3, 4, (RANKS, *shape)).astype(dtype.numpy)
    for host in reducing(shape, dtype, mode):
        for rows, columns in parts:
            y, wanted = np.zeros_like(x), x.copy()
            host(x, np.array([rows, columns], np.int32), y, config=config)
            wanted[..., :rows, :columns] = x.sum(0)[..., :rows, :columns]
            assert np.array_equal(y, wanted), (rows, columns)


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_more_than_a_window_has_cannot_be_valid(platform: str) -> None:
    x, told, y = np.ones((RANKS, 6, 40), np.float32), np.array([7, 3], np.int32), np.zeros((RANKS, 6, 40), np.float32)
    for host in reducing((6, 40), pl.FP32, "mesh"):
        with pytest.raises(ExecutionError, match=r"valid part .*does not fit"):
            host(x, told, y, config=RunConfig(platform=platform, device_ids=range(RANKS)))


TEXT = """
import tilewright.language.distributed as pld
X, S = pl.Tensor[[6, 40], pl.FP32], pld.DistributedTensor[[3, 1], pl.INT32]
W = pld.DistributedTensor[[6, 40], pl.FP32]
V = pld.DistributedTensor[[6, 40], pl.FP32, pl.TensorView(valid_shape=[2, 3])]

@pl.program
class Ranks:
    @pl.function(type=pl.FunctionType.InCore)
    def fill(self, x: X, w: pl.InOut[W]):
        pl.store(pl.load(x, [0, 0], [6, 40]), [0, 0], w)

    @pl.function(type=pl.FunctionType.InCore)
    def reduce(self, w: pl.InOut[V], s: pl.InOut[S]):
        pld.tensor.allreduce(w, s)

    @pl.function(type=pl.FunctionType.InCore)
    def take(self, w: W, y: pl.Out[X]):
        pl.store(pl.load(w, [0, 0], [6, 40]), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(self, x: X, y: pl.Out[X], w: pl.InOut[W], s: pl.InOut[S]):
        {chip}self.fill(x, w)
        self.reduce(w, s)
        self.take(w, y)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def main(self, x: pl.Tensor[[3, 6, 40], pl.FP32], y: pl.Out[pl.Tensor[[3, 6, 40], pl.FP32]]):
        rows = pld.alloc_window_buffer([6, 40], dtype=pl.FP32)
        cells = pld.alloc_window_buffer([3, 1], dtype=pl.INT32)
        w = pld.window(rows, [6, 40], dtype=pl.FP32)
        s = pld.window(cells, [3, 1], dtype=pl.INT32)
        {host}for r in pl.range(pld.world_size()):
            self.chip(x[r], y[r], w, s, device=r)
"""


def compiled(platform: str, chip: str = "", host: str = "") -> Any:
    program = pl.parse(TEXT.format(chip=f"{chip}\n        " if chip else "", host=f"{host}\n        " if host else ""))
    assert isinstance(program, Program)
    return ir.compile(program, platform=platform, distributed_config=DistributedConfig(range(RANKS)))


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
def test_an_annotation_says_how_much_of_a_window_is_valid(platform: str) -> None:
    x, y = np.ones((RANKS, 6, 40), np.float32), np.zeros((RANKS, 6, 40), np.float32)
    compiled(platform)(x, y)
    x[:, :2, :3] = RANKS
    assert np.array_equal(y, x)


@pytest.mark.parametrize(
    ("chip", "host", "error", "words"),
    [
        ("w = pl.set_validshape(w, 2, 3)", "", ControlPlaneComputeError, "Misplaced tensor op `set_validshape`"),
        ("", "w = pl.set_validshape(w, 2, 3)", ExecutionError, r"valid in \[2, 3\] is for collectives of the host"),
        ("", "pld.tensor.reduce_scatter(pl.set_validshape(w, 2, 3), s)", ShapeMismatchError, "valid as a whole"),
        ("", "pld.tensor.all_to_all(pl.set_validshape(w, 2, 3), w, s)", ShapeMismatchError, "valid as a whole"),
        ("", "pld.tensor.barrier(pl.set_validshape(s, 2, 1))", ShapeMismatchError, "valid as a whole"),
    ],
    ids=["chip", "dispatched", "reduce_scatter", "all_to_all", "signal"],
)
def test_what_takes_whole_windows_says_so(chip: str, host: str, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        compiled("cpu", chip, host)(np.ones((RANKS, 6, 40), np.float32), np.zeros((RANKS, 6, 40), np.float32))
