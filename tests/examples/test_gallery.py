"""The gallery: every kernel agrees with torch on every target, and a line per kernel says how fast it is."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from examples.loading import EXAMPLES, several
from pages import ROOT

import tilewright.language as pl
from tilewright.frontend.kernels import KernelKind
from tilewright.passes.stages import walked
from tilewright.runtime import RunConfig

GALLERY = EXAMPLES / "gallery"
PAGE = ROOT / "docs" / "gallery.md"
NAMES = sorted(path.stem for path in GALLERY.glob("*.py") if path.stem != "timing")
SLOW = {"conv2d", "flash_attention", "moe", "quantized"}
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
    agree(importlib.import_module(name), target)


@pytest.mark.parametrize("name", sorted({*NAMES} - SLOW))
def test_kernels_agree_where_llvm_loads_and_python_calls(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_LOADER", "llvm")
    monkeypatch.setenv("TILEWRIGHT_DISPATCH", "python")
    agree(importlib.reload(importlib.import_module(name)), "cpu")


@pytest.mark.parametrize("name", sorted({*NAMES} - {"conv2d"}))
def test_kernels_keep_at_most_twice_the_tiles_they_name(name: str) -> None:
    module = importlib.import_module(name)
    for kernel_name, kernel in kernels(module).items():
        inputs, make_output = (named(module, what, kernel_name) for what in ("make_inputs", "make_output"))
        given = inputs(1)
        compiled = kernel.compile(*given, *(make_output(*given) if make_output else ()))
        lowered, code = walked(compiled.source).stages[-1].after, compiled.loaded.code
        anatomy = code.backend.anatomy(lowered, [entry.name for entry in lowered.entries], code.target)
        kept = {memory.function: (memory.size, memory.named) for memory in anatomy.memory if memory.named}
        assert all(size <= 2 * tiles for size, tiles in kept.values()), kept


def agree(module: ModuleType, target: str) -> None:
    """Check every kernel of a file against its reference."""
    for kernel, run in kernels(module).items():
        inputs = named(module, "make_inputs", kernel)(1)
        make_output = named(module, "make_output", kernel)
        outputs = make_output(*inputs) if make_output else ()
        expected = several(named(module, "reference", kernel)(*inputs))
        returned = run(*inputs, *outputs, config=RunConfig(platform=target))
        for got, wanted in zip(outputs or several(returned), expected, strict=True):
            torch.testing.assert_close(got, wanted, rtol=CLOSE[wanted.dtype], atol=CLOSE[wanted.dtype])


@pytest.mark.parametrize("name", NAMES)
def test_every_file_can_be_run(name: str) -> None:
    assert callable(importlib.import_module(name).main)


def test_layer_norm_passes_gradcheck() -> None:
    module = importlib.import_module("layer_norm_training")
    layer_norm = module.layer_norm_of(12, pl.FP64)
    inputs = [tensor.double().requires_grad_() for tensor in module.make_inputs(1, rows=9, width=12)]
    assert torch.autograd.gradcheck(lambda *inputs: layer_norm(*inputs)[0], inputs)


def test_attention_need_not_be_causal(target: str) -> None:
    module = importlib.import_module("flash_attention")
    q, k, v, _ = module.make_inputs(1)
    (out,) = module.make_output(q)
    module.flash_attention(q, k, v, False, out, config=RunConfig(platform=target))
    torch.testing.assert_close(out, module.reference(q, k, v, False), rtol=1e-4, atol=1e-4)


def test_the_page_shows_lines_of_every_file() -> None:
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    shown = {Path(section.partition("](")[2].partition(")")[0]).stem: section for section in sections}
    assert sorted(shown) == NAMES
    for name, section in shown.items():
        source = (GALLERY / f"{name}.py").read_text(encoding="utf-8")
        for block in re.findall(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL):
            assert flush(block) in flush(source), name


def flush(text: str) -> str:
    """Return lines without what they are indented by."""
    return "\n".join(line.strip() for line in text.strip().splitlines())
