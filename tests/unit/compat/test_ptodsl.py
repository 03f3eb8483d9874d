"""PTODSL's names: scripts that import them run as they are, and what is missing says so by name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "written" / "scale_script.py"
PACKAGE = "tilewright.compat.ptodsl"


def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True)


def test_a_script_runs_as_it_is() -> None:
    done = ran("-m", PACKAGE, str(SCRIPT))
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
    assert ran("-m", PACKAGE).stderr == f"usage: python -m {PACKAGE} (SCRIPT | - | -m MODULE) [ARGUMENT ...]\n"


@pytest.mark.parametrize(
    "code", ["from ptodsl import nothing", "import ptodsl.nothing", "import ptodsl; ptodsl.nothing"]
)
def test_what_is_missing_is_said_by_its_name(code: str) -> None:
    done = ran("-c", f"import {PACKAGE}\n{code}")
    assert "ptodsl.nothing is not in tilewright's compat module" in done.stderr


def test_its_names_are_ours() -> None:
    same = "from ptodsl import pto, scalar, tile, pipe; from tilewright import pto as ours"
    done = ran("-c", f"import {PACKAGE}\n{same}\nprint(pto is ours, scalar is ours.scalar, tile is ours.tile)")
    assert done.stdout == "True True True\n", done.stderr
