"""Plain Python: loops and scopes of the language where no kernel is around them."""

from __future__ import annotations

from typing import Any

import pytest

import tilewright.language as pl
from tilewright.errors import OutsideKernelError


@pytest.mark.parametrize("loop", [pl.range, pl.parallel, pl.unroll, pl.pipeline], ids=lambda loop: loop.__name__)
def test_a_loop_counts(loop: Any) -> None:
    stage = {"stage": 2} if loop is pl.pipeline else {}
    assert list(loop(3, **stage)) == [0, 1, 2]
    assert list(loop(1, 3, **stage)) == [1, 2]
    assert list(loop(8, 0, -3, **stage)) == [8, 5, 2]
    assert (loop(1, 3, **stage).start, loop(1, 3, **stage).stop, loop(1, 3, **stage).step) == (1, 3, 1)
    for bounds in ((), (1, 2, 3, 4)):
        with pytest.raises(ValueError, match="1 to 3 bounds"):
            loop(*bounds, **stage)


def test_a_loop_carries_what_it_starts_with() -> None:
    assert list(pl.range(2, init_values=(5, 6))) == [(0, (5, 6)), (1, (5, 6))]
    pipeline: Any = pl.pipeline(4, stage=3)
    assert pipeline.pipeline_stages == 3
    assert list(pl.while_(init_values=(1, 2))) == [1, 2]
    with pytest.raises(ValueError, match="init_values"):
        pl.while_(init_values=None)  # pyright: ignore[reportArgumentType]
    for stage in (0, 1.5, True):
        with pytest.raises(ValueError, match=">= 1"):
            pl.pipeline(4, stage=stage)  # pyright: ignore[reportArgumentType]


def test_a_scope_is_entered_and_remembers_what_it_was_given() -> None:
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="h", windowize=True) as scope:
        assert (scope.level, scope.name_hint, scope.windowize, scope.role) == (pl.Level.CORE_GROUP, "h", True, None)
    with pl.spmd(4, sync_start=True) as grid:
        assert (grid.core_num, grid.sync_start) == (4, True)
    with pl.cluster(name_hint="c") as group, pl.scope(), pl.manual_scope():
        assert group.name_hint == "c"
    with pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN) as lanes:
        assert lanes.mode is pl.SplitMode.UP_DOWN


def test_what_only_a_kernel_has_says_so() -> None:
    for iterated in (pl.spmd(4), pl.split_aiv(2)):
        with pytest.raises(RuntimeError):
            list(iterated)
    with pytest.raises(OutsideKernelError):
        pl.submit(print)
    with pytest.raises(OutsideKernelError):
        pl.spmd_submit(print, core_num=1)
    with pytest.raises(OutsideKernelError):
        pl.system.task_dummy(deps=[])
    with pytest.raises(ValueError, match="positive"):
        pl.spmd(0)
    with pytest.raises(ValueError, match="n == 2"):
        pl.split_aiv(3)


def test_what_says_something_to_the_compiler_does_nothing() -> None:
    assert pl.yield_(1) == 1 and pl.yield_(1, 2) == (1, 2)
    assert pl.cond(True) is pl.static_print("x") is pl.static_assert(False) is pl.func_attr({"a": 1}) is None  # pyright: ignore[reportUnnecessaryComparison]


def test_hints_are_values() -> None:
    hints = pl.optimizations
    assert pl.split(pl.SplitMode.NONE) == hints.Split(pl.SplitMode.NONE, None)
    assert pl.cross_core_slot(slot_num=2) == hints.CrossCoreSlot(2)
    assert isinstance(pl.split(pl.SplitMode.NONE), hints.Optimization)
    with pytest.warns(DeprecationWarning, match="slot_num"):
        assert pl.split(pl.SplitMode.NONE, slot_num=2).slot_num == 2
    for number in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="positive integer"):
            pl.cross_core_slot(slot_num=number)  # pyright: ignore[reportArgumentType]


def test_directions_have_names_both_ways() -> None:
    names = ["input", "output", "output_existing", "inout", "no_dep", "scalar"]
    for name in names:
        direction = getattr(pl.adir, name)
        assert pl.adir.NAME_TO_DIRECTION[name] is direction and pl.adir.DIRECTION_TO_NAME[direction] == name
        assert not callable(direction)
    assert pl.adir.no_dep is pl.ArgDirection.NoDep


def test_element_types_are_attributes_of_their_class() -> None:
    assert pl.DataType.FP16 is pl.FP16 and pl.DataType.BF16 is pl.BF16 and pl.DataType.TASK_ID is pl.TASK_ID
    assert pl.DataType.DEFAULT_CONST_INT is pl.INT64 and pl.DataType.DEFAULT_CONST_FLOAT is pl.FP32
