"""Vector loads and stores, gathers and sorts against NumPy, on both platforms."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import pytest
from unit.pto.vectors.running import built, integers, lanes, np, numbers, run

from tilewright.errors import ExecutionError, KernelError

bf16: Any = ml_dtypes.bfloat16


def test_loads_lay_out_memory(target: str) -> None:
    a, h, c = numbers(1, 128), numbers(2, 256).astype(np.float16), integers(3, 512, np.uint8)
    out, hs, cs = np.zeros(256, np.float32), np.zeros(640, np.float16), np.zeros(1024, np.uint8)
    w, x = np.zeros(256, np.uint16), np.zeros(128, np.uint32)
    run("load_distributions", target, a, h, c, out, hs, cs, w, x)
    np.testing.assert_array_equal(out.reshape(4, 64), [a[3:67], np.full(64, a[3]), np.tile(a[8:16], 8), a[1:65]])
    rows = [np.full(128, h[5]), np.repeat(h[:64], 2), h[::2], np.tile(h[16:32], 8), np.tile(h[2:4], 64)]
    np.testing.assert_array_equal(hs.reshape(5, 128), rows)
    rows = [np.full(256, c[9]), np.repeat(c[:128], 2), c[1:512:2], np.tile(c[32:64], 8)]
    np.testing.assert_array_equal(cs.reshape(4, 256), rows)
    bits = h.view(np.uint16)
    np.testing.assert_array_equal(w.reshape(2, 128), [c[4:132], bits[6:134]])
    np.testing.assert_array_equal(x.reshape(2, 64), [bits[6:70], c[4:68]])


def test_widths_that_differ_from_their_lanes(target: str) -> None:
    a, wide = numbers(24, 128), integers(25, 64, np.int64)
    out, pk, w = np.zeros(256, np.float32), np.full(32, 7, np.float32), np.zeros(96, np.int64)
    run("mixed_widths", target, a, wide, out, pk, w)
    raw, x, y = a.view(np.uint8), wide[:32], wide[32:]
    rows = [np.full(256, raw[12]), np.tile(raw[8:10], 128), raw[::2], raw[1::2]]
    np.testing.assert_array_equal(out.view(np.uint8).reshape(4, 256), rows)
    np.testing.assert_array_equal(pk, np.where(np.arange(32) < 5, a[:64:2], 7))
    with np.errstate(over="ignore"):
        total = np.where(np.arange(32) < 5, x + y, 0)
    np.testing.assert_array_equal(w.reshape(3, 32), [total, np.where(x < y, x, y), np.maximum(x, y)])


def test_a_load_may_begin_in_the_last_lanes_of_a_tile(target: str) -> None:
    x, out = numbers(31, 1000), np.zeros(1000, np.float32)
    run("last_lanes", target, x, out)
    np.testing.assert_array_equal(out, abs(x))


def test_stores_leave_what_a_mask_leaves_out(target: str) -> None:
    a, h = integers(4, 64, np.uint32), numbers(5, 128).astype(bf16)
    norm, one = np.full(64, 7, np.uint32), np.full(64, 7, np.uint32)
    pk, pk4, half, byte = (
        np.full(64, 7, np.uint16),
        np.zeros(64, np.uint8),
        np.full(64, 7, bf16),
        np.full(128, 7, np.uint8),
    )
    run("store_distributions", target, a, h, norm, one, pk, pk4, half, byte)
    few = lanes(64, "VL5")
    np.testing.assert_array_equal(norm, np.where(few, a, 7))
    np.testing.assert_array_equal(one, np.where(np.arange(64) == 3, a[0], 7))
    np.testing.assert_array_equal(pk, np.where(lanes(64, "M3"), a.astype(np.uint16), 7))
    np.testing.assert_array_equal(pk4, a.astype(np.uint8))
    np.testing.assert_array_equal(half.astype(np.float32), np.where(few, h[::2], bf16(7)).astype(np.float32))
    np.testing.assert_array_equal(byte, np.where(lanes(128, "H"), h.view(np.uint16).astype(np.uint8), 7))


def test_two_registers_at_once(target: str) -> None:
    a, h = numbers(6, 128), integers(7, 256, np.int16)
    out, lo = np.zeros(128, np.float32), np.zeros(64, np.float32)
    bl, into = np.zeros(256, np.int16), np.zeros(256, np.int16)
    run("pairs", target, a, h, out, lo, bl, into)
    np.testing.assert_array_equal(lo, a[::2])
    np.testing.assert_array_equal(out, a.reshape(64, 2)[:, ::-1].reshape(-1))
    halves = h.reshape(8, 2, 16).transpose(1, 0, 2).reshape(2, 128)
    np.testing.assert_array_equal(bl.reshape(2, 128), halves)
    np.testing.assert_array_equal(into, halves.T.reshape(-1))


def test_blocks_lie_strides_apart(target: str) -> None:
    a, b = numbers(8, 256), numbers(9, 64)
    out, st = np.zeros(128, np.float32), np.full(256, 5, np.float32)
    run("blocks", target, a, b, out, st)
    source, block = a.reshape(32, 8), np.arange(8)
    first = source[1 + 2 * block].reshape(-1)
    second = np.where(lanes(8, "VL3")[:, None], source[3 * block], 0).reshape(-1)
    np.testing.assert_array_equal(out.reshape(2, 64), [first, second])
    expected = np.full((32, 8), 5, np.float32)
    expected[2 * block] = b.reshape(8, 8)
    expected[1 + 2 * block[:3]] = first.reshape(8, 8)[:3]
    np.testing.assert_array_equal(st.reshape(32, 8), expected)


@pytest.mark.parametrize("stride", [0, 1, 2, 4])
def test_the_last_of_blocks_that_meet_counts(target: str, stride: int) -> None:
    a, out = numbers(23, 64), np.ones(256, np.float32)
    run("blocks_that_meet", target, a, out, stride)
    expected = np.zeros((32, 8), np.float32)
    for block in range(7):
        expected[stride * block] = a.reshape(8, 8)[block]
    np.testing.assert_array_equal(out.reshape(32, 8), expected)


def test_streams_begin_anywhere(target: str) -> None:
    a, out, s = numbers(10, 160), np.zeros(64, np.float32), np.full(96, 5, np.float32)
    run("unaligned", target, a, out, s)
    np.testing.assert_array_equal(out, a[5:69])
    expected = np.full(96, 5, np.float32)
    expected[3:40], expected[40:60] = a[5:42], a[5:25]
    np.testing.assert_array_equal(s, expected)


def test_pointers_masks_and_sums_go_round_a_loop(target: str) -> None:
    a, out, total = numbers(11, 256), np.zeros(256, np.float32), np.zeros(64, np.float32)
    run("moving_pointers", target, a, out, total)
    rows = 2 * a.reshape(4, 64)
    rows[2:, 3:] = 0
    np.testing.assert_array_equal(out.reshape(4, 64), rows)
    np.testing.assert_allclose(total, rows.sum(axis=0), rtol=1e-6)


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 200, 256, 1000])
def test_a_loop_counts_down_what_is_left(target: str, n: int) -> None:
    a, out = numbers(12, 256), np.full(256, 3, np.float32)
    run("tail", target, a, out, n)
    np.testing.assert_array_equal(out, np.where(np.arange(256) < n, a * np.float32(0.5), 3))


def test_elements_by_index(target: str) -> None:
    a, i, c, j = numbers(13, 128), integers(14, 64, np.uint32, 0, 127), integers(15, 64, np.uint8), None
    i[::4] = np.random.default_rng(16).permutation(128)[:16]
    o = (integers(17, 64, np.uint32, 0, 12) * 32).astype(np.uint32)
    j = integers(18, 128, np.uint16, 0, 63)
    out, w, s = np.zeros(192, np.float32), np.zeros(128, np.uint16), np.full(128, 2, np.float32)
    run("gathers", target, a, i, o, c, j, out, w, s)
    few = np.arange(64) < 4
    blocks = np.concatenate([a[n // 4 : n // 4 + 8] for n in o[:4]])
    rows = [a[i], np.where(few, a[i], 0), np.pad(blocks, (0, 32))]
    np.testing.assert_array_equal(out.reshape(3, 64), rows)
    np.testing.assert_array_equal(w, c[j])
    expected = np.full(128, 2, np.float32)
    expected[i[::4]] = a[:64:4]
    np.testing.assert_array_equal(s, expected)


def test_an_index_outside_local_memory_is_refused(target: str) -> None:
    a, i, c, j = numbers(13, 128), np.full(64, 1 << 20, np.uint32), np.zeros(64, np.uint8), np.zeros(128, np.uint16)
    out, w, s = np.zeros(192, np.float32), np.zeros(128, np.uint16), np.zeros(128, np.float32)
    with pytest.raises(ExecutionError):
        run("gathers", target, a, i, np.zeros(64, np.uint32), c, j, out, w, s)


def test_sorting_puts_the_highest_first(target: str) -> None:
    a, i = np.round(numbers(19, 128)), integers(20, 128, np.uint32)
    out, merged = np.zeros(256, np.float32), np.zeros(256, np.float32)
    run("sorting", target, a, i, out, merged)
    order = np.concatenate([32 * r + np.argsort(-a[32 * r : 32 * r + 32], kind="stable") for r in range(4)])
    np.testing.assert_array_equal(out[::2], a[order])
    np.testing.assert_array_equal(out.view(np.uint32)[1::2], i[order])
    whole = order[np.argsort(-a[order], kind="stable")]
    np.testing.assert_array_equal(merged[::2], a[whole])
    np.testing.assert_array_equal(merged.view(np.uint32)[1::2], i[whole])


def test_records_of_halves_have_two_empty_bytes(target: str) -> None:
    a, i, out = numbers(21, 32).astype(np.float16), integers(22, 32, np.uint32), np.ones(128, np.float16)
    run("sorting_f16", target, a, i, out)
    order = np.argsort(-a, kind="stable")
    np.testing.assert_array_equal(out[::4], a[order])
    np.testing.assert_array_equal(out.view(np.uint16)[1::4], 0)
    np.testing.assert_array_equal(out.view(np.uint32)[1::2], i[order])


def test_a_load_past_local_memory_is_refused_before_it_runs(target: str) -> None:
    text = """module { func.func @f(%out: !pto.ptr<f32, gm>) {
      %a = arith.constant 253700 : i64
      %c0 = arith.constant 0 : index
      %u = pto.castptr %a : i64 -> !pto.ptr<f32, ub>
      %v = pto.vlds %u[%c0] : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
      return } }"""
    with pytest.raises(KernelError, match="inside the 253952 bytes of `vec`"):
        built(text, target)


def test_an_unknown_distribution_is_named(target: str) -> None:
    text = """module { func.func @f(%out: !pto.ptr<f32, gm>) {
      %a = arith.constant 0 : i64
      %c0 = arith.constant 0 : index
      %u = pto.castptr %a : i64 -> !pto.ptr<f32, ub>
      %v = pto.vlds %u[%c0] {dist = "SPLT4CHN_B8"} : !pto.ptr<f32, ub> -> !pto.vreg<64xf32>
      return } }"""
    with pytest.raises(KernelError, match="no distribution 'SPLT4CHN_B8'"):
        built(text, target)
