"""Copies between memories against NumPy, on both platforms."""

from __future__ import annotations

import pytest
from unit.pto.vectors.running import built, integers, np, numbers, run

from tilewright.errors import ExecutionError, KernelError, UnsupportedFeatureError


def test_bursts_strides_loops_and_padding(target: str) -> None:
    a = integers(1, 288, np.int16)
    plain, padded = np.ones(384, np.int16), np.ones(192, np.int16)
    run("strided_copies", target, a, plain, padded)
    rows = a.reshape(24, 12)[:, :5]
    expected = np.zeros((24, 16), np.int16)
    expected[:, :5] = rows
    np.testing.assert_array_equal(plain.reshape(24, 16), expected)
    filled = np.full((12, 16), -7, np.int16)
    filled[:, 2:7] = rows[:12]
    np.testing.assert_array_equal(padded.reshape(12, 16), filled)


@pytest.mark.parametrize(("rows", "count", "step"), [(5, 7, 20), (8, 16, 16), (1, 1, 0), (0, 4, 4), (3, 0, 8)])
def test_lengths_that_only_the_program_knows(target: str, rows: int, count: int, step: int) -> None:
    a, out, pads = numbers(2, 256), np.full(256, 3, np.float32), np.full(128, 3, np.float32)
    run("runtime_copies", target, a, out, pads, rows, 4 * count, 4 * step)
    expected, padded = np.full(256, 3, np.float32), np.zeros((8, 16), np.float32)
    for row in range(rows):
        expected[row * step : row * step + count] = a[row * step : row * step + count]
        padded[row] = 9.5
        padded[row, :count] = a[row * step : row * step + count]
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(pads.reshape(8, 16), padded)


def test_copies_inside_local_memory_count_blocks_and_gaps(target: str) -> None:
    a, out, over = numbers(3, 128), np.full(128, 3, np.float32), np.zeros(128, np.float32)
    run("local_copies", target, a, out, over, 3)
    expected, source = np.full((16, 8), 3, np.float32), a.reshape(16, 8)
    for burst in range(3):
        expected[4 * burst : 4 * burst + 2] = source[3 * burst : 3 * burst + 2]
    np.testing.assert_array_equal(out.reshape(16, 8), expected)
    moved = source.copy()
    moved[1:8] = source[:7]
    np.testing.assert_array_equal(over.reshape(16, 8), moved)


@pytest.mark.parametrize("blocks", [0, 1, 7, 8, 13, 20])
def test_the_last_of_rows_that_meet_counts(target: str, blocks: int) -> None:
    a, out, inside = integers(7, 1536, np.int8), np.ones(128, np.int8), np.ones(1536, np.int8)
    run("overlapping_copies", target, a, out, inside, blocks)
    expected, copied, length = np.zeros(128, np.int8), np.zeros(1536, np.int8), 32 * blocks
    for batch, row in np.ndindex(2, 4):
        start = 64 * batch + 16 * row
        expected[64 * batch + 6 * row :][:10] = a[start : start + 10]
    copied[:length], copied[length : 2 * length] = a[:length], a[length + 32 : 2 * length + 32]
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(inside, copied)


@pytest.mark.parametrize("name", ["looped_copies", "looped_copies_at_run_time"])
def test_outer_loops_are_settings(target: str, name: str) -> None:
    a, out = integers(4, 256, np.int32), np.ones(96, np.int32)
    run(name, target, a, out)
    expected = np.zeros((3, 4, 8), np.int32)
    for tile in range(3):
        for burst in range(2):
            start = 64 * tile + 32 * burst
            expected[tile, 2 * burst] = a[start : start + 8]
    np.testing.assert_array_equal(out.reshape(3, 4, 8), expected)


