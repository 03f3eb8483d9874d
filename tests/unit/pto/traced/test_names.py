"""The names of the embedded form's guide: what each documented form computes."""

# pyright: reportUnknownParameterType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportMissingParameterType=false

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

from tilewright import pto
from tilewright.errors import KernelError
from tilewright.pto import scalar
from tilewright.pto.ops.registry import OPS
from tilewright.pto.text.parser import parse

Gm, Ints, Halves = pto.gm_ptr(pto.f32), pto.gm_ptr(pto.i32), pto.gm_ptr(pto.f16)


def row(p: Any, size: int) -> Any:
    view = pto.make_tensor_view(p, shape=[1, size], strides=[size, 1])
    return pto.partition_view(view, offsets=[0, 0], sizes=[1, size])


def numbers(count: int = 256) -> Any:
    return np.arange(count, dtype=np.float32)


@pto.jit()
def nested(a: Gm, n: pto.i32) -> None:
    base = n + 1

    def put(i: Any, value: Any = 3.0, *, by: float = 2.0) -> Any:
        scalar.store(value, a, base + i)
        return value * by

    total = pto.f32(0)

    def grown() -> Any:
        return total + 1.0

    for _ in range(n):
        total = grown()
    scalar.store(put(1, put(2, by=4.0)), a, 0)
    scalar.store(total, a, 1)

    @pto.simt
    def item(scale: Any) -> None:
        t = pto.get_tid_x()
        pto.stg(pto.cast(t * scale, pto.f32), a, 10 + t)

    item[4](n)


def test_functions_inside_a_body_see_what_is_around_them() -> None:
    a = numbers()
    nested[1, ctypes.c_void_p(0)](a, 4)
    assert a[:8].tolist() == [24, 4, 2, 3, 4, 5, 12, 3]
    assert a[10:15].tolist() == [0, 4, 8, 12, 14]


@pto.jit()
def viewed(a: Gm, n: pto.index) -> None:
    view = pto.make_tensor_view(a, shape=[n, 16], strides=[16, 1])
    part = pto.partition_view(view, offsets=[2, 4], sizes=[1, 8])
    assert view.element_type == pto.f32 and part.shape == (1, 8)
    scalar.store(5.0, part.as_ptr(), 0)
    scalar.store(pto.cast(pto.cast(view.shape[0] + part.strides[0], pto.i32), pto.f32), view.as_ptr() + 1)


def test_views_have_addresses_sizes_and_strides() -> None:
    a = numbers()
    viewed[1, None](a, 15)
    assert (a[36], a[1]) == (5, 31)


@pto.jit()
def vectors(a: Gm, b: Gm) -> None:
    x, y = pto.alloc_tile(shape=[256], dtype=pto.f32), pto.alloc_tile(shape=[256], dtype=pto.f32)
    pto.tile.load(row(a, 256), x)
    with pto.simd():
        mask = pto.make_mask(pto.f32, pto.PAT.ALL)
        _, further = pto.vlds(x.as_ptr(), 64, return_updated_base=True)
        v = pto.vlds(further, 0, pto.vreg_type(64, pto.f32))
        target = pto.vsts(v, y.as_ptr(), 128, mask, return_updated_base=True)
        pto.vsts(pto.vrec(pto.vadds(v, 1.0, mask), mask), target, 0, mask)
        pto.vsts(pto.vrsqrt(v, mask), y[192:], mask)
        low, high = pto.vldsx2(x[0:], pto.DeinterleaveDist.DINTLV_B32)
        pto.vstsx2(low, high, y[0:], pto.InterleaveDist.INTLV_B32, mask)
        assert pto.get_op_attr("order", 3) == 3
    pto.tile.store(y, row(b, 256))


def test_registers_move_and_divide() -> None:
    a, b = numbers(), np.zeros(256, np.float32)
    vectors[1, 0](a, b)
    middle = a[64:128]
    np.testing.assert_array_equal(b[:128], a[:128])
    np.testing.assert_allclose(b[128:], np.concatenate([1 / (middle + 1), 1 / np.sqrt(middle)]), rtol=1e-6)


