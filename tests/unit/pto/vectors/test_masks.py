"""Masks against NumPy, on both platforms: as the machine stores them."""

from __future__ import annotations

import pytest
from unit.pto.vectors.running import PLATFORMS, image, integers, lanes, np, run

pytestmark = pytest.mark.parametrize("platform", PLATFORMS)

PATTERNS = ("ALL", "ALLF", "H", "Q", "M3", "M4", "VL1", "VL16", "VL64")


@pytest.mark.parametrize("bits", [8, 16, 32])
def test_patterns(platform: str, bits: int) -> None:
    unused, out = np.zeros(32, np.uint8), np.zeros(32 * 18, np.uint8)
    run(f"patterns_b{bits}", platform, unused, out)
    rows = [image(lanes(256 * 8 // bits, pattern), bits) for pattern in PATTERNS]
    np.testing.assert_array_equal(out.reshape(18, 32), np.repeat(rows, 2, axis=0))


def test_logic_under_a_mask(platform: str) -> None:
    unused, out = np.zeros(64, np.float32), np.zeros(192, np.uint8)
    run("mask_logic", platform, unused, out)
    half, third, most = lanes(64, "H"), lanes(64, "M3"), lanes(64, "VL48")
    rows = [half & third & most, (half | third) & most, half ^ third, np.where(most, half, third), ~half & most, ~third]
    np.testing.assert_array_equal(out.reshape(6, 32), [image(row, 32) for row in rows])


def test_widths(platform: str) -> None:
    a, out, u = integers(1, 64, np.uint8), np.zeros(32 * 13, np.uint8), np.zeros(32, np.uint16)
    run("mask_widths", platform, a, out, u)
    bits = np.unpackbits(a, bitorder="little")
    x, y, z = bits[:256], bits[:256:2], bits[:256:4]
    doubled = np.repeat(bits[:128], 2)
    none = np.zeros(64, np.uint8)
    in_turn = np.stack([x, doubled], axis=1).reshape(-1)
    rows = [
        image(y, 16), image(z, 32), image(doubled, 8), image(bits[::2], 8), image(np.append(z, none), 16),
        image(np.append(none, z), 16), image(y[:64], 32), image(y[64:], 32), image(y, 16), image(z, 32),
        image(in_turn[:256], 8), image(np.append(y[1::2], y[1::2]), 16),
    ]  # fmt: skip
    np.testing.assert_array_equal(out[: 32 * 12].reshape(12, 32), rows)
    np.testing.assert_array_equal(out[32 * 12 :], np.append(np.packbits(x[::2], bitorder="little"), np.zeros(16)))
    packed = np.packbits(y, bitorder="little")
    np.testing.assert_array_equal(u.view(np.uint8), np.concatenate([packed, packed, np.zeros(32)]))


@pytest.mark.parametrize("n", [-3, 0, 5, 64, 100, 128, 256, 1000])
def test_counts_make_masks_of_every_width(platform: str, n: int) -> None:
    out, rest = np.zeros(224, np.uint8), np.full(3, -1, np.int32)
    run("masks_of_counts", platform, out, rest, n)
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