def test_outer_loops_of_copies_out(target: str) -> None:
    a, out = integers(6, 192, np.int16), np.ones(320, np.int16)
    run("looped_copies_out", target, a, out)
    expected, source = np.ones(320, np.int16), a.reshape(2, 3, 2, 16)
    for batch, tile, row in np.ndindex(2, 3, 2):
        start = 160 * batch + 48 * tile + 24 * row
        expected[start : start + 16] = source[batch, tile, row]
    np.testing.assert_array_equal(out, expected)


def test_each_block_has_its_own_memory(target: str) -> None:
    a, out = numbers(5, 640).astype(np.float16), np.zeros(640, np.float16)
    run("blocks_of_a_grid", target, a, out, grid=5)
    np.testing.assert_array_equal(out, a * np.float16(5))


def test_arrays_by_index(target: str) -> None:
    out = np.zeros(16, np.int32)
    run("local_arrays", target, out, 12)
    np.testing.assert_array_equal(out, [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 1, 0, 0, 0])


def test_an_index_outside_an_array_is_refused(target: str) -> None:
    with pytest.raises(ExecutionError):
        run("local_arrays", target, np.zeros(64, np.int32), 20)


def test_a_copy_past_the_end_of_global_memory_is_refused(target: str) -> None:
    out = np.zeros(1024, np.float32)
    with pytest.raises(ExecutionError):
        run("vmadd", target, np.zeros(1000, np.float32), out, out.copy(), out.copy())


def test_a_copy_past_local_memory_is_refused_before_it_runs(target: str) -> None:
    text = """module { func.func @f(%a: !pto.ptr<f32, gm>) {
      %z = arith.constant 0 : i64
      %one = arith.constant 1 : i64
      %n = arith.constant 300000 : i64
      %u = pto.castptr %z : i64 -> !pto.ptr<f32, ub>
      pto.mte_gm_ub %a, %u, %z, %n nburst(%one, %n, %n) : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
      return } }"""
    with pytest.raises(KernelError, match="inside the 253952 bytes of `vec`"):
        built(text, target)


PACKED = """module {{
  func.func @k(%a: !pto.ptr<{0}, gm>, %out: !pto.ptr<{0}, gm>{1}) {{
    %c0 = arith.constant 0 : i64
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i64
    %c8 = arith.constant 8 : index
    %t = pto.alloc_tile addr = %c64 : !pto.tile_buf<vec, 2x32x{0}>
    %u = pto.tile_buf_addr %t : !pto.tile_buf<vec, 2x32x{0}> -> !pto.ptr<{0}, ub>
    %p = pto.addptr %a, %c8 : !pto.ptr<{0}, gm> -> !pto.ptr<{0}, gm>
    pto.mte_gm_ub %p, %u, %c0, %c64 nburst(%c1, %c64, %c64)
      : !pto.ptr<{0}, gm>, !pto.ptr<{0}, ub>, i64, i64, i64, i64, i64
    pto.mte_ub_gm %u, %out, %c64 nburst(%c1, %c64, %c64) : !pto.ptr<{0}, ub>, !pto.ptr<{0}, gm>, i64, i64, i64, i64
    return
  }}
}}"""
STORED = {"!pto.hif8": "uint8", "!pto.hif8x2": "uint16", "!pto.f4E1M2x2": "uint8", "!pto.f4E2M1x2": "uint8"}


@pytest.mark.parametrize("element", STORED)
def test_elements_that_nothing_computes_with_are_copied(target: str, element: str) -> None:
    a = integers(7, 128, np.dtype(STORED[element]))
    out = np.zeros(64, a.dtype)
    built(PACKED.format(element, ""), target)(1, a, out)
    moved = 64 // a.itemsize
    np.testing.assert_array_equal(out, [*a[8 : 8 + moved], *np.zeros(64 - moved, a.dtype)])


@pytest.mark.parametrize("element", STORED)
def test_a_scalar_that_nothing_computes_with_is_refused_where_it_stands(target: str, element: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=rf"k\.pto:2:\d+: `%x` is a scalar of {element}"):
        built(PACKED.format(element, f", %x: {element}"), target)
