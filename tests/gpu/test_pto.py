"""PTO kernels on the GPU: every `.pto` text with a NumPy reference, and launches on tensors of the device."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from examples.loading import EXAMPLES
from gpu.device import from_device, launched, on_device
from unit.pto.tiles.cases import CASES, Case
from unit.pto.tiles.running import KERNELS, is_array, read
from unit.pto.tiles.test_kernels import hold

from tilewright.errors import KernelError
from tilewright.pto.lower import lower
from tilewright.pto.module import Module

torch: Any = pytest.importorskip("torch")


def run(module: Module, case: Case, arguments: Sequence[Any]) -> list[Any]:
    """Return what the arrays among some arguments hold after a launch on the GPU."""
    func = next(f for f in module.funcs() if f.name == case.kernel)
    program = launched(lower(module, func, target=case.target))
    given = [on_device(a.reshape(-1)) if is_array(a) else a for a in arguments]
    program(case.grid, *given)
    torch.cuda.synchronize()
    return [from_device(there, a.dtype) for there, a in zip(given, arguments, strict=True) if is_array(a)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_kernel_gives_what_numpy_gives(case: Case) -> None:
    path = KERNELS / f"{case.kernel}.pto"
    module = read(case.text(path.read_text()), path.name)
    given, expected = case.given(), case.given()
    with np.errstate(all="ignore"):
        case.reference(**expected)
    before, wanted = ([v for v in values.values() if is_array(v)] for values in (given, expected))
    for old, new, want in zip(before, run(module, case, list(given.values())), wanted, strict=True):
        hold(case, case.name, old.reshape(-1), new, want.reshape(-1))


@pytest.fixture
def softmax(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "path", [str(EXAMPLES / "pto"), *sys.path])
    yield importlib.import_module("softmax")
    sys.modules.pop("softmax", None)


def test_a_launch_runs_where_its_tensors_are(softmax: Any) -> None:
    x = 4 * torch.randn(1003, softmax.COLS, generator=torch.Generator().manual_seed(0))
    for kernel in (softmax.softmax, softmax.traced):
        for place in ("cuda", "cpu", "cuda"):
            here = x.to(place)
            out = torch.empty_like(here)
            kernel[softmax.BLOCKS, None](here, out, len(x))
            torch.testing.assert_close(out.cpu(), torch.softmax(x, dim=-1))


def test_pointers_of_two_devices_are_refused_by_name(softmax: Any) -> None:
    x = torch.zeros(16, softmax.COLS)
    with pytest.raises((KernelError, ValueError), match="`x` is on cuda:0 and `out` on cpu"):
        softmax.traced[1, None](x.cuda(), x, 16)
