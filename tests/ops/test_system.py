"""System: blocks, cores and tasks as an ordered executor has them."""

from __future__ import annotations

import pytest
from ops.kernels import kernel, out, run

import tilewright.language as pl


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
