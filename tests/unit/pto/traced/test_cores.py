"""Cores in bodies: the cube's own ops, pipes between cores, printing, structs, and what a body yields."""

# pyright: reportUnknownParameterType=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.pto.traced.tracing import lines

from tilewright import pto
from tilewright.errors import OperandError, TilewrightError, UnsupportedFeatureError

F16, F32 = pto.ptr(pto.f16, "gm"), pto.ptr(pto.f32, "gm")


@pto.jit()
def product(a: F16, b: F16, bias: F32, out: F32) -> None:
    """A product by micro-ops: staged, loaded, multiplied twice, rectified and brought out."""
    near, far = pto.castptr(0, pto.ptr(pto.f16, "l1")), pto.castptr(8192, pto.ptr(pto.f16, "l1"))
    row, held = pto.castptr(16384, pto.ptr(pto.f32, "l1")), pto.castptr(0, pto.ptr(pto.f32, "bt"))
    left, right = pto.castptr(0, pto.ptr(pto.f16, "l0a")), pto.castptr(0, pto.ptr(pto.f16, "l0b"))
    acc = pto.castptr(0, pto.ptr(pto.f32, "l0c"))
    with pto.section.cube():
        pto.mte_gm_l1_frac(
            a, near, pto.FractalMode.ND2NZ, shape=(16, 32), src_layout=64, dst_group=(1, 1, 16, 0), ctrl=(0, False)
        )
        pto.mte_gm_l1_frac(b, far, "nd2nz", shape=(32, 16), src_layout=(32,), dst_group=(1, 1, 32, 0), ctrl=(0, False))
        pto.mte_gm_l1(bias, row, 64, nburst=(1, 0, 0))
        pto.mte_l1_bias(row, held, 2, nburst=(1, 0, 0))
        pto.mte_l1_l0a(near, left, 16, 32)
        pto.mte_l1_l0b(far, right, 32, 16, transpose=True)
        pto.mad_bias(left, right, acc, held, 16, 16, 32, unit_flag=pto.MadUnitFlagMode.CHECK_ONLY)
        pto.mad_acc(left, right, acc, 16, 16, 32, sat=pto.SatMode.OFF)
        pto.mte_l0c_gm(acc, out, 16, 16, 16, 16, pre_relu=0.25, pre_relu_mode="scalar_relu")


def test_a_product_by_the_cubes_own_ops() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(16, 32)).astype(np.float16), rng.normal(size=(32, 16)).astype(np.float16)
    bias, out = rng.normal(size=16).astype(np.float32), np.zeros((16, 16), np.float32)
    product[1, None](a, b, bias, out)
    whole = 2 * (a.astype(np.float32) @ b.astype(np.float32)) + bias
    np.testing.assert_allclose(out, np.where(whole < 0, whole / 4, whole), rtol=1e-3, atol=1e-3)


def whole(p: Any) -> Any:
    view = pto.make_tensor_view(p, shape=[16, 16], strides=[16, 1])
    return pto.partition_view(view, offsets=[0, 0], sizes=[16, 16])


@pto.jit()
def there_and_back(x: F32, out: F32) -> None:
    """A tile that the vector core hands to the cube, and takes back."""
    with pto.section.cube():
        far = pto.import_reserved_buffer(name="ring", peer_func="there_and_back")
        pipe = pto.pipe.bidirectional(id=0, slot_size=1024, c2v_consumer_buf=far, v2c_consumer_buf=far)
        pipe.init_cube()
        entry = pipe.v2c.pop(result_type=pto.tile_type(shape=[16, 16], dtype=pto.f32, memory_space="mat"))
        pipe.c2v.push(entry)
        pipe.v2c.free()
    with pto.section.vector():
        near = pto.reserve_buffer(name="ring", size=4096, location=pto.MemorySpace.VEC, auto=True)
        pipe = pto.pipe.bidirectional(id=0, slot_size=1024, c2v_consumer_buf=near, v2c_consumer_buf=near)
        pipe.init_simd()
        tile = pto.alloc_tile(shape=[16, 16], dtype=pto.f32)
        pto.tile.load(whole(x), tile)
        pto.tile.add(tile, tile, tile)
        pipe.v2c.push(tile)
        back = pipe.c2v.pop(result_type=tile)
        pto.tile.store(back, whole(out))
        pipe.c2v.free()


