"""Cold compile: from a kernel nobody has seen to its first result, LLVM loaded already.

Each round writes a fresh program and runs it on small arrays. The first program of a process pays for what is set up
once, so it is measured in processes of its own, which have imported torch, llvmlite and the language before the clock;
and in others that have not imported llvmlite, so that LLVM's library is loaded while the clock runs.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from budget import Budget
from harness import Timing, fresh_python, timed
from memory import output

from rows import add, matmul, softmax
from tilewright import ir
from tilewright.core.program import Program


@dataclass(frozen=True)
class Kernel:
    """A way to write a program of one size, how many inputs it has, and its budget in milliseconds."""

    program: Callable[[int], Program]
    inputs: int
    size: int
    budget: float


KERNELS = {
    "elementwise": Kernel(add.program, 2, 256, 50),
    "softmax": Kernel(softmax.program, 1, 256, 80),
    "matmul": Kernel(matmul.program, 2, 512, 150),
}


def stages(name: str) -> dict[str, Timing]:
    """Return what each step to the first result takes."""
    kernel = KERNELS[name]
    arrays = [*torch.randn(kernel.inputs, kernel.size, kernel.size), output(kernel.size, kernel.size)]
    made: list[Any] = []
    return {
        "front end": timed(lambda: made.append(kernel.program(kernel.size))),
        "compile": timed(lambda: made.append(ir.compile(made[0], platform="cpu"))),
        "first call": timed(lambda: made[1](*arrays)),
    }


CHILD = """import sys; sys.path.insert(0, {bench!r})
import json{more}
from rows.cold_compile import stages
print(json.dumps({{stage: [t.wall, t.cpu, 0, t.caller] for stage, t in stages({name!r}).items()}}))"""


def first_of_a_process(name: str, more: str) -> dict[str, Timing]:
    """Return the same in a process that has compiled nothing yet, and has imported some more."""
    code = CHILD.format(bench=str(Path(__file__).parent.parent), name=name, more=more)
    return {stage: Timing(*clocks) for stage, clocks in json.loads(fresh_python(code)).items()}


LATER = "Cold compile"
FIRST = {
    "Cold compile, first program of a process": ", llvmlite.binding",
    "Cold compile, first program of a process, LLVM loaded meanwhile": "",
}
"""What processes have imported besides, by what their table is called."""

ROWS = (
    *(Budget(name, LATER, partial(stages, name), k.budget) for name, k in KERNELS.items()),
    *(
        Budget(name, group, partial(first_of_a_process, name, more), k.budget, most_rounds=15)
        for group, more in FIRST.items()
        for name, k in KERNELS.items()
    ),
)
