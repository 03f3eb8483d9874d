"""Calls while somebody else imports torch, whose module is there long before what is in it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import importlib.machinery, sys, types
import numpy as np
import tilewright.language as pl

@pl.jit
def doubled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [4, 4]) * 2.0, [0, 0], out)
    return out

x, out = np.ones((4, 4), np.float32), np.zeros((4, 4), np.float32)
doubled(x, out), doubled(x, out)
half = types.ModuleType("torch")
half.__spec__ = importlib.machinery.ModuleSpec("torch", None)
half.__spec__._initializing = True
sys.modules["torch"] = half
for given in x, x * 3, np.ones((4, 4), np.float64):
    assert (doubled(given, np.zeros_like(given)) is None) and (doubled(given) == 2 * given).all()
assert doubled.compile(x, out)(x).sum() == 32
del sys.modules["torch"]
import torch
y = torch.ones(4, 4)
before = doubled.call_info().direct
for _ in range(9):
    assert doubled(x).sum() == 32 and doubled(y).sum() == 32
print(doubled.call_info().direct - before)
"""


def test_half_a_torch_is_none(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "calls.py"
    script.write_text(SCRIPT)
    run = subprocess.run([sys.executable, "-W", "ignore", script], capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stderr) == (0, "")
    assert int(run.stdout) > 9  # calls are direct again once it is there
