"""Schedules: what is loaded by descriptors, in which boxes, by how many warps and how far ahead."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from ops.kernels import inout, kernel, tensor
from unit.backends.cuda.test_maps import matmul
from unit.backends.cuda.written import written

import tilewright.language as pl
from tilewright import ir
from tilewright.backends.cuda.host.kernels import KernelText
from tilewright.backends.cuda.maps import Box, boxes
from tilewright.backends.cuda.schedule import Schedule, described, plain, smaller, wanted
from tilewright.backends.cuda.target import triton_objection


def kernel_of(kernel: Any, *shapes: tuple[int, int], dtype: str = "float16") -> KernelText:
    arrays = [np.ones(shape, "float32" if number == 2 else dtype) for number, shape in enumerate(shapes)]
    (found,) = written(kernel.specialize(*arrays).program).kernels
    return found


def test_factors_are_loaded_and_products_stored_by_descriptors() -> None:
    found = kernel_of(matmul, (256, 192), (192, 64), (256, 64))
    assert found.described.count("tt.descriptor_load") == 2 and "tt.load" not in found.described
    assert found.described.count("tt.descriptor_store") == 1 and "tt.store" not in found.described
    assert "descriptor" not in found.aligned + found.other and found.aligned.count("tt.load") == 2


def test_what_is_multiplied_in_fp32_is_loaded_as_it_was() -> None:
    assert not kernel_of(matmul, (256, 192), (192, 64), (256, 64), dtype="float32").described


@pl.jit
def squared(x: pl.InOut[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [64, 64])
        pl.store(pl.cast(pl.matmul(t, t), pl.FP16, mode="rint"), [0, 0], x)
    return x


def test_factors_that_are_not_aligned_are_loaded_by_more_threads() -> None:
    found = kernel_of(matmul, (256, 192), (192, 64), (256, 64))
    assert {each.warps for _, each in found.tries(90, is_aligned=True)} == {4}
    assert {each.warps for _, each in found.tries(90, is_aligned=False)} == {8}


def test_a_stage_is_given_up_before_descriptors_are() -> None:
    found = kernel_of(matmul, (256, 192), (192, 64), (256, 64))
    tried = [(text == found.described, each.stages) for text, each in found.tries(90, is_aligned=True)]
    assert tried[-5:] == [(True, 3), (True, 2), (False, 3), (False, 2), (False, 1)]


def test_what_a_kernel_writes_it_does_not_load_by_descriptors() -> None:
    assert not kernel_of(squared, (64, 64)).described


def test_boxes_are_what_is_copied_at_once() -> None:
    text = """
  tt.func public @k(%arg0: !tt.ptr<bf16>, %arg1: !tt.tensordesc<tensor<128x64xbf16, #s>>, %arg2: !tt.tensordesc<x>, %arg3: !tt.tensordesc<y>) attributes {
    ttng.async_tma_copy_local_to_global %arg3[%0, %1] %2 : !tt.tensordesc<y>, !ttg.memdesc<128x256xbf16, #s, #smem>
    ttg.warp_specialize(%arg1, %arg2) attributes {}
    partition0(%arg9: !tt.tensordesc<tensor<128x64xbf16, #s>>, %arg10: !tt.tensordesc<x>) num_warps(4) {
      ttng.async_tma_copy_global_to_local %arg9[%3, %4] %5, %6, %true : !tt.tensordesc<x>, !ttg.memdesc<1xi64, #b> -> !ttg.memdesc<64x64xbf16, #s, #smem, mutable>
"""  # noqa: E501
    told = [
        {"block_size": [128, 64], "swizzle": 3},
        {"block_size": [64, 32], "swizzle": 2},
        {"block_size": [128, 64], "swizzle": 3},
    ]
    assert boxes(text, told) == (Box(64, 64, 3), Box(64, 32, 2), Box(128, 64, 3))


def test_rules_look_at_tiles_and_products() -> None:
    assert plain(4096, [], spread=4096) == Schedule(16, 3) == plain(1 << 14, [], spread=1 << 14)
    assert plain(4096, []) == Schedule(4, 3) and plain(1 << 15, []) == Schedule(32, 3)
    assert plain(1 << 15, [(128, 256)]) == Schedule(8, 3) and plain(1 << 15, [(128, 64)]) == Schedule(8, 3)
    assert plain(1 << 14, [(128, 128), (128, 128)]) == Schedule(8, 3)
    assert [plain(1 << 14, [(128, 128)], work=work).warps for work in (0, 50)] == [4, 8]
    assert described(1 << 14, [(128, 128), (128, 128)], 3 << 15)[0] == Schedule(4, 2, True)
    assert described(1 << 13, [(64, 16)], 20 << 10) == (Schedule(4, 8), Schedule(4, 3))
    assert [each.stages for each in smaller(Schedule(8, 3))] == [3, 2, 1]


@pytest.mark.parametrize(("count", "warps"), [(16, 1), (32, 1), (64, 4), (128, 4)])
def test_indices_that_are_compared_with_all_others_have_warps_by_their_pairs(count: int, warps: int) -> None:
    body = f"old = pl.atomic_max(h, pl.load(x, [0, 0], [1, {count}]), pl.load(x, [0, 0], [1, {count}]))\n"
    given = {"x": tensor(pl.INT32, 1, count), "h": inout(pl.INT32, 256), "out": inout(pl.INT32, 1, count)}
    (found,) = written(kernel(f"{body}out = pl.store(old, [0, 0], out)", **given)).kernels
    assert found.schedule.warps == warps


def test_a_setting_overrides_the_rules() -> None:
    usual = Schedule(8, 3, True)
    assert wanted("", usual) == usual and wanted("warps=4 specialized=0", usual) == Schedule(4, 3)
    assert wanted("specialized=1", Schedule(8, 3)) == Schedule(8, 3)
    with pytest.raises(ValueError, match="has 'stages=99', and takes warps of 1, 2, 4"):
        wanted("stages=99", usual)


@pytest.mark.skipif(bool(triton_objection()), reason="needs Triton")
def test_blocks_are_copied_by_the_copy_engine() -> None:
    a, b, out = (np.ones(shape, np.float16) for shape in ((256, 192), (192, 64), (256, 64)))
    program = ir.compile(matmul.specialize(a, b, out.astype(np.float32)).program, platform="cuda", target="sm_90")
    assert "cp.async.bulk.tensor" in program.stages["ptx"] and "tt.descriptor_load" in program.stages["ttir"]
    older = ir.compile(matmul.specialize(a, b, out.astype(np.float32)).program, platform="cuda", target="sm_80")
    assert "cp.async.bulk.tensor" not in older.stages["ptx"]


def test_floats_of_eight_bits_are_multiplied_as_they_are_on_hopper_and_as_halves_elsewhere() -> None:
    a, b = (np.ones(shape, ml_dtypes.float8_e4m3fn) for shape in ((256, 192), (192, 64)))
    (found,) = written(matmul.specialize(a, b, np.ones((256, 64), np.float32)).program).kernels
    assert "f8E4M3FN> * " in found.described and "f8" not in found.aligned
    assert re.search(r"tt\.dot .* : tensor<\d+x\d+xf16> \*", found.aligned)


@pl.jit
def rounded(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, a.shape[0], 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.tile.full([64, 64], dtype=pl.FP32, value=0.0)
            for k in pl.range(0, a.shape[1], 64):
                acc = pl.matmul_acc(acc, pl.load(a, [i, k], [64, 64]), pl.load(b, [k, 0], [64, 64]))
            pl.store(pl.cast(acc, out.dtype, mode="rint"), [i, 0], out)
    return out


def test_small_floats_are_added_up_as_exactly_as_their_sum_is_rounded() -> None:
    def together(length: int, dtype: Any) -> int:
        a, b = np.ones((64, length), ml_dtypes.float8_e5m2), np.ones((length, 64), ml_dtypes.float8_e5m2)
        (found,) = written(rounded.specialize(a, b, np.ones((64, 64), dtype)).program).kernels
        return int(found.described.partition("maxNumImpreciseAcc = ")[2].partition(" ")[0])

    assert together(4096, ml_dtypes.bfloat16) > 4096
    assert together(8192, ml_dtypes.bfloat16) == together(128, np.float16) == together(128, np.float32) == 128


def test_rows_of_which_elements_are_made_are_shared_out() -> None:
    function = kernel(
        "out = pl.store(pl.gelu(pl.load(x, [0, 0], [1, 4096])), [0, 0], out)",
        x=tensor(pl.FP32, 1, 4096), out=inout(pl.FP32, 1, 4096),
    )  # fmt: skip
    (found,) = written(function).kernels
    assert (found.parts, found.schedule) == (4, Schedule(4, 3))


def test_blocks_move_some_kilobytes_at_least() -> None:
    def moved(dtype: pl.DataType) -> tuple[int, Schedule]:
        function = kernel(
            "out = pl.store(pl.load(x, [0, 0], [1, 16384]), [0, 0], out)",
            x=tensor(dtype, 1, 16384), out=inout(dtype, 1, 16384),
        )  # fmt: skip
        (found,) = written(function).kernels
        return found.parts, found.schedule

    assert moved(pl.FP32) == (16, Schedule(4, 3))
    assert moved(pl.BF16) == (8, Schedule(4, 3))
    assert moved(pl.INT8) == (4, Schedule(4, 3))