def test_a_pipe_leads_to_the_cube_and_back() -> None:
    x = np.random.default_rng(1).normal(size=(16, 16)).astype(np.float32)
    out = np.zeros_like(x)
    there_and_back[1, None](x, out)
    np.testing.assert_array_equal(out, 2 * x)


@pto.jit(entry=False, kernel_kind="cube")
def sends(x: pto.PartitionTensorView, slots: pto.TensorView) -> None:
    pipe = pto.pipe.c2v(id=1, gm_slot_tensor=slots, nosplit=True)
    pipe.init_cube()
    tile = pto.alloc_tile(shape=[16, 16], dtype=pto.f32, memory_space="mat")
    pto.tile.load(x, tile)
    slot = pipe.alloc()
    pto.tile.store(tile, pto.partition_view(slot, offsets=[0, 0], sizes=[16, 16]))
    pipe.push(slot)


@pto.jit(entry=False, kernel_kind="vector")
def takes(slots: pto.TensorView, out: pto.PartitionTensorView) -> None:
    pipe = pto.pipe.c2v(id=1, gm_slot_tensor=slots, nosplit=True)
    pipe.init_simd()
    tile = pto.alloc_tile(shape=[16, 16], dtype=pto.f32)
    slot = pipe.pop()
    pto.tile.load(pto.partition_view(slot, offsets=[0, 0], sizes=[16, 16]), tile)
    pipe.free(slot)
    pto.tile.store(tile, out)


@pto.jit(target="a3")
def through_memory(x: F32, room: F32, out: F32) -> None:
    """Two functions, each of a core, and slots in global memory between them."""
    slots = pto.make_tensor_view(room, shape=[16, 16], strides=[16, 1])
    sends(whole(x), slots)
    takes(slots, whole(out))


def test_functions_of_two_cores_meet_in_global_memory() -> None:
    x = np.random.default_rng(2).normal(size=(16, 16)).astype(np.float32)
    out = np.zeros_like(x)
    through_memory[1, None](x, np.zeros((8, 16, 16), np.float32), out)
    np.testing.assert_array_equal(out, x)
    assert "pto.kernel_kind = #pto.kernel_kind<cube>" in through_memory.mlir_text()


@pto.jit()
def talkative(x: F32, n: pto.i32) -> None:
    tile = pto.alloc_tile(shape=[1, 8], dtype=pto.f32, valid_shape=[1, n])
    view = pto.make_tensor_view(x, shape=[1, n], strides=[8, 1])
    pto.tile.load(pto.partition_view(view, offsets=[0, 0], sizes=[1, n]), tile)
    pto.tprint(tile)
    pto.print("n is %d.", n)
    if n > 7:
        pto.trap()


def test_bodies_print_and_end(capfd: pytest.CaptureFixture[str]) -> None:
    x = np.arange(8, dtype=np.float32)
    talkative[1, None](x, 3)
    said = capfd.readouterr().out
    assert "n is 3." in said
    assert "2" in said
    with pytest.raises(TilewrightError, match=r"pto\.trap was reached"):
        talkative[1, None](x, 8)


