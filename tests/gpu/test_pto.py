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
from unit.jit.test_launched_kernels import both
from unit.pto.test_communication import TEXT as COMMUNICATING
from unit.pto.test_communication import views
from unit.pto.tiles.cases import CASES, Case
from unit.pto.tiles.running import KERNELS, is_array, read
from unit.pto.tiles.test_kernels import hold

from tilewright.errors import ExecutionError, KernelError
from tilewright.pto.lower import lower
from tilewright.pto.module import Module
from tilewright.pto.text.parser import parse

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


def test_a_function_launches_kernels_where_its_tensors_are() -> None:
    x = torch.randn(32, 64, device="cuda")
    y = torch.randn(32, 64, device="cuda")
    wanted = y + 3 * (2 * x) + 1
    both(x, y)
    torch.testing.assert_close(y, wanted)


@pytest.mark.parametrize(("fourth", "result"), [(6, 2), (5, 1)])
def test_one_rank_copies_signals_and_combines(fourth: int, result: int) -> None:
    x = np.random.default_rng(0).integers(-9, 10, (3, 4, 16)).astype(np.float32)
    signals = np.array([0, 7, 8, fourth, 0, 0], np.int32)
    module = parse(COMMUNICATING.replace("VIEWS", views()), "ranks.pto")
    program = launched(lower(module, next(module.funcs()), target="a5"))
    given = [on_device(np.ravel(each)) for each in (x, np.zeros((16, 4, 16), np.float32), signals)]
    program(1, *given, 10)
    torch.cuda.synchronize()
    a, b, c = x
    wanted = [a, a + b, c, c, c, c, a, b, c, a, b, a + b + c, x.max(0), x.min(0), c, b]
    np.testing.assert_array_equal(
        from_device(given[1], np.dtype(np.float32)), np.concatenate([np.ravel(each) for each in wanted])
    )
    assert from_device(given[2], np.dtype(np.int32)).tolist() == [10, 7, 8, fourth, 0, result]


def test_waiting_for_what_nobody_sets_is_an_error() -> None:
    module = parse(COMMUNICATING.replace("VIEWS", views()), "ranks.pto")
    program = launched(lower(module, next(module.funcs()), target="a5"))
    given = [
        on_device(np.zeros(count, dtype)) for count, dtype in ((192, np.float32), (1024, np.float32), (6, np.int32))
    ]
    with pytest.raises(ExecutionError, match="nobody sets: one rank runs here"):
        program(1, *given, 11)
        torch.cuda.synchronize()
        program(1, *given, 10)