@pto.jit()
def joined(a: Ints, b: Ints, halves: Halves) -> None:
    tile = pto.alloc_tile(shape=[64], dtype=pto.i32)
    pto.tile.load(row(a, 64), tile)
    with pto.simd():
        mask = pto.make_mask(pto.i32, pto.PAT.ALL)
        v = pto.vlds(tile[0:])
        pto.vsts(pto.vxors(pto.vors(pto.vands(v, 7, mask), 8, mask), 3, mask), tile[0:], mask)
    pto.set_cross_flag(pto.Pipe.MTE3, 1)
    pto.tile.store(tile, row(b, 64))
    pair = scalar.load(halves, 2, contiguous=2)
    scalar.store(pto.fma(pair, pair, pair), halves, 4)


def test_bits_of_lanes_and_pairs_of_numbers() -> None:
    a, b, halves = np.arange(64, dtype=np.int32), np.zeros(64, np.int32), np.arange(8, dtype=np.float16)
    joined[1, None](a, b, halves)
    assert b.tolist() == (((a & 7) | 8) ^ 3).tolist()
    assert halves.tolist() == [0, 1, 2, 3, 6, 12, 6, 7]


Bytes = pto.gm_ptr(pto.ui8)


@pto.jit(mode="explicit")
def staged(a: Gm, b: Gm, masks: Bytes) -> None:
    far = pto.castptr(0, pto.ptr(pto.f32, "l1"))
    near = pto.castptr(0, pto.ptr(pto.f32, "ub"))
    pto.mte_gm_l1(a, far, 256, loops=None)
    pto.mte_l1_ub(far, near, 8)
    pto.mte_ub_gm(near, b, 256, nburst=(1, 0, 0))
    words = pto.castptr(1024, pto.ptr(pto.ui32, "ub"))
    with pto.simd():
        state = pto.init_align()
        state, further = pto.pstu(state, pto.make_mask(pto.f32, pto.PAT.ALL), words)
        pto.pstu(state, pto.make_mask(pto.f32, 5)[0], further)
    pto.mte_ub_gm(pto.castptr(1024, pto.ptr(pto.ui8, "ub")), masks, 16, nburst=(1, 0, 0))


def test_one_burst_goes_without_saying_and_masks_follow_each_other() -> None:
    a, b, masks = numbers(64), np.zeros(64, np.float32), np.zeros(16, np.uint8)
    staged[1, None](a, b, masks)
    np.testing.assert_array_equal(b, a)
    assert masks.tolist() == [255] * 8 + [31] + [0] * 7


TEXT = """module attributes {pto.target_arch = "a5"} {
  func.func @twice(%p: !pto.ptr<f32, gm>, %n: index) {
    %v = pto.load %p[%n] : !pto.ptr<f32, gm> -> f32
    %w = arith.addf %v, %v : f32
    pto.store %w, %p[%n] : !pto.ptr<f32, gm>, f32
    return
  }
}
"""


@pto.jit(source=TEXT)
def twice(p: Gm, n: pto.index) -> None: ...


@pto.jit()
def more(p: Gm, n: pto.index) -> None:
    scalar.store(scalar.load(p, n) + 1.0, p, n)


def test_traced_kernels_and_text_mix_in_one_program() -> None:
    a = pto.empty_like(numbers(4))
    a[:] = 3
    twice[1, None](a, 3)
    more[1, None](a, 3)
    twice[1, None](a, 3)
    assert a.tolist() == [3, 3, 3, 14]
    merged = pto.merge_jit_modules(twice, more)
    assert [func.name for func in merged.funcs()] == ["twice", "more"]
    assert [func.name for func in parse(str(merged)).funcs()] == ["twice", "more"]
    assert str(twice.mlir_module()) == twice.mlir_text()
    with pytest.raises(TypeError, match="torch tensor or a NumPy array"):
        pto.empty_like([1])


@pytest.mark.parametrize("name", ["chistv2", "sprsts", "vmi"])
def test_names_without_a_meaning_are_refused(name: str) -> None:
    operation = getattr(pto, name)

    @pto.jit()
    def kernel(a: Gm) -> None:
        operation(a)

    with pytest.raises(KernelError, match="there is no `operation` here") as told:
        kernel.compile()
    listed = f"pto.{name}" in OPS
    assert (f"`pto.{name}` is an op that text alone can have" in str(told.value)) == listed
    assert ("help: Read, printed and verified, and refused" in str(told.value)) == listed
