"""Masks against NumPy, on both platforms: as the machine stores them."""

from __future__ import annotations

import pytest
from unit.pto.vectors.running import Array, image, integers, lanes, np, run

PATTERNS = ("ALL", "ALLF", "H", "Q", "M3", "M4", "VL1", "VL16", "VL64")


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_patterns(target: str, bits: int) -> None:
    unused, out = np.zeros(32, np.uint8), np.zeros(32 * 18, np.uint8)
    run(f"patterns_b{bits}", target, unused, out)
    rows = [image(lanes(256 * 8 // bits, pattern), bits) for pattern in PATTERNS]
    np.testing.assert_array_equal(out.reshape(18, 32), np.repeat(rows, 2, axis=0))


def test_logic_under_a_mask(target: str) -> None:
    unused, out = np.zeros(64, np.float32), np.zeros(192, np.uint8)
    run("mask_logic", target, unused, out)
    half, third, most = lanes(64, "H"), lanes(64, "M3"), lanes(64, "VL48")
    rows = [half & third & most, (half | third) & most, half ^ third, np.where(most, half, third), ~half & most, ~third]
    np.testing.assert_array_equal(out.reshape(6, 32), [image(row, 32) for row in rows])


def test_widths(target: str) -> None:
    a, out, u = integers(1, 64, np.uint8), np.zeros(32 * 13, np.uint8), np.zeros(32, np.uint16)
    run("mask_widths", target, a, out, u)
    bits = np.unpackbits(a, bitorder="little")
    x, y = bits[:256], bits[:256:2]
    doubled = np.repeat(bits[:128], 2)
    none = np.zeros(128, np.uint8)
    in_turn = np.stack([x, doubled], axis=1).reshape(-1)
    rows = [
        image(x, 8), image(x, 8), image(doubled, 8), image(bits[::2], 8), image(np.append(y, none), 8),
        image(np.append(none, y), 8), image(x[:128], 16), image(x[128:], 16), image(x, 8), image(x, 8),
        image(in_turn[:256], 8), image(np.append(y[1::2], y[1::2]), 16),
    ]  # fmt: skip
    np.testing.assert_array_equal(out[: 32 * 12].reshape(12, 32), rows)
    np.testing.assert_array_equal(out[32 * 12 :], np.append(np.packbits(x[::2], bitorder="little"), np.zeros(16)))
    packed = np.packbits(y, bitorder="little")
    np.testing.assert_array_equal(u.view(np.uint8), np.concatenate([packed, packed, np.zeros(32)]))


@pytest.mark.parametrize("n", [-3, 0, 5, 64, 100, 128, 256, 1000])
def test_counts_make_masks_of_every_width(target: str, n: int) -> None:
    out, rest = np.zeros(224, np.uint8), np.full(3, -1, np.int32)
    run("masks_of_counts", target, out, rest, n)
    a, b, c = (np.arange(256 // size) < n for size in (1, 2, 4))
    third, fourth = lanes(128, "M3"), lanes(64, "M4")
    in_turn_16, in_turn_32 = (np.stack(pair, axis=1).reshape(-1) for pair in ((b, third), (c, fourth)))
    odd_8, odd_32 = np.append(a, lanes(256, "M3"))[1::2], np.append(c, fourth)[1::2]
    rows = [
        image(a, 8), image(b, 16), image(c, 32), image(in_turn_16[128:], 16), image(in_turn_32[:64], 32),
        image(odd_8, 8), image(odd_32, 32),
    ]  # fmt: skip
    np.testing.assert_array_equal(out.reshape(7, 32), rows)
    np.testing.assert_array_equal(rest, [max(0, n - count) for count in (256, 128, 64)])


def test_a_mask_keeps_the_bits_between_its_lanes(target: str) -> None:
    """Packed, seen in other lanes, combined, chosen, carried by a loop and by a branch."""
    a, out = integers(2, 64, np.uint8), np.zeros(32 * 14, np.uint8)
    run("mask_images", target, a, out)
    x, y = (np.unpackbits(a[at : at + 32], bitorder="little").astype(bool) for at in (0, 32))
    lanes_32, fourth = (np.arange(256) % step == 0 for step in (4, 16))
    none = np.zeros(128, bool)
    packed, packed_fourth = np.append(lanes_32[::2], none), np.append(fourth[::2], none)
    rows = [
        packed, _unpacked(packed), packed_fourth, _unpacked(packed_fourth), x & y, (x | y) & y, (x ^ y) & lanes_32,
        ~x & y, np.where(x, y, lanes_32), x, np.append(np.append(x[::2], none)[::2], none), lanes_32,
        _unpacked(_unpacked(x)), lanes_32 if a[0] < 4 else y,
    ]  # fmt: skip
    np.testing.assert_array_equal(out.reshape(14, 32), [image(row, 8) for row in rows])


def _unpacked(bits: Array) -> Array:
    """Return the lower half of an image, each bit followed by a zero."""
    made = np.zeros(256, bool)
    made[::2] = bits[:128]
    return made


def test_packed_and_unpacked_masks_are_the_words_that_the_machine_has(target: str) -> None:
    a, out = np.zeros(64, np.uint8), np.zeros(32 * 14, np.uint8)
    run("mask_images", target, a, out)
    words = out.view(np.uint32).reshape(14, 8)
    np.testing.assert_array_equal(words[0], [0x55555555] * 4 + [0] * 4)
    np.testing.assert_array_equal(words[1], [0x11111111] * 8)
    np.testing.assert_array_equal(words[2], [0x01010101] * 4 + [0] * 4)
    np.testing.assert_array_equal(words[3], [0x00010001] * 8)
