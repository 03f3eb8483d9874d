"""System: blocks, cores and tasks as an ordered executor has them."""

from __future__ import annotations

import numpy as np
import pytest
from ops.kernels import kernel, out, run

import tilewright.language as pl
from tilewright import ir
from tilewright.errors import ExecutionError, StaticAssertionError

pytestmark = pytest.mark.usefixtures("on_target")


def written(value: str) -> int:
    """Return the integer an expression gives outside any grid."""
    return int(run(kernel(f"pl.write(out, [0], {value})", out=out(pl.INT32, 1)), fill=-7)[0])


def test_a_kernel_outside_a_grid_is_the_only_block() -> None:
    assert written("pl.tile.get_block_idx()") == 0
    assert written("pl.tensor.get_block_num()") == 1


def test_every_block_knows_its_index_and_their_number() -> None:
    body = """
    with pl.spmd(3):
        i = pl.tile.get_block_idx()
        pl.write(out, [i], i * 10 + pl.tile.get_block_num())
    """
    assert run(kernel(body, out=out(pl.INT32, 3))).tolist() == [3, 13, 23]


def test_a_block_has_one_vector_lane() -> None:
    assert written("pl.tile.get_subblock_idx()") == 0


@pytest.mark.parametrize("name", ["available_cluster_count", "available_aiv_count"])
def test_the_interpreter_has_one_core(name: str) -> None:
    assert written(f"pl.system.{name}()") == 1


def test_threads_are_those_that_share_the_work_of_the_host(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", "3")
    assert written("pl.system.available_thread_count()") == (3 if target == "cpu" else 1)


def test_no_task_is_the_one_that_does_nothing() -> None:
    body = """
    tid = pl.system.task_dummy(deps=[pl.system.task_invalid()])
    if tid != pl.system.task_invalid():
        pl.write(out, [0], 1)
    """
    assert run(kernel(body, out=out(pl.INT32, 1))) == [1]


@pytest.mark.parametrize("name", ["bar_v", "bar_m", "bar_all", "fence"])
def test_a_barrier_changes_nothing(name: str) -> None:
    body = f"pl.write(out, [0], 1)\npl.system.{name}()\npl.write(out, [1], 2)"
    assert run(kernel(body, out=out(pl.INT32, 2))).tolist() == [1, 2]


ASSERTING = """
import tilewright.language as pl

@pl.program
class Asserting:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[4], pl.INT32], out: pl.Out[pl.Tensor[[4], pl.INT32]]):
        for i in pl.parallel(0, 4):
            with pl.at(level=pl.Level.CORE_GROUP):
                n = pl.read(x, [i])
                pl.system.device_assert(n >= 0, message="x must not be negative")
                pl.write(out, [i], n * 2)
"""


def test_what_is_asserted_must_hold(target: str) -> None:
    program = ir.compile(pl.parse(ASSERTING), platform=target)
    result = np.zeros(4, np.int32)
    program(np.array([1, 2, 3, 4], np.int32), result)
    assert result.tolist() == [2, 4, 6, 8]
    with pytest.raises(ExecutionError, match="x must not be negative") as caught:
        program(np.array([1, 2, -3, 4], np.int32), result)
    assert caught.value.place.line == 11


def test_unchecked_code_asserts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CHECKED", "0")
    result = np.zeros(4, np.int32)
    ir.compile(pl.parse(ASSERTING), platform="cpu")(np.array([1, 2, -3, 4], np.int32), result)
    assert result.tolist() == [2, 4, -6, 8]


def test_what_certainly_does_not_hold_is_refused_before_running() -> None:
    with pytest.raises(StaticAssertionError, match="never"):
        kernel('pl.system.device_assert(1 > 2, message="never")', out=out(pl.INT32, 1))
