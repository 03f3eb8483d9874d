"""Kernels run line by line: every example, gallery and model gives what the interpreter gives, to the last bit."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from examples.loading import EXAMPLES, LOADED, Example, Kernel, several

import tilewright.language as pl
from tilewright import ir
from tilewright.core.program import Program
from tilewright.frontend.kernels import KernelKind
from tilewright.runtime import RunConfig

INTERPRETED = RunConfig(platform="interpret")
KERNELS = [pytest.param(e, k, id=f"{e.name}-{name}") for e in LOADED.values() for name, k in e.kernels.items()]


def copied(values: tuple[Any, ...]) -> list[Any]:
    return [value.clone() if isinstance(value, torch.Tensor) else value for value in values]


def agree(kernel: pl.JITFunction, inputs: tuple[Any, ...]) -> None:
    """Check that a kernel writes and returns the same line by line as on the interpreter."""
    ours, theirs = copied(inputs), copied(inputs)
    returned = several(kernel.debug(*ours)), several(kernel(*theirs, config=INTERPRETED))
    for got, wanted in zip((*ours, *returned[0]), (*theirs, *returned[1]), strict=True):
        if isinstance(got, torch.Tensor):
            torch.testing.assert_close(got, wanted, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(("example", "kernel"), KERNELS)
def test_an_example_computes_the_same_line_by_line(example: Example, kernel: Kernel) -> None:
    inputs = example.make_inputs(0)
    if not isinstance(kernel, Program):
        agree(kernel, inputs)
        return
    program = ir.compile(kernel, platform="interpret")
    for got, wanted in zip(several(program.debug(*inputs)), several(program(*inputs)), strict=True):
        torch.testing.assert_close(got, wanted, rtol=0, atol=0)


def nan_like(tensor: torch.Tensor, dtype: torch.dtype | None = None) -> torch.Tensor:
    return torch.full_like(tensor, float("nan"), dtype=dtype)


def several_models(module: Any) -> tuple[Any, ...]:
    sizes, inputs = module.make_inputs(0)
    return (*inputs, sizes.kv_heads, sizes.page, nan_like(inputs[0], torch.float32))


def with_output(module: Any) -> tuple[Any, ...]:
    inputs = module.make_inputs(1)
    return (*inputs, nan_like(inputs[0]))


INPUTS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    "paged_attention_multi_config": several_models,
    "llama_block": with_output,
    "qwen3_decode": with_output,
}
FILES = [path for folder in ("gallery", "models") for path in sorted((EXAMPLES / folder).glob("*.py"))]


@pytest.mark.parametrize("path", [p for p in FILES if p.stem not in ("timing", "paging")], ids=lambda p: p.stem)
def test_the_gallery_and_the_models_compute_the_same_line_by_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(path.parent), *sys.path])
    module = importlib.import_module(path.stem)
    found = {name: value for name, value in vars(module).items() if isinstance(value, pl.JITFunction)}
    for name, kernel in found.items():
        if kernel.kind is KernelKind.ENTRY:
            agree(kernel, INPUTS[name](module) if name in INPUTS else gallery_inputs(module, name))


def gallery_inputs(module: Any, name: str) -> tuple[Any, ...]:
    def named(what: str) -> Any:
        return getattr(module, f"{what}_{name}", None) or getattr(module, what, None)

    inputs = named("make_inputs")(1)
    make_output = named("make_output")
    return (*inputs, *cast("tuple[Any, ...]", make_output(*inputs) if make_output else ()))
