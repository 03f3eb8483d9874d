"""The gallery: every kernel agrees with torch on every target, and a line per kernel says how fast it is."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
import torch
from examples.loading import EXAMPLES, several

import tilewright.language as pl
from tilewright.frontend.kernels import KernelKind
from tilewright.runtime import RunConfig

GALLERY = EXAMPLES / "gallery"
NAMES = sorted(path.stem for path in GALLERY.glob("*.py") if path.stem != "timing")
CLOSE = {torch.float32: 1e-4, torch.float16: 1e-2, torch.int32: 0, torch.int64: 0}


@pytest.fixture(autouse=True)
def beside_each_other() -> Iterator[None]:
    """Let the files import what they share, as running one as a script does."""
    sys.path.insert(0, str(GALLERY))
    yield
    sys.path.remove(str(GALLERY))


def kernels(module: ModuleType) -> dict[str, pl.JITFunction]:
    found = {name: value for name, value in vars(module).items() if isinstance(value, pl.JITFunction)}
    return {name: kernel for name, kernel in found.items() if kernel.kind is KernelKind.ENTRY}


def named(module: ModuleType, what: str, kernel: str) -> Any:
    """Return a function of a file: the kernel's own, as `reference_w8a32`, or the one for all of its kernels."""
    return getattr(module, f"{what}_{kernel}", None) or getattr(module, what, None)


@pytest.mark.parametrize("name", NAMES)
def test_every_kernel_agrees_with_torch(name: str, target: str) -> None:
    module = importlib.import_module(name)
    for kernel, run in kernels(module).items():
        inputs = named(module, "make_inputs", kernel)(1)
        make_output = named(module, "make_output", kernel)
        outputs = make_output(*inputs) if make_output else ()
        expected = several(named(module, "reference", kernel)(*inputs))
        returned = run(*inputs, *outputs, config=RunConfig(platform=target))
        for got, wanted in zip(outputs or several(returned), expected, strict=True):
            torch.testing.assert_close(got, wanted, rtol=CLOSE[wanted.dtype], atol=CLOSE[wanted.dtype])