@pto.jit()
def ragged(x: F32, out: F32, n: pto.i32) -> None:
    """How much of a tile is valid, read while the kernel runs; a lambda over it."""
    tile = pto.alloc_tile(shape=[8, 64], dtype=pto.f32, valid_shape=[n, 64])
    view = pto.make_tensor_view(x, shape=[n, 64], strides=[64, 1])
    pto.tile.load(pto.partition_view(view, offsets=[0, 0], sizes=[n, 64]), tile)
    rows, cols = tile.valid_shape
    area = lambda by: rows * cols * by  # noqa: E731
    pto.scalar.store(pto.cast(pto.cast(area(2), pto.i32), pto.f32), out, 0)


def test_a_valid_shape_is_read_while_the_kernel_runs() -> None:
    out = np.zeros(1, np.float32)
    ragged[1, None](np.zeros((8, 64), np.float32), out, 5)
    assert out[0] == 5 * 64 * 2


@pto.jit()
def yielded(x: F32, out: F32, n: pto.i32) -> None:
    loop = pto.for_(0, n, step=1).carry(total=pto.f32(0), count=pto.f32(0))
    with loop:
        pto.yield_(loop.total + pto.scalar.load(x, loop.iv), loop.count + 1.0)
    with pto.if_(n > 2) as many:
        with many.then_:
            pto.yield_(loop.final("total"), loop.final("count"))
        with many.else_:
            pto.yield_(loop.final("count"), loop.final("total"))
    pto.scalar.store(many.results[0], out, 0)
    pto.scalar.store(many.results[1], out, 1)


@pytest.mark.parametrize("n", [2, 5])
def test_rounds_and_sides_yield_in_order(n: int) -> None:
    x, out = np.arange(1, 6, dtype=np.float32), np.zeros(2, np.float32)
    yielded[1, None](x, out, n)
    total = float(np.sum(x[:n]))
    assert out.tolist() == ([total, n] if n > 2 else [n, total])


@pto.jit()
def kept(x: F32, out: F32, n: pto.i32) -> None:
    """A struct and a buffer that a loop writes and nobody carries."""
    pair = pto.struct_type(("total", pto.f32), ("most", pto.struct_type(("value", pto.f32), ("place", pto.index))))
    state, last = pto.declare_struct(pair), pto.alloc_buffer([2, 4], pto.f32)
    pto.struct_set(state, "total", 0.0)
    pto.struct_set(state, ("most", "value"), -1.0)
    pto.struct_set(state, "most.place", 0)
    for i in range(n):
        value = pto.scalar.load(x, i)
        pto.struct_set(state, "total", pto.struct_get(state, "total") + value)
        pto.local_array_set(last, [i // 4, i % 4], value)
        if value > pto.struct_get(state, "most.value"):
            pto.struct_set(state, "most.value", value)
            pto.struct_set(state, "most.place", i)
    pto.scalar.store(pto.struct_get(state, "total"), out, 0)
    pto.scalar.store(pto.struct_get(state, "most.value"), out, 1)
    pto.scalar.store(pto.cast(pto.cast(pto.struct_get(state, "most.place"), pto.i32), pto.f32), out, 2)
    pto.scalar.store(pto.local_array_get(last, [1, 1]), out, 3)


def test_structs_and_buffers_keep_what_loops_write() -> None:
    x, out = np.array([3, 1, 4, 1, 5, 9, 2, 6], np.float32), np.zeros(4, np.float32)
    kept[1, None](x, out, 8)
    assert out.tolist() == [31, 9, 5, 9]


def test_an_argument_that_says_nothing_is_refused() -> None:
    def body(p: Any, q: Any) -> None:
        acc = pto.castptr(0, pto.ptr(pto.f32, "l0c"))
        pto.mte_l0c_gm(acc, p, 16, 16, 16, 16, clip=1.0)

    with pytest.raises(OperandError, match="`clip` of `pto.mte_l0c_gm` says nothing alone"):
        lines(body)


def test_what_is_yielded_needs_somebody_to_take_it() -> None:
    def body(x: Any) -> None:
        pto.yield_(x)

    with pytest.raises(UnsupportedFeatureError, match="nothing here takes what is yielded"):
        lines(body)
