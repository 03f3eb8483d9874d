"""Running code of the tests in processes of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[2]


def command(code: str, *arguments: object) -> list[str]:
    """Return the command that runs `code`, which finds the tests' modules and `arguments` in `sys.argv`."""
    paths = [str(TESTS), str(TESTS.parent / "src")]
    return [sys.executable, "-c", f"import sys; sys.path[:0] = {paths}\n{code}", *map(str, arguments)]


def output(code: str, *arguments: object, **environment: str) -> str:
    """Return what a new process prints; it must succeed, and say nothing else."""
    run = subprocess.run(
        command(code, *arguments), timeout=120, capture_output=True, text=True, env={**os.environ, **environment}
    )
    assert (run.returncode, run.stderr) == (0, ""), run.stdout + run.stderr
    return run.stdout


def at_once(count: int, work: str, *arguments: object) -> str:
    """Run `work(number)`, defined by the code `work`, in that many forks of one process; each must return true."""
    code = f"""
import os
{work}
children = []
for number in range({count}):
    child = os.fork()
    if not child:
        good = False
        try:
            good = work(number)
        finally:
            os._exit(0 if good else 1)
    children.append(child)
assert not any(os.waitpid(child, 0)[1] for child in children)
"""
    return output(code, *arguments)
