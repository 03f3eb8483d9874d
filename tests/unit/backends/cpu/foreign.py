"""A kernel for other machines: its object, and those of the regions that run its chunks."""

from __future__ import annotations

import tilewright.language as pl
from tilewright.backends.cpu.backend import CPU
from tilewright.frontend.programs import as_program
from tilewright.native.assemble import SOON, assemble
from tilewright.native.machines import Machine
from tilewright.native.regions import WAITING
from tilewright.native.target import Target, baseline
from tilewright.passes.manager import PassManager

KERNEL = """
@pl.function
def kernel(x: pl.Tensor[[20, 32], pl.FP32], h: pl.Tensor[[20, 32], pl.FP16], n: pl.Scalar[pl.INDEX],
           out: pl.Out[pl.Tensor[[20, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.parallel(0, 20, 4):
            tile = pl.load(x, [i, 0], [4, 32])
            peak = pl.row_max(tile)
            shares = pl.exp(pl.row_expand_sub(tile, peak))
            shares = pl.row_expand_div(shares, pl.row_sum(shares))
            halves = pl.cast(pl.load(h, [i, 0], [4, 32]), pl.FP32)
            pl.store(pl.add(pl.mul(shares, halves), pl.cast(n, pl.FP32)), [i, 0], out)
    return out
"""


def made(target: Target) -> tuple[str, bytes]:
    """Return the name of the kernel's entry and its object for a target."""
    lowered = PassManager.get_strategy().run_passes(as_program(pl.parse(f"import tilewright.language as pl\n{KERNEL}")))
    code = CPU().compile(lowered, target=target)
    return code.symbols["kernel"], code.object


def support(machine: Machine, text: str) -> bytes:
    """Return the object of a region on a machine."""
    text = text.replace(WAITING, machine.waiting)
    return assemble(text, baseline(machine), SOON).object
