"""Numbers of texts: kernels for a GPU run by NumPy, held against the interpreter."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ops.kernels import inout, kernel, tensor
from ops.native import assert_same
from unit.backends.cuda.emulated import emulated
from unit.backends.cuda.written import written

import tilewright.language as pl
from tilewright.backends.cuda.host.kernels import Launch
from tilewright.backends.cuda.ttir.text import ANY_ROOM
from tilewright.call.argument import is_array
from tilewright.core.program import Function
from tilewright.core.region import whole
from tilewright.dtypes import DataType
from tilewright.frontend.programs import as_program
from tilewright.interpret import machine


def held(function: Function, args: list[Any], shared: int = ANY_ROOM, turns: int = 1) -> list[tuple[Any, Any]]:
    """Return each tensor as a text and as the interpreter leave it; a number is given as it is."""
    theirs: list[Any] = [np.array(arg) if is_array(arg) else arg for arg in args]
    given: list[Any] = [whole(arg) if is_array(arg) else arg for arg in theirs]
    machine.run(as_program(function), function.name, given)
    found, error = emulated(function, args, shared, turns)
    assert not error
    return [*zip(found, filter(is_array, theirs), strict=True)]


def test_of_several_for_one_place_the_last_stays_and_each_sees_those_before_it() -> None:
    function = kernel(
        "i = pl.load(index, [0, 0], [3, 7])\nv = pl.load(x, [0, 0], [3, 7])\n"
        "out = pl.put(out, i, v)\nold = pl.atomic_add(sums, i, v)\nout2 = pl.store(old, [0, 0], out2)",
        index=tensor(pl.INT32, 3, 7), x=tensor(pl.INT8, 3, 7), out=inout(pl.INT8, 5), sums=inout(pl.INT8, 5),
        out2=inout(pl.INT8, 3, 7),
    )  # fmt: skip
    rng = np.random.default_rng(2)
    index, x = rng.integers(0, 5, (3, 7)).astype(np.int32), rng.integers(-128, 128, (3, 7)).astype(np.int8)
    zeros = [np.zeros(5, np.int8), np.ones(5, np.int8), np.zeros((3, 7), np.int8)]
    for got, want in held(function, [index, x, *zeros]):
        assert_same(got, want)


def test_an_index_outside_is_noted_and_touches_nothing() -> None:
    body = "i = pl.load(index, [0, 0], [1, 4])\nout = pl.store(pl.take(x, i), [0, 0], out)"
    function = kernel(body, index=tensor(pl.INT32, 1, 4), x=tensor(pl.FP32, 3, 8), out=inout(pl.FP32, 4, 8))
    index = np.array([[0, -1, 1 << 30, 2]], np.int32)
    _, error = emulated(function, [index, np.ones((3, 8), np.float32), np.zeros((4, 8), np.float32)])
    assert error and error >> 32 == 1 << 30


def test_loops_choose_tensors_and_bind_names_and_are_left() -> None:
    function = kernel(
        "here, there = a, b\n"
        "for turn in pl.range(5):\n"
        "    if pl.read(here, [turn, 0]) > 40.0:\n        break\n"
        "    if turn == 1:\n        continue\n"
        "    last = pl.load(here, [turn, 0], [1, 8])\n"
        "    there = pl.store(last * 2.0 + pl.load(there, [turn, 0], [1, 8]), [turn, 0], there)\n"
        "    here, there = there, here\n"
        "c = pl.store(last, [0, 0], c)",
        a=inout(pl.FP32, 5, 8), b=inout(pl.FP32, 5, 8), c=inout(pl.FP32, 1, 8),
    )  # fmt: skip
    for limit in (10, 50):
        a, b = (np.random.default_rng(seed).integers(0, limit, (5, 8)).astype(np.float32) for seed in (limit, 2))
        a[0, 0] = 1
        for got, want in held(function, [a, b, np.zeros((1, 8), np.float32)]):
            assert_same(got, want)


def test_blocks_share_rows_out_where_elements_do_not_meet() -> None:
    function = kernel(
        "t = pl.load(x, [0, 1], [2, 1500], valid_shape=[2, 1300])\nu = pl.load(y, [1, 0], [1, 1500])\n"
        "places = pl.cast(pl.iota([1, 1500], axis=1), pl.FP32)\n"
        "out = pl.store(pl.where(t > u, t * 2.0, places), [1, 2], out)",
        x=tensor(pl.FP32, 3, 1600), y=tensor(pl.FP32, 2, 1500), out=inout(pl.FP32, 4, 1502),
    )  # fmt: skip
    (written_,) = written(function).kernels
    assert written_.parts == 4 and "tensor<2x512xf32>" in written_.aligned
    rng = np.random.default_rng(4)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((3, 1600), (2, 1500), (4, 1502))]
    for got, want in held(function, arrays):
        assert_same(got, want)


@pytest.mark.parametrize(
    "body",
    [
        "out = pl.store(pl.row_expand_sub(t, pl.row_sum(t)), [0, 0], out)",
        "out = pl.store(t, [0, 0], out)\nx = pl.write(x, [0, 0], pl.read(x, [0, 0]) + 1.0)",
        "x = pl.store(t, [0, 1], x)\nout = pl.store(pl.load(x, [0, 0], [1, 2048]), [0, 0], out)",
        "for _ in pl.range(2):\n    out = pl.store(t, [0, 0], out)",
    ],
)
def test_rows_stay_whole_where_more_than_elements_is_done(body: str) -> None:
    said = f"t = pl.load(x, [0, 0], [1, 2048])\n{body}"
    (found,) = written(kernel(said, x=inout(pl.FP32, 1, 2050), out=inout(pl.FP32, 1, 2050))).kernels
    assert found.parts == 1


REPEATED = kernel(
    "turn = pl.read(turns, [0])\nt = pl.cast(pl.load(a, [0, 0], [16, 64]), pl.FP32)\ncount = 0\n"
    "while turn > 0:\n"
    "    count = count + 1\n"
    "    if count == 2:\n        continue\n"
    "    t = pl.row_expand_sub(t, pl.row_sum(t) * 0.015625)\n"
    "    b = pl.store(t, [0, 0], b)\n"
    "    turn = pl.read(turns, [count])\n"
    "while True:\n"
    "    t = pl.row_expand_add(t * 2.0, pl.row_max(t))\n"
    "    b = pl.store(t, [16, 0], b)\n"
    "    if pl.read(b, [16, 63]) > 40.0:\n        break\n"
    "c = pl.store(t, [0, 0], c)",
    turns=inout(pl.INT32, 8), a=inout(pl.FP16, 16, 64), b=inout(pl.FP32, 32, 64), c=inout(pl.FP32, 16, 64),
)  # fmt: skip
"""Loops of tiles in the layouts of their ops, and of numbers that only the way on goes by."""


def test_loops_that_look_run_as_often_as_they_have_to() -> None:
    for last in (0, 1, 6):
        turns = np.array([1] * last + [0] * (8 - last), np.int32)
        a = np.reshape(np.arange(1024, dtype=np.float16) / 64, (16, 64))
        for got, want in held(REPEATED, [turns, a, np.zeros((32, 64), np.float32), np.zeros((16, 64), np.float32)]):
            assert_same(got, want, 4)


def test_what_shared_memory_has_no_room_for_goes_through_memory() -> None:
    function = kernel(
        "t = pl.load(x, [0, 0], [24, 40], valid_shape=[23, 37])\nu = pl.load(y, [0, 0], [40, 12])\n"
        "turned = pl.store(pl.transpose(t, 0, 1), [0, 0], turned)\n"
        "other = pl.store(pl.flip(pl.flip(t, 0), 1), [0, 0], other)\n"
        "sums = pl.store(pl.cumsum(t, axis=0), [0, 0], sums)\n"
        "lines = pl.store(pl.sort(t, axis=1), [0, 0], lines)\n"
        "out = pl.store(pl.matmul(pl.load(x, [0, 0], [24, 40]), u), [0, 0], out)",
        x=tensor(pl.FP32, 24, 40), y=tensor(pl.FP32, 40, 12), turned=inout(pl.FP32, 40, 24),
        other=inout(pl.FP32, 24, 40), sums=inout(pl.FP32, 24, 40), lines=inout(pl.FP32, 24, 40),
        out=inout(pl.FP32, 24, 12),
    )  # fmt: skip
    rng = np.random.default_rng(8)
    shapes = (24, 40), (40, 12), (40, 24), (24, 40), (24, 40), (24, 40), (24, 12)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    (text,) = written(function, 64).kernels
    assert "tt.trans" not in text.aligned and "tt.gather" not in text.aligned
    for got, want in held(function, arrays, 64):
        assert_same(got, want, 64)


def test_parts_of_a_row_are_loaded_a_turn_ahead() -> None:
    function = kernel(
        "best = pl.tile.full([1, 1], dtype=pl.INT16, value=-9)\n"
        "for first in pl.range(0, 12288, 4096):\n"
        "    t = pl.load(x, [1, first], [1, 4096])\n    best = pl.maximum(best + pl.row_min(t), pl.row_max(t))\n"
        "out = pl.store(best, [0, 0], out)",
        x=tensor(pl.INT16, 2, 12288), out=inout(pl.INT16, 1, 1),
    )  # fmt: skip
    (text,) = (each.aligned for each in written(function).kernels)
    assert "scf.yield" in text and "%next = tt.load" in text
    x = np.random.default_rng(4).integers(-9, 9, (2, 12288)).astype(np.int16)
    for got, want in held(function, [x, np.zeros((1, 1), np.int16)]):
        assert_same(got, want)


def test_what_all_rows_have_in_common_is_loaded_before_a_row_is_folded() -> None:
    function = kernel(
        "t = pl.load(x, [1, 0], [1, 4096])\nt = pl.row_expand_sub(t, pl.row_sum(t) * 0.000244140625)\n"
        "t = pl.row_expand_mul(t, pl.rsqrt(pl.row_sum(t * t) + 1.0))\n"
        "out = pl.store(t * pl.load(w, [0, 0], [1, 4096]) + pl.load(w, [1, 0], [1, 4096]), [0, 0], out)",
        x=tensor(pl.FP32, 2, 4096), w=tensor(pl.FP32, 2, 4096), out=inout(pl.FP32, 1, 4096),
    )  # fmt: skip
    (found,) = written(function).kernels
    before, _, behind = found.aligned.partition('"tt.reduce"')
    assert [before.count("tt.load"), behind.count("tt.load")] == [3, 1] and found.schedule.warps == 4
    rng = np.random.default_rng(6)
    x, w = (rng.normal(size=(2, 4096)).astype(np.float32) for _ in range(2))
    for got, want in held(function, [x, w, np.zeros((1, 4096), np.float32)]):
        assert_same(got, want, 16, scale=np.ones_like(want))


def test_large_tiles_of_which_rows_are_made_row_by_row_are_a_grid_of_them() -> None:
    function = kernel(
        "t = pl.load(x, [2, 0], [600, 40])\nfactors = pl.load(w, [0, 0], [1, 40])\n"
        "t = pl.col_expand_mul(pl.row_expand_div(t * t, pl.row_sum(t)), factors)\nout = pl.store(t, [4, 0], out)",
        x=tensor(pl.FP32, 604, 40), w=tensor(pl.FP32, 1, 40), out=inout(pl.FP32, 604, 40),
    )  # fmt: skip
    rng = np.random.default_rng(3)
    x, w, out = (rng.uniform(0.5, 2.0, shape).astype(np.float32) for shape in ((604, 40), (1, 40), (604, 40)))
    for got, want in held(function, [x, w, out], turns=600 // 8):
        assert_same(got, want, 8)


@pytest.mark.parametrize(
    "body",
    [
        "t = pl.load(x, [0, 0], [600, 40])\nt = pl.col_expand_mul(t, pl.col_sum(t))\nout = pl.store(t, [0, 0], out)",
        "t = pl.load(out, [0, 0], [600, 40])\nout = pl.store(t * 2.0, [1, 0], out)",
        "t = pl.load(x, [0, 0], [600, 40])\nout = pl.store(t * 2.0, [0, 0], out)\nout = pl.store(t, [1, 0], out)",
    ],
)
def test_kernels_whose_rows_meet_stay_whole(body: str) -> None:
    function = kernel(body, x=tensor(pl.FP32, 604, 40), out=inout(pl.FP32, 604, 40))
    (launch,) = written(function).launches
    assert isinstance(launch, Launch) and launch.grid == "1"


@pytest.mark.parametrize("dtype", [pl.INT32, pl.UINT32, pl.INT64, pl.UINT64], ids=str)
def test_integers_become_bfloat16_in_one_rounding(dtype: DataType) -> None:
    """GPUs before Hopper round to fp32 first, as NumPy does here."""
    body = "t = pl.load(x, [0, 0], [4, 512])\nout = pl.store(pl.cast(t, pl.BF16), [0, 0], out)"
    function = kernel(body, x=tensor(dtype, 4, 512), out=inout(pl.BF16, 4, 512))
    kind, bits, rng = np.dtype(str(dtype)), dtype.bits, np.random.default_rng(3)
    limits = np.iinfo(kind)
    middles = [(1 << place) + (1 << (place - 8)) + near for place in range(8, bits - 1) for near in (-1, 0, 1)]
    few = [0, 1, limits.min, limits.max, limits.max // 2, *middles, *(-each for each in middles if limits.min < 0)]
    many = rng.integers(limits.min, limits.max, 2048 - len(few), kind) >> rng.integers(0, bits, 2048 - len(few), kind)
    given: Any = np.array([*few, *many.tolist()], kind)
    ((got, want),) = held(function, [given.reshape(4, 512), np.zeros((4, 512), ml_dtypes.bfloat16)])[1:]
    assert np.array_equal(got.astype(np.float64), want.astype(np.float64))
