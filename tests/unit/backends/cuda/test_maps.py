"""Descriptors that host functions make, without a GPU: a driver writes down those it makes, and those it is given."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from unit.backends.cuda.test_launches import Recorder, X, Y, entry_of, recording

import tilewright.language as pl

Z, M = 3 << 20, pl.dynamic("M")
BOXES = (128, 64, 3, 64, 64, 3)
A, B, OUT = np.ones((256, 192), np.float16), np.ones((192, 64), np.float16), np.ones((256, 64), np.float32)


@pl.jit
def matmul(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.parallel(0, 256, 128):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.tile.full([128, 64], dtype=pl.FP32, value=0.0)
            for k in pl.range(0, 192, 64):
                acc = pl.matmul_acc(acc, pl.load(a, [i, k], [128, 64]), pl.load(b, [k, 0], [64, 64]))
            pl.store(acc, [i, 0], out)
    return out


@pl.jit
def of_any_height(a: pl.Tensor[[M, 192], pl.FP16], b: pl.Tensor, out: pl.Out[pl.Tensor[[M, 64], pl.FP32]]):
    for i in pl.parallel(0, M, 128):
        with pl.at(level=pl.Level.CORE_GROUP):
            acc = pl.tile.full([128, 64], dtype=pl.FP32, value=0.0)
            for k in pl.range(0, 192, 64):
                acc = pl.matmul_acc(acc, pl.load(a, [i, k], [128, 64]), pl.load(b, [k, 0], [64, 64]))
            pl.store(acc, [i, 0], out)
    return out


class Describing(Recorder):
    """A driver whose descriptors are the words that they were made of, and which reads them where kernels start."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[list[list[int]]] = []
        """The descriptors of each launch."""
        self.words: list[list[int]] = []
        """The words beside them."""
        self.meanwhile: Callable[[], None] = lambda: None
        """What another thread does while a descriptor is made."""

    def describe(self, place: int, made: list[int]) -> int:
        self.meanwhile()
        (ctypes.c_int64 * 16).from_address(place)[:] = [*made, *[0] * 9]
        return super().describe(place, made)

    def _read(self, function: int, blocks: int, params: int) -> tuple[int, int, list[int]]:
        read = super()._read(function, blocks, params)
        if function % 2:
            places = (ctypes.c_void_p * 2).from_address(params + 8 * self.counts[function - 1])
            self.seen.append([list((ctypes.c_int64 * 7).from_address(place or 0)) for place in places])
            self.words.append(read[2])
        return read


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Describing:
    return recording(monkeypatch, Describing())


Run = Callable[..., None]


@pytest.fixture
def run(driver: Describing) -> Run:
    """Return the host function of a product; it takes the tensors' addresses, and rows and stride of the first."""
    entry = entry_of(driver, of_any_height, A, B, OUT, boxes=BOXES)

    def call(a: int = X, b: int = Y, rows: int = 256, stride: int = 192) -> None:
        entry(a, rows, 192, stride, 1, b, 192, 64, 64, 1, Z, rows, 64, 64, 1)

    return call


def maps(a: int = X, b: int = Y, rows: int = 256, stride: int = 192) -> list[list[int]]:
    """Return the descriptors of such a call."""
    return [[a, 192, rows, 2 * stride, 64, 128, 3], [b, 64, 192, 128, 64, 64, 3]]


def test_a_kernel_is_given_descriptors_of_what_it_multiplies_and_stores(driver: Describing) -> None:
    entry = entry_of(driver, matmul, A, B, OUT, boxes=(*BOXES, 128, 32, 3))
    shapes = 256, 192, 192, 1, Y, 192, 64, 64, 1, Z, 256, 64, 64, 1
    entry(X, *shapes)
    assert driver.described == [*maps(), [Z, 64, 256, 256, 32, 128, 3]]
    entry(X + 2, *shapes)
    assert [kernel for kernel, *_ in driver.launches] == [0, 1]


def test_tensors_that_are_the_same_are_described_once(driver: Describing, run: Run) -> None:
    for _ in range(5):
        run()
    assert driver.described == maps() and len(driver.launches) == 5 and driver.replaced == 1
    assert all(seen == maps() for seen in driver.seen)


OTHERS: list[dict[str, int]] = [{"a": X + 512}, {"b": Y + 512}, {"rows": 128}, {"stride": 256}]


@pytest.mark.parametrize("other", OTHERS, ids=str)
def test_whatever_of_a_tensor_changes_it_is_described_anew(driver: Describing, run: Run, other: dict[str, int]) -> None:
    """Memory that was freed and used again is but an address that comes back, with the same extents or others."""
    for given in ({}, other, {}, other):
        run(**given)
        assert driver.seen[-1] == maps(**given)


def test_each_of_several_tensors_is_described_once(driver: Describing, run: Run) -> None:
    places = [X + 512 * number for number in range(4)]
    for place in 10 * places:
        run(place)
        assert driver.seen[-1] == maps(place)
    assert len(driver.described) == 4 + 1


def test_a_descriptor_that_cannot_be_made_is_not_kept(driver: Describing, run: Run) -> None:
    for _ in range(2):
        run(X + 2)
    assert [kernel for kernel, *_ in driver.launches] == [1, 1] and driver.described.count(maps(X + 2)[0]) == 2
    run(X)
    assert driver.launches[-1][0] == 0 and driver.seen == [maps()]


def test_a_capture_is_given_descriptors_that_are_held(driver: Describing, run: Run) -> None:
    run()
    driver.capturing = 1
    run()
    run(X + 512)
    assert driver.seen[-2:] == [maps(), maps(X + 512)] and len(driver.single) == 3 and len(driver.described) == 3


def test_what_another_thread_is_about_to_hold_is_described_for_this_one_alone(driver: Describing, run: Run) -> None:
    others = [{"rows": 128}]
    driver.meanwhile = lambda: run(**others.pop()) if others else None
    run()
    assert maps(rows=128) in driver.seen and driver.seen[-1] == maps()
    run()
    assert driver.seen[-1] == maps()


def test_threads_are_given_their_own_descriptors(driver: Describing, run: Run) -> None:
    def work(number: int) -> None:
        for turn in range(50):
            run(X + 512 * (turn % 3), rows=1000 + number)

    with ThreadPoolExecutor(8) as pool:
        assert len([*pool.map(work, range(8))]) == 8
    assert len(driver.launches) == 8 * 50 and len({str(seen) for seen in driver.seen}) == 8 * 3
    for words, seen in zip(driver.words, driver.seen, strict=True):
        address, rows = (next(word for word in words if word in few) for few in (range(X, Y), range(1000, 1008)))
        assert seen == maps(address, rows=rows)


def test_a_program_that_is_loaded_again_describes_its_tensors_itself(driver: Describing) -> None:
    for device in ("cuda:0", "cuda:1", "cuda:0"):
        entry = entry_of(driver, of_any_height, A, B, OUT, boxes=BOXES, device=device)
        entry(X, 256, 192, 192, 1, Y, 192, 64, 64, 1, Z, 256, 64, 64, 1)
        del entry
    assert driver.described == 3 * maps()
