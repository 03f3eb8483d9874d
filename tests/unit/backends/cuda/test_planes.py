"""Batches: planes of tensors of several axes, loaded by descriptors of all of them, without a GPU."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from unit.backends.cuda.emulated_device import left
from unit.backends.cuda.emulated_roles import run_with_roles
from unit.backends.cuda.test_launches import X, Y, entry_of, recording
from unit.backends.cuda.test_maps import Describing, Z
from unit.backends.cuda.test_roles import reference
from unit.backends.cuda.written import written

import tilewright.language as pl
from tilewright import ir
from tilewright.backends.cuda.host.kernels import KernelText
from tilewright.backends.cuda.target import triton_objection

B = pl.dynamic("B")
BOXES = (128, 64, 3, 64, 128, 3, 128, 64, 3)


@pl.jit
def batched(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for h in pl.parallel(a.shape[0]):
        for i in pl.parallel(0, a.shape[1], 128):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.tile.full([128, 128], dtype=pl.FP32, value=0.0)
                first, second, third = a[h], b[h], out[h]
                for k in pl.range(0, a.shape[2], 64):
                    acc = pl.matmul_acc(acc, pl.load(first, [i, k], [128, 64]), pl.load(second, [k, 0], [64, 128]))
                pl.store(acc, [i, 0], third)
    return out


@pl.jit
def of_any_count(
    a: pl.Tensor[[B, 256, 192], pl.FP16],
    b: pl.Tensor[[B, 192, 128], pl.FP16],
    out: pl.Out[pl.Tensor[[B, 256, 128], pl.FP32]],
):
    for h in pl.parallel(B):
        for i in pl.parallel(0, 256, 128):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.tile.full([128, 128], dtype=pl.FP32, value=0.0)
                first, second = a[h], b[h]
                for k in pl.range(0, 192, 64):
                    acc = pl.matmul_acc(acc, pl.load(first, [i, k], [128, 64]), pl.load(second, [k, 0], [64, 128]))
                pl.store(acc, [i, 0], out[h])
    return out


@pl.jit
def attention(q: pl.Tensor, k: pl.Tensor, v: pl.Tensor, out: pl.Out[pl.Tensor]):
    for head in pl.parallel(q.shape[0]):
        for row in pl.parallel(0, q.shape[1], 128):
            with pl.at(level=pl.Level.CORE_GROUP):
                all_keys, all_values = k[head], v[head]
                queries = pl.load(q[head], [row, 0], [128, 64])
                best = pl.tile.full([128, 1], dtype=pl.FP32, value=-1e30)
                total = pl.tile.full([128, 1], dtype=pl.FP32, value=0.0)
                average = pl.tile.full([128, 64], dtype=pl.FP32, value=0.0)
                for key in pl.range(0, k.shape[1], 64):
                    scores = pl.matmul(queries, pl.tile.transpose_view(pl.load(all_keys, [key, 0], [64, 64]))) * 0.125
                    highest = pl.maximum(best, pl.row_max(scores))
                    weights = pl.row_expand_expdif(scores, highest)
                    kept = pl.exp(best - highest)
                    total = total * kept + pl.row_sum(weights)
                    half = pl.cast(weights, q.dtype, mode="rint")
                    average = pl.row_expand_mul(average, kept) + pl.matmul(
                        half, pl.load(all_values, [key, 0], [64, 64])
                    )
                    best = highest
                pl.store(pl.cast(pl.row_expand_div(average, total), q.dtype, mode="rint"), [row, 0], out[head])
    return out


def kernel_of(kernel: Any, *args: Any) -> KernelText:
    (found,) = written(kernel.specialize(*args).program).kernels
    return found


def factors(count: int = 4, rows: int = 256, common: int = 192) -> list[Any]:
    shapes = (count, rows, common), (count, common, 128), (count, rows, 128)
    return [np.zeros(shape, dtype) for shape, dtype in zip(shapes, (np.float16, np.float16, np.float32), strict=True)]


def filled(arrays: list[Any]) -> list[Any]:
    """Return whole numbers, whose products are exact."""
    rng: Any = np.random.default_rng(4)
    return [rng.integers(-4, 5, each.shape).astype(each.dtype) for each in arrays]


def test_planes_are_loaded_and_stored_by_descriptors() -> None:
    found = kernel_of(batched, *factors())
    assert found.described.count("tt.descriptor_load") == 2 and "tt.load" not in found.described
    assert found.described.count("tt.descriptor_store") == 1 and "tt.store" not in found.described


def test_rows_that_end_inside_a_tile_are_not_those_of_the_next_plane() -> None:
    assert not kernel_of(batched, *factors(rows=250)).described
    assert not kernel_of(batched, *factors(common=200)).described


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Describing:
    return recording(monkeypatch, Describing())


def words(count: int, strides: tuple[int, int] = (256 * 192, 192)) -> list[int]:
    others = [Y, count, 192, 128, 192 * 128, 128, 1, Z, count, 256, 128, 256 * 128, 128, 1]
    return [X, count, 256, 192, *strides, 1, *others]


def test_a_descriptor_has_all_planes_of_a_tensor_as_its_rows(driver: Describing) -> None:
    entry = entry_of(driver, of_any_count, *factors(), boxes=BOXES)
    entry(*words(4))
    assert driver.launches[-1][0] == 0
    assert driver.described[:2] == [[X, 192, 4 * 256, 384, 64, 128, 3], [Y, 128, 4 * 192, 256, 128, 64, 3]]
    assert {256, 192} <= set(driver.launches[-1][2])


@pytest.mark.parametrize(
    ("count", "strides", "rows"),
    [(4, (300 * 192, 192), 3 * 300 + 256), (4, (0, 192), 256), (1, (8, 192), 256), (4, (256 * 200, 200), 4 * 256)],
)
def test_planes_are_any_number_of_rows_apart(
    driver: Describing, count: int, strides: tuple[int, int], rows: int
) -> None:
    entry = entry_of(driver, of_any_count, *factors(), boxes=BOXES)
    entry(*words(count, strides))
    assert driver.launches[-1][0] == 0 and driver.described[0] == [X, 192, rows, 2 * strides[1], 64, 128, 3]


@pytest.mark.parametrize("strides", [(192, 4 * 192), (256 * 192 + 8, 192), (-256 * 192, 192), (256, 0)])
def test_planes_that_are_no_number_of_rows_apart_are_loaded_as_they_were(
    driver: Describing, strides: tuple[int, int]
) -> None:
    entry = entry_of(driver, of_any_count, *factors(), boxes=BOXES)
    entry(*words(4, strides))
    assert driver.launches[-1][0] == 1


def test_attention_to_the_planes_of_a_tensor_has_roles() -> None:
    rng = np.random.default_rng(1)
    given: list[Any] = [rng.standard_normal((3, 256, 64)).astype(ml_dtypes.bfloat16) for _ in range(3)]
    q, k, v = given
    out = np.full_like(q, np.nan)
    wanted = reference([each.reshape(-1, 64) for each in given], 3, causal=False).reshape(q.shape)
    for text in (texts := kernel_of(attention, q, k, v, out).roles):
        found = run_with_roles(text, [q, k, v, out], 6, programs=4, apart=[256] * 3)[3].astype(np.float64)
        assert np.linalg.norm(found - wanted) < 5e-3 * np.linalg.norm(wanted)
    assert len(texts) == 2


@pytest.mark.skipif(bool(triton_objection()), reason="needs Triton")
def test_planes_are_copied_by_the_copy_engine() -> None:
    given = factors()
    some = ((batched, given), *((each, given) for each in ONE_PLANE))
    for kernel, given in (*some, (attention, [np.zeros((3, 256, 64), ml_dtypes.bfloat16)] * 4)):
        program = ir.compile(kernel.specialize(*given).program, platform="cuda", target="sm_90")
        assert "cp.async.bulk.tensor" in program.stages["ptx"]


@pl.jit
def of_tiles(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for h in pl.parallel(a.shape[0]):
        for i in pl.parallel(0, a.shape[1], 128):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.tile.full([128, 128], dtype=pl.FP32, value=0.0)
                for k in pl.range(0, a.shape[2], 64):
                    left, right = pl.load(a, [h, i, k], [1, 128, 64]), pl.load(b, [h, k, 0], [1, 64, 128])
                    acc = pl.matmul_acc(acc, pl.reshape(left, [128, 64]), pl.reshape(right, [64, 128]))
                pl.store(acc, [i, 0], out[h])
    return out


@pl.jit
def of_batches(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for h in pl.parallel(a.shape[0]):
        for i in pl.parallel(0, a.shape[1], 128):
            with pl.at(level=pl.Level.CORE_GROUP):
                acc = pl.tile.full([1, 128, 128], dtype=pl.FP32, value=0.0)
                for k in pl.range(0, a.shape[2], 64):
                    left, right = pl.load(a, [h, i, k], [1, 128, 64]), pl.load(b, [h, k, 0], [1, 64, 128])
                    acc = pl.batch_matmul_acc(acc, left, right)
                pl.store(acc, [h, i, 0], out)
    return out


@pl.jit
def of_any_tiles(
    a: pl.Tensor[[B, 256, 192], pl.FP16],
    b: pl.Tensor[[B, 192, 128], pl.FP16],
    out: pl.Out[pl.Tensor[[B, 256, 128], pl.FP32]],
):
    for h in pl.parallel(B):
        for i in pl.parallel(0, 256, 128):
            with pl.at(level=pl.Level.CORE_GROUP):
                left, right = pl.load(a, [h, i, 0], [1, 128, 64]), pl.load(b, [h, 0, 0], [1, 64, 128])
                pl.store(left @ right, [h, i, 0], out)
    return out


ONE_PLANE = [of_tiles, of_batches]


@pytest.mark.parametrize("kernel", ONE_PLANE)
def test_tiles_of_one_plane_are_loaded_by_descriptors(kernel: Any) -> None:
    found = kernel_of(kernel, *factors())
    assert "tt.descriptor_load" in found.described and "tt.load" not in found.described
    assert not kernel_of(kernel, *factors(rows=250)).described


@pytest.mark.parametrize("kernel", ONE_PLANE)
@pytest.mark.parametrize("extents", [(3, 256, 192), (2, 150, 100)], ids=str)
def test_tiles_of_one_plane_are_multiplied_as_matrices(
    monkeypatch: pytest.MonkeyPatch, kernel: Any, extents: tuple[int, int, int]
) -> None:
    given = filled(factors(*extents))
    a, b, found = left(monkeypatch, kernel.specialize(*given).program, given)
    np.testing.assert_array_equal(found, a.astype(np.float32) @ b.astype(np.float32))
    assert np.any(found)


def test_a_plane_of_a_tensor_of_any_number_of_them_is_looked_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    found = kernel_of(of_any_tiles, *factors())
    assert found.described.count("tt.descriptor_load") == 2
    given = filled(factors(3))
    a, b, out = left(monkeypatch, of_any_tiles.specialize(*given).program, given)
    wanted: Any = a[:, :, :64].astype(np.float32) @ b[:, :64].astype(np.float32)
    np.testing.assert_array_equal(out, wanted)
