"""The first program of a process: it imports what it runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

KERNEL = """
import json, sys
from pathlib import Path
import torch, tilewright, tilewright.language as pl
from tilewright import ir

HOME = str(Path(tilewright.__file__).parent)

@pl.jit
def add(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, cols = x.shape
    for r in pl.parallel(0, rows, 64):
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(x, [r, 0], [64, cols]) * 2.0 + pl.load(y, [r, 0], [64, cols]), [r, 0], out)
    return out

FUNCTION = 1  # CO_OPTIMIZED: neither a module nor the body of a class

def is_importing(frame):
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(HOME):
            return True
        frame = frame.f_back
    return False

def note(frame, event, arg):
    code = frame.f_code
    if event == "call" and code.co_flags & FUNCTION and code.co_filename not in ran and not is_importing(frame):
        ran.add(code.co_filename)

ran, before = set(), set(sys.modules)
x, out = torch.ones(128, 64), torch.zeros(128, 64)
sys.setprofile(note)
add(x, x, out)
sys.setprofile(None)
assert (out == 3).all()
modules = {name: module.__file__ for name, module in sys.modules.items() if name.startswith("tilewright")}
loaded = sorted(name for name in modules.keys() - before if not modules[name].endswith("__init__.py"))
print(json.dumps([name for name in loaded if modules[name] not in ran]))
"""

IDLE = {
    "backends.cpu.compute.extents",
    "backends.cpu.compute.lines",
    "backends.cpu.compute.turned_tiles",
    "backends.cpu.host.rare_ops",
    "backends.cpu.host.scalars",
    "backends.scalar_arithmetic",
    "frontend.frames",
    "language._ops",
    "language.extremes",
    "native.interleaving",
    "native.rarities",
    "native.terms",
    "passes.left_tiles",
}
"""Modules of which no function runs: tables, bases and classes of what does run. They are few, and stay few."""


def test_the_first_elementwise_program_imports_what_it_runs(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text(KERNEL)
    done = subprocess.run([sys.executable, tmp_path / "kernel.py"], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    idle = {name.removeprefix("tilewright.") for name in json.loads(done.stdout)}
    assert idle <= IDLE, "import it where it is needed, inside a function: each takes a tenth of a millisecond or more"
