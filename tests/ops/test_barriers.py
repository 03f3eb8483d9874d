"""Barriers: the blocks of a launch see after one what all of them wrote before."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
from ops.kernels import counting, kernel, launch, out, run, scalar, tensor

import tilewright.language as pl
from tilewright import ir
from tilewright.errors import AttributeValueError, ExecutionError
from tilewright.frontend.programs import as_program

pytestmark = pytest.mark.usefixtures("on_target")

SOFT = 'pl.system.syncall(mode="soft", gm_workspace=words, used_cores=4)'


def blocks(body: str, count: str = "4") -> str:
    """Return statements run by each block of a grid, which is `i`."""
    return f"with pl.spmd({count}):\n" + textwrap.indent(f"i = pl.tile.get_block_idx()\n{body}", "    ")


WORDS = tensor(pl.INT32, 8)
words = np.zeros(8, np.int32)


def test_a_block_reads_what_a_later_one_wrote() -> None:
    body = f"pl.write(shared, [i], i + 10)\n{SOFT}\npl.write(out, [i], pl.read(shared, [3 - i]))"
    function = kernel(blocks(body), words=WORDS, shared=out(pl.INT32, 4), out=out(pl.INT32, 4))
    result = np.zeros(4, np.int32)
    launch(function, words, np.zeros(4, np.int32), result)
    assert result.tolist() == [13, 12, 11, 10]


def test_tiles_and_numbers_live_through_a_barrier() -> None:
    body = f"""t = pl.load(x, [i, 0], [1, 8])
n = i * 2
shared = pl.store(pl.mul(t, 2.0), [i, 0], shared)
{SOFT}
other = pl.load(shared, [3 - i, 0], [1, 8])
out = pl.store(pl.add(pl.add(t, other), pl.cast(n, pl.FP32)), [i, 0], out)"""
    parameters = {"words": WORDS, "x": tensor(pl.FP32, 4, 8), "shared": out(pl.FP32, 4, 8), "out": out(pl.FP32, 4, 8)}
    x = counting(4, 8)
    result = np.zeros((4, 8), np.float32)
    launch(kernel(blocks(body), **parameters), words, x, np.zeros((4, 8), np.float32), result)
    np.testing.assert_array_equal(result, x + 2 * x[::-1] + 2 * np.arange(4)[:, None])


@pytest.mark.parametrize("count", [1, 3, 70])
def test_a_barrier_in_a_loop_is_one_in_each_turn(count: int) -> None:
    body = f"""for k in pl.range(5):
    pl.write(shared, [i], pl.read(shared, [i]) + 1)
    {SOFT}
    last = pl.read(shared, [(i + 1) % n])
    {SOFT}
    pl.write(out, [i], pl.read(out, [i]) + last)"""
    text = blocks(body, "n")
    shapes = {"shared": f"pl.InOut[{tensor(pl.INT32, count)}]", "out": f"pl.InOut[{tensor(pl.INT32, count)}]"}
    function = kernel(text, words=WORDS, n=scalar(pl.INDEX), **shapes)
    shared, result = np.zeros(count, np.int32), np.zeros(count, np.int32)
    launch(function, words, count, shared, result)
    assert shared.tolist() == [5] * count and result.tolist() == [15] * count


@pl.program
class Summed:
    @pl.function(type=pl.FunctionType.InCore)
    def part(
        self,
        x: pl.Tensor[[8, 16], pl.FP32],
        words: pl.Tensor[[8], pl.INT32],
        shared: pl.InOut[pl.Tensor[[8, 1], pl.FP32]],
        total: pl.InOut[pl.Tensor[[8, 1], pl.FP32]],
    ):
        i = pl.tile.get_block_idx()
        row = pl.load(x, [i, 0], [1, 16])
        shared = pl.store(pl.row_sum(row, pl.create_tile([1, 16], dtype=pl.FP32)), [i, 0], shared)
        pl.system.syncall(mode="soft", gm_workspace=words, used_cores=8)
        every = pl.load(shared, [0, 0], [8, 1])
        total = pl.store(pl.col_sum(every), [i, 0], total)
        return total

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[8, 16], pl.FP32],
        words: pl.Tensor[[8], pl.INT32],
        total: pl.InOut[pl.Tensor[[8, 1], pl.FP32]],
    ):
        shared = pl.create_tensor([8, 1], dtype=pl.FP32, init_value=0.0)
        total, _ = pl.spmd_submit(self.part, x, words, shared, total, core_num=8)
        return total


def test_every_block_of_a_submitted_grid_sums_all_parts(target: str) -> None:
    x = np.random.default_rng(1).standard_normal((8, 16)).astype(np.float32)
    total = np.zeros((8, 1), np.float32)
    ir.compile(Summed, platform=target)(x, words, total)
    np.testing.assert_allclose(total, np.full((8, 1), x.sum()), rtol=1e-5)


def test_a_block_that_fails_ends_the_launch() -> None:
    body = f"{SOFT}\npl.write(out, [i + n], 1)\n{SOFT}"
    function = kernel(blocks(body), words=WORDS, n=scalar(pl.INDEX), out=out(pl.INT32, 4))
    assert run(function, words, 0).tolist() == [1, 1, 1, 1]
    with pytest.raises(ExecutionError, match="outside"):
        run(function, words, 2)


@pytest.mark.parametrize(("cores", "count"), [("mix", 24), ("aic_only", 24), ("aiv_only", 48)])
def test_a_hard_barrier_waits_for_every_core(cores: str, count: int) -> None:
    barrier = f'pl.system.syncall(core_type="{cores}")'
    body = f"pl.write(shared, [i], i)\n{barrier}\npl.write(out, [i], pl.read(shared, [n - 1 - i]))"
    parameters = {"n": scalar(pl.INDEX), "shared": out(pl.INT32, count), "out": out(pl.INT32, count)}
    result = np.zeros(count, np.int32)
    launch(kernel(blocks(body, str(count)), **parameters), count, np.zeros(count, np.int32), result)
    assert result.tolist() == [*range(count)][::-1]
    with pytest.raises(AttributeValueError, match=f"waits for {count} blocks, and {count - 1} are launched"):
        ir.compile(as_program(kernel(blocks(body, str(count - 1)), **parameters)))
