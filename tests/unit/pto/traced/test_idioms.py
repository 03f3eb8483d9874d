"""Idioms of bodies: ops found by name, numbers in lanes, scratch of work items, sums over launches."""
# pyright: basic, reportInvalidTypeForm=false, reportArgumentType=false, reportIndexIssue=false, reportOperatorIssue=false
# Bodies are read: what they call has no types.

from __future__ import annotations

import numpy as np
import pytest

from tilewright import pto
from tilewright.errors import ArgumentCountError, AttributeValueError, KernelError, OperandError
from tilewright.pto import scalar

F32, U32 = pto.ptr(pto.f32, "gm"), pto.ptr(pto.ui32, "gm")
WAYS = {"sub": np.subtract, "max": np.maximum}
NAMES = (*WAYS,)


def met(x, y, out, how):
    """Let two rows of 64 numbers meet by an op that is found by its name."""
    assert how in NAMES, f"no {how}"
    parts = [
        pto.partition_view(pto.make_tensor_view(each, shape=[1, 64], strides=[64, 1]), offsets=[0] * 2, sizes=[1, 64])
        for each in (x, y, out)
    ]
    left, right = (pto.alloc_tile(shape=[1, 64], dtype=pto.float32) for _ in range(2))
    pto.tile.load(parts[0], left)
    pto.tile.load(parts[1], right)
    getattr(pto.tile, how)(left, right, left)
    pto.tile.store(left, parts[2])


@pytest.mark.parametrize("how", WAYS)
def test_an_op_may_be_found_by_its_name(how: str) -> None:
    @pto.jit(target="a3")
    def kernel(x: F32, y: F32, out: F32):
        met(x, y, out, how)

    x, y = np.random.default_rng(0).normal(size=(2, 64)).astype(np.float32)
    out = np.zeros_like(x)
    kernel[1, None](x, y, out)
    np.testing.assert_array_equal(out, WAYS[how](x, y))


@pto.jit(mode="explicit")
def scaled(x: pto.ptr(pto.f32, "gm"), out: pto.ptr(pto.f32, "gm")):
    tile = pto.alloc_tile(shape=[1, 64], dtype=pto.f32, addr=0, blayout="RowMajor")
    source = pto.make_tensor_view(x, shape=[1, 64], strides=[64, 1])
    target = pto.make_tensor_view(out, shape=[1, 64], strides=[64, 1])
    pto.tile.load(pto.partition_view(source, offsets=[0, 0], sizes=[1, 64]), tile)
    pto.set_flag("MTE2", "V", event_id=0)
    pto.wait_flag("MTE2", "V", event_id=0)
    with pto.tileop():
        on, _ = pto.make_mask(pto.f32, 64)
        pto.vsts(pto.vadd(pto.vbr(2.5), pto.vlds(tile[0, 0:]), on), tile[0, 0:], on)
    pto.tile.store(tile, pto.partition_view(target, offsets=[0, 0], sizes=[1, 64]))
    pto.pipe_barrier(pto.Pipe.ALL)


def test_a_python_float_in_all_lanes_is_an_f32() -> None:
    x = np.arange(64, dtype=np.float32)
    out = np.zeros_like(x)
    scaled[1, None](x, out)
    np.testing.assert_array_equal(out, x + 2.5)


@pto.jit()
def sorted_row(x: F32, i: U32, values: F32, places: U32):
    def row(p, cols):
        view = pto.make_tensor_view(p, shape=[1, cols], strides=[cols, 1])
        return pto.partition_view(view, offsets=[0, 0], sizes=[1, cols])

    keys, numbers = pto.alloc_tile(shape=[1, 128], dtype=pto.f32), pto.alloc_tile(shape=[1, 128], dtype=pto.ui32)
    records, merged = (pto.alloc_tile(shape=[1, 256], dtype=pto.f32) for _ in range(2))
    bits = pto.alloc_tile(shape=[1, 256], dtype=pto.ui32)
    best, at = pto.alloc_tile(shape=[1, 128], dtype=pto.f32), pto.alloc_tile(shape=[1, 128], dtype=pto.ui32)
    pto.tile.load(row(x, 128), keys)
    pto.tile.load(row(i, 128), numbers)
    pto.tile.sort32(keys, numbers, records)
    pto.tile.mrgsort(records, merged, 64)
    pto.tile.mov(merged, bits)
    pto.tile.gather(merged, best, mask_pattern="P0101", axis="row")
    pto.tile.gather(bits, at, mask_pattern="P1010", axis="row")
    pto.tile.store(best, row(values, 128))
    pto.tile.store(at, row(places, 128))


def test_records_are_merged_and_moved_bit_by_bit() -> None:
    x, i = np.random.default_rng(1).normal(size=128).astype(np.float32), np.arange(128, dtype=np.uint32)
    values, places = np.zeros_like(x), np.zeros_like(i)
    sorted_row[1, None](x, i, values, places)
    order = np.argsort(-x, kind="stable")
    np.testing.assert_array_equal(values, x[order])
    np.testing.assert_array_equal(places, order)


@pto.simt
def normalized(x, w, out, scratch, *, threads: pto.const_expr = 64, lanes: pto.const_expr = 4):
    first = pto.get_tid_x() * lanes
    held, total = pto.alloc_buffer((lanes,), pto.f32), pto.alloc_buffer((1,), pto.f32)
    scalar.store(scalar.load(x, first, contiguous=lanes), held, 0)
    scalar.store(pto.const(0.0, dtype=pto.f32), total, 0)
    for at in range(0, lanes):
        number = scalar.load(held, at)
        scalar.store(scalar.load(total, 0) + number * number, total, 0)
    mean = pto.simt_allreduce_sum(scalar.load(total, 0), threads=threads, scratch=scratch) / (threads * lanes)
    factor = pto.Vec(pto.f32, lanes, init=1.0 / pto.sqrt(mean))
    scalar.store(scalar.load(held, 0, contiguous=lanes) * factor * scalar.load(w, first, contiguous=lanes), out, first)


