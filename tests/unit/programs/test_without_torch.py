"""Without torch: NumPy alone is enough to compile, run, keep and measure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright

BLOCK = """
import sys
from importlib.abc import MetaPathFinder

class NoTorch(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, NoTorch())
import numpy as np
import tilewright.language as pl
x = np.arange(64, dtype=np.float32).reshape(8, 8)
"""

KERNEL = """
@pl.jit
def double(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x, [0, 0], [8, 8]) * 2.0, [0, 0], out)
    return out
"""

PROGRAM = '''
from tilewright import ir
compiled = ir.compile(pl.parse("""
import tilewright.language as pl
@pl.program
class Doubles:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[8, 8], pl.FP32], out: pl.Out[pl.Tensor[[8, 8], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.mul(pl.load(x, [0, 0], [8, 8]), 2.0), [0, 0], out)
        return out
"""))
'''

CASES = {
    "a kernel": KERNEL
    + "for _ in range(4):\n    out = np.zeros_like(x); double(x, out)\nassert (double(x) == out).all()",
    "a program": PROGRAM + "out = compiled(x)",
    "an interpreted program": PROGRAM + 'out = ir.compile(compiled.program, platform="interpret")(x)',
    "a saved program": PROGRAM + 'compiled.save("kept"); out = ir.CompiledProgram.load("kept")(x)',
    "tools": PROGRAM
    + """
from tilewright.runtime import TensorSpec, assert_golden, benchmark, validate_ir
out = TensorSpec("out", [8, 8], pl.FP32).create_tensor()
benchmark(compiled, [x, out], rounds=2)
validate_ir(compiled, [x], [2 * x])
assert_golden(out, 2 * x)
""",
}


def run(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run code from a file, where kernels find their own text, in a Python that has no torch."""
    script = folder / "script.py"
    script.write_text(BLOCK + code, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(Path(tilewright.__file__).parents[1])}
    return subprocess.run(
        [sys.executable, str(script)], cwd=folder, env=environment, text=True, capture_output=True, check=False
    )


@pytest.mark.parametrize("case", CASES)
def test_numpy_is_enough(case: str, tmp_path: Path) -> None:
    done = run(CASES[case] + "\nassert (out == 2 * x).all() and 'torch' not in sys.modules; print('done')", tmp_path)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


def test_an_operator_of_torch_says_what_is_missing(tmp_path: Path) -> None:
    done = run(PROGRAM + 'compiled.as_torch_op("mine::double")', tmp_path)
    assert "ModuleNotFoundError: No module named 'torch'" in done.stderr
