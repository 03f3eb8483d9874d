"""A kernel of vector ops from end to end: by path, inline, and on pointers of every kind."""

# pyright: reportUnknownParameterType=false, reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy
import pytest
import torch

from tilewright import pto

np = cast("Any", numpy)
FILE = "multiply_add.pto"


def kernel_of(source: str) -> pto.KernelHandle:
    @pto.jit(source=source, target="a5", backend="vpto", mode="explicit")
    def multiply_add(
        acc: pto.ptr(pto.f32, "gm"),
        lhs: pto.ptr(pto.f32, "gm"),
        rhs: pto.ptr(pto.f32, "gm"),
        out: pto.ptr(pto.f32, "gm"),
    ) -> None: ...

    return multiply_add


@pytest.mark.parametrize("source", [FILE, Path(__file__).with_name(FILE).read_text()], ids=["path", "inline"])
@pytest.mark.parametrize("given", ["array", "tensor", "address"])
def test_it_multiplies_and_adds(source: str, given: str) -> None:
    random = np.random.default_rng(29)
    acc, lhs, rhs = (random.uniform(-bound, bound, 1024).astype(np.float32) for bound in (2, 3, 1))
    out = np.zeros(1024, np.float32)
    ways: dict[str, Callable[[Any], Any]] = {
        "array": np.asarray, "tensor": torch.from_numpy, "address": lambda x: x.ctypes.data,
    }  # fmt: skip
    kernel_of(source)[1, None](*map(ways[given], (acc, lhs, rhs, out)))
    np.testing.assert_allclose(out, acc * lhs + rhs, rtol=2e-4, atol=2e-4)


def test_it_may_write_what_it_reads() -> None:
    acc, lhs, rhs = (np.arange(1024, dtype=np.float32) % n for n in (7, 5, 3))
    expected = acc * lhs + rhs
    kernel_of(FILE)[1, None](acc, lhs, rhs, acc)
    assert np.array_equal(acc, expected)


def test_it_says_how_it_is_built() -> None:
    metadata = kernel_of(FILE).build_metadata()
    assert (metadata["level"], metadata["insert_sync"], metadata["target"]) == ("level3", False, "a5")
