"""Random numbers: the same wherever they are drawn, and those that the published generator gives."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
from ops.indexed import compiled, computed, refused
from ops.kernels import kernel, out, tensor

import tilewright.language as pl
from tilewright.errors import AttributeValueError, DTypeMismatchError

np: Any = numpy  # their stubs leave most of what is used here half typed
HALF = (1 << 32) - 1


def block(seed: int, number: int, stream: int) -> list[int]:
    """Return the four words of Philox 4x32-10, as its authors write it down."""
    c, k = [number & HALF, number >> 32 & HALF, stream, 0], [seed & HALF, seed >> 32 & HALF]
    for _ in range(10):
        low, high = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(high >> 32) ^ c[1] ^ k[0], high & HALF, (low >> 32) ^ c[3] ^ k[1], low & HALF]
        k = [(k[0] + 0x9E3779B9) & HALF, (k[1] + 0xBB67AE85) & HALF]
    return c


def word(seed: int, number: int, stream: int) -> int:
    return block(seed, number >> 2, stream)[number & 3]


def uniform(seed: int, number: int) -> float:
    return (word(seed, number, 0) >> 8) / 2**24


def normal(seed: int, number: int) -> float:
    first = number - number % 2
    radius = math.sqrt(-2 * math.log(((word(seed, first, 1) >> 8) + 1) / 2**24))
    angle = 2 * math.pi * (word(seed, first + 1, 1) >> 8) / 2**24
    return radius * (math.sin(angle) if number % 2 else math.cos(angle))


def whole(seed: int, number: int, low: int, high: int) -> int:
    return low + (word(seed, number, 2) * (high - low) >> 32)


@pytest.mark.parametrize("seed", [0, 7, -3, 1 << 40])
def test_elements_are_those_of_their_numbers(seed: int) -> None:
    shape, pitch = (3, 2, 37), 41
    held = np.full(shape, 0.25, np.float32)
    body = (
        "t = pl.rand(seed, [3, 2, 37], offset, pitch, valid_shape=[3, 2, n])\nout = pl.store(t, [0, 0, 0], out)\n"
        "out_whole = pl.store(pl.randint(seed, low, 11, [3, 2, 37], offset, pitch), [0, 0, 0], out_whole)\n"
        "out_pairs = pl.store(pl.rand(seed, [6]), [0], out_pairs)"
    )
    for offset, n in ((0, 37), (5, 30), (-7, 2)):
        found, counts, pairs = computed(
            body, out=held, out_whole=np.zeros(shape, np.int32), out_pairs=np.zeros(6, np.float32), seed=seed,
            offset=offset, pitch=pitch, low=-4, n=n,
        )  # fmt: skip
        for at in np.ndindex(shape):
            number = offset + (2 * at[0] + at[1]) * pitch + at[2]
            assert found[at] == (uniform(seed, number) if at[2] < n else 0.25)
            assert counts[at] == whole(seed, number, -4, 11)
        assert pairs.tolist() == [uniform(seed, number) for number in range(6)]


def test_numbers_may_be_given_for_each_element() -> None:
    counters = np.array([[0, 1, 5, -1, 9, 1 << 30, 3, 3, 17]], np.int32)
    body = (
        "c = pl.load(counters, [0, 0], [1, 9], valid_shape=[1, n])\nout = pl.store(pl.rand(3, c), [0, 0], out)\n"
        "out_whole = pl.store(pl.randint(3, 0, 1 << 31, c), [0, 0], out_whole)"
    )
    for n in (9, 4):
        given = {"out": np.zeros((1, 9), np.float32), "out_whole": np.zeros((1, 9), np.int32)}
        found, counts = computed(body, counters=counters, **given, n=n)
        numbers = counters[0, :n].tolist()
        assert found[0, :n].tolist() == [uniform(3, number) for number in numbers]
        assert counts[0, :n].tolist() == [whole(3, number, 0, 1 << 31) for number in numbers]


def test_normal_numbers_are_those_of_box_and_muller() -> None:
    body = (
        "out = pl.store(pl.randn(seed, [4, 1001], 6), [0, 0], out)\n"
        "c = pl.tile.arange(6, [1, 1001])\nout_each = pl.store(pl.randn(seed, c), [0, 0], out_each)"
    )
    given = {"out": np.zeros((4, 1001), np.float32), "out_each": np.zeros((1, 1001), np.float32)}
    (got, meant), (each, meant_each) = compiled(body, **given, seed=9).run([*given.values(), 9])
    want = np.array([normal(9, 6 + number) for number in range(4004)]).reshape(4, 1001)
    assert (np.abs(meant - want) <= np.spacing(np.abs(want).astype(np.float32))).all()
    for ours, theirs in ((got, meant), (each, meant_each)):
        assert (np.abs(ours - theirs) <= 6 * np.spacing(np.abs(theirs))).all()
    assert each.tobytes() == got[:1].tobytes()
    assert abs(want.mean()) < 0.05 and abs(want.std() - 1) < 0.05


def test_dividing_the_work_otherwise_draws_the_same() -> None:
    at_once = "out = pl.store(pl.rand(1, [6, 50]), [0, 0], out)"
    in_parts = (
        "for i in pl.range(0, 6, 2):\n    for j in pl.range(0, 50, 10):\n"
        "        out = pl.store(pl.rand(1, [2, 10], i * 50 + j, 50), [i, j], out)"
    )
    given = {"out": np.zeros((6, 50), np.float32)}
    assert computed(at_once, **given).tobytes() == computed(in_parts, **given).tobytes()


def test_a_range_without_numbers_is_refused() -> None:
    body = "out = pl.store(pl.randint(1, 5, high, [4]), [0], out)"
    for high in (5, -1):
        for message in refused(body, out=np.zeros(4, np.int32), high=high):
            assert "there is no number from" in message


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("pl.rand(1)", AttributeValueError, "rand needs one of its forms"),
        ("pl.rand(1, pl.load(x, [0], [4]))", DTypeMismatchError, "fp32 elements are not supported here"),
    ],
)
def test_what_cannot_be_drawn_is_refused(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as found:
        kernel(f"out = pl.store({text}, [0], out)", x=tensor(pl.FP32, 4), out=out(pl.FP32, 4))
    assert message in str(found.value)
