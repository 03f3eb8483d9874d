"""Tries an installed tilewright: the README's first lines, or its kernel on NumPy arrays where there is no torch."""

import os
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

README = Path(__file__).parents[1] / "README.md"
ON_NUMPY = """
import numpy as np
x = np.random.default_rng(0).standard_normal((1000, 128), np.float32)
y = softmax(x)
softmax(x, y)
e = np.exp(x - x.max(axis=1, keepdims=True))
np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5)
print(softmax.cache_info())
"""


def lines() -> str:
    """Return what the README says first, as far as this environment goes."""
    first = re.search(r"^```python\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert first is not None
    if find_spec("torch") is not None:
        return first[1]
    kernel, found, _ = first[1].removeprefix("import torch\n").partition("\nx = torch")
    assert found
    return kernel + ON_NUMPY


def main() -> None:
    """Run the lines in a folder of their own, and the command beside this Python."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "readme.py"
        script.write_text(lines(), encoding="utf-8")
        nothing_kept = os.environ | {"TILEWRIGHT_CACHE_DIR": folder}
        subprocess.run([sys.executable, "-I", script], cwd=folder, env=nothing_kept, check=True)
        command = Path(sys.executable).with_name("tilewright")
        page = Path(folder) / "readme.html"
        subprocess.run([command, "explore", script, "--run", "-o", page], cwd=folder, env=nothing_kept, check=True)
        assert "</html>" in page.read_text(encoding="utf-8")
        shown = subprocess.check_output([command, "--version"], cwd=folder, text=True)
    assert shown.split() == ["tilewright", version("tilewright")], shown


if __name__ == "__main__":
    main()
