"""NVIDIA's tools: the assembler and the disassembler that Triton brings along, found without loading it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

ASSEMBLER, DISASSEMBLER = "ptxas", "cuobjdump"
OTHER_ASSEMBLER = "TRITON_PTXAS_PATH"
"""The setting of Triton's that names an assembler to be taken instead of its own, where that one runs."""


def disassembler() -> str:
    """Return where NVIDIA's disassembler is: Triton brings one along, CUDA's toolkit another; nothing without one."""
    own = _own(DISASSEMBLER)
    return own if os.access(own, os.X_OK) else shutil.which(DISASSEMBLER) or ""


def assembler() -> str:
    """Return which assembler Triton takes, by version and place; `none` and why, where none of them runs."""
    wrong: list[str] = []
    for path in _assemblers():
        found = _release(path)
        if found[0].isdigit():
            return f"{found} ({path})" + "".join(f"; {each}" for each in wrong)
        wrong.append(f"{path} {found}")
    return f"none: {', '.join(wrong) or 'Triton brings it along'}"


def _assemblers() -> Iterator[str]:
    """Yield where an assembler should be, in the order in which Triton looks."""
    if other := os.environ.get(OTHER_ASSEMBLER):
        yield other
    if own := _own(ASSEMBLER):
        yield own


def _own(tool: str) -> str:
    """Return where Triton has a tool of NVIDIA's, or nothing without Triton."""
    found = find_spec("triton")
    if found is None or found.origin is None:
        return ""
    return str(Path(found.origin).parent / "backends" / "nvidia" / "bin" / tool)


def _release(path: str) -> str:
    """Return the release of CUDA that an assembler is of, or what is wrong with it."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except FileNotFoundError:
        return "is not there"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"does not run ({error})"
    found = re.search(r"release (\d+\.\d+)", done.stdout)
    return found[1] if found else f"does not run (it ends with {done.returncode})"