@pytest.mark.parametrize(("threads", "lanes"), [(16, 2), (32, 4), (64, 4), (256, 8)])
def test_work_items_keep_lanes_of_their_own_and_sum_over_the_launch(threads: int, lanes: int) -> None:
    @pto.jit(mode="explicit")
    def kernel(x: F32, w: F32, out: F32):
        scratch = pto.castptr(pto.const(0, dtype=pto.ui64), pto.ptr(pto.f32, "ub"))
        normalized[threads, 1, 1](x, w, out, scratch, threads=threads, lanes=lanes)

    x, w = np.random.default_rng(2).normal(size=(2, threads * lanes)).astype(np.float32)
    out = np.zeros_like(x)
    kernel[1, None](x, w, out)
    np.testing.assert_allclose(out, x / np.sqrt((x * x).mean()) * w, rtol=1e-4, atol=1e-5)


WORDS = {"sum": np.sum, "max": np.max, "min": np.min}


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize(
    ("threads", "scale", "first"), [(8, 1, 0), (32, 4, 0), (64, 2, 0), (128, 1, 0), (12, 3, 0), (96, 1, 0), (4, 4, 0)]
)
def test_groups_of_work_items_reduce_what_is_equal_modulo_the_scale(
    word: str, threads: int, scale: int, first: int
) -> None:
    items = max(threads, 32) if threads & (threads - 1) == 0 else threads

    @pto.simt
    def body(x, out, scratch):
        at = pto.get_tid_x()
        reduce = getattr(pto, f"simt_allreduce_{word}")
        scalar.store(
            reduce(scalar.load(x, at), threads=threads, scale=scale, thread_offset=first, scratch=scratch), out, at
        )

    @pto.jit(mode="explicit")
    def kernel(x: F32, out: F32):
        body[items, 1, 1](x, out, pto.castptr(pto.const(0, dtype=pto.i64), pto.ptr(pto.f32, "ub")))

    x = np.random.default_rng(3).integers(-9, 9, items).astype(np.float32)
    out = np.zeros_like(x)
    kernel[1, None](x, out)
    groups = x.reshape(items // threads, threads // scale, scale)
    wanted = np.broadcast_to(WORDS[word](groups, axis=1, keepdims=True), groups.shape)
    np.testing.assert_array_equal(out, wanted.reshape(-1))


def refused(body) -> KernelError:
    with pytest.raises(KernelError) as caught:
        pto.jit(mode="explicit")(body).mlir_text()
    return caught.value


def test_lanes_of_two_lengths_do_not_meet() -> None:
    def kernel(x: F32):
        scalar.store(pto.Vec(pto.f32, 3) + pto.Vec(pto.f32, 4), x, 0)

    error = refused(kernel)
    assert isinstance(error, OperandError) and "3 and 4 lanes" in str(error)


def test_a_reduction_over_warps_needs_scratch() -> None:
    @pto.simt
    def body(x):
        scalar.store(pto.simt_allreduce_sum(scalar.load(x, 0), threads=64), x, 0)

    def kernel(x: F32):
        body[64, 1, 1](x)

    error = refused(kernel)
    assert isinstance(error, ArgumentCountError) and "needs `scratch`" in str(error)


def test_threads_are_a_multiple_of_the_scale() -> None:
    def kernel(x: F32):
        scalar.store(pto.simt_allreduce_sum(scalar.load(x, 0), threads=6, scale=4), x, 0)

    assert isinstance(refused(kernel), AttributeValueError)


def test_rows_and_tiles_go_in_pairs() -> None:
    @pto.jit()
    def swapped(x: F32, out: F32, n: pto.i32):
        ends = [
            pto.partition_view(
                pto.make_tensor_view(each, shape=[2, 64], strides=[64, 1]), offsets=[0, 0], sizes=[2, 64]
            )
            for each in (x, out)
        ]
        tiles = [pto.alloc_tile(shape=[2, 64], dtype=pto.f32) for _ in range(2)]
        for op, tile, view in zip((pto.tile.load, pto.tile.store), tiles, ends, strict=True):
            if op is pto.tile.load:
                op(view, tile)
                pto.tile.add(tile, tile, tiles[1])
            else:
                op(tile, view)
        for place, number in enumerate(reversed((n, n + 1, n + 2))):
            scalar.store(pto.f32(number), out, place)

    x, out = np.ones((2, 64), np.float32), np.zeros((2, 64), np.float32)
    swapped[1, None](x, out, 5)
    assert out.ravel()[:4].tolist() == [7, 6, 5, 2] and (out[1] == 2).all()


PAIR = pto.struct_type(("total", pto.f32), pto.struct_type(pto.i32))


def test_a_struct_is_told_outside_of_the_body() -> None:
    @pto.jit()
    def kept(out: F32, n: pto.i32):
        state = pto.declare_struct(PAIR)
        pto.struct_set(state, "total", 2.5)
        pto.struct_set(state, (1, 0), n)
        scalar.store(pto.struct_get(state, "total") + pto.cast(pto.struct_get(state, (1, 0)), pto.f32), out)

    out = np.zeros(1, np.float32)
    kept[1, None](out, 4)
    assert out[0] == 6.5
    with pytest.raises(TypeError, match=r"a field of pto\.struct_type is a scalar such as pto\.f32 or a struct"):
        pto.struct_type(("total", int))
