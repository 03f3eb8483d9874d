"""`pl.full`: a tensor, and a tile where it meets tiles."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright.language as pl
from tilewright import ir
from tilewright.core.program import Program
from tilewright.errors import MixedKindsError, OperandError

LOAD, FULL = "t = pl.load(x, [0, 0], [8, 16])", "u = pl.full([8, 16], dtype=pl.FP32, value=2.0)"
MEETINGS = {
    "a sum": (LOAD, f"out = pl.store(t + {FULL[4:]}, [0, 0], out)"),
    "an op": (LOAD, FULL, "u = pl.maximum(u, t)", "out = pl.store(u + 1.0, [0, 0], out)"),
    "a store": (FULL, "out = pl.store(u + 1.0, [0, 0], out)"),
    "a sum in a loop": (
        FULL.replace("2.0", "0.0"),
        "for i in pl.range(3):",
        "    u = u + pl.load(x, [0, 0], [8, 16])",
        "out = pl.store(u, [0, 0], out)",
    ),
    "a tensor": (FULL, "out = pl.assemble(out, pl.add(u, x), [0, 0])"),
}


def kernel(*body: str, before: str = "pass") -> Program:
    lines = "\n".join(f"            {line}" for line in body)
    tensor = "pl.Tensor[[8, 16], pl.FP32]"
    program = pl.parse(f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: {tensor}, out: pl.Out[{tensor}]) -> {tensor}:
        {before}
        with pl.at(level=pl.Level.CORE_GROUP):
{lines}
        return out
""")
    assert isinstance(program, Program)
    return program


@pytest.mark.parametrize("body", MEETINGS.values(), ids=MEETINGS)
def test_it_is_what_it_meets(body: tuple[str, ...]) -> None:
    program, out = kernel(*body), np.zeros((8, 16), np.float32)
    ir.compile(program, platform="interpret")(np.ones_like(out), out)
    assert (out == 3).all() and ir.structural_equal(pl.parse(str(program)), program)


@pytest.mark.parametrize("given", ["pl.FP32, 2.0", "2.0, pl.FP32", "2.0, dtype=pl.FP32", "value=2.0, dtype=pl.FP32"])
@pytest.mark.parametrize("name", ["pl.full", "pl.tile.full"])
def test_its_value_comes_before_or_after_the_element_type(name: str, given: str) -> None:
    body = LOAD, f"out = pl.store(t + {name}([8, 16], {given}), [0, 0], out)"
    assert ir.structural_equal(kernel(*body), kernel(LOAD, body[1].replace(given, "pl.FP32, 2.0")))


def test_two_numbers_are_no_element_type() -> None:
    with pytest.raises(OperandError, match=r"`dtype` of `full` must be an element type, got 1\.5"):
        kernel("out = pl.store(pl.full([8, 16], 1.5, 3), [0, 0], out)")


def test_it_is_not_both() -> None:
    with pytest.raises(MixedKindsError, match="`add` cannot mix Tensor and Tile arguments"):
        kernel(LOAD, FULL, "v = pl.load(u, [0, 0], [8, 16])", "out = pl.store(t + u + v, [0, 0], out)")


def test_outside_of_a_kernel_it_is_a_tensor() -> None:
    with pytest.raises(MixedKindsError, match="`add` cannot mix Tensor and Tile arguments"):
        kernel(LOAD, "out = pl.store(t + u, [0, 0], out)", before=FULL)
