"""Writes: what a function changes is found through views, loops, branches and calls, and nothing else is."""

from __future__ import annotations

import pytest

import tilewright.language as pl
from tilewright.core.program import Program
from tilewright.passes.aliases import actual_directions
from tilewright.passes.manager import PassManager

T = "pl.Tensor[[8, 16], pl.FP32]"
HEAD = f"""
import tilewright.language as pl

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def fill(self, x: {T}, into: {T}):
        into = pl.store(pl.load(x, [0, 0], [8, 16]), [0, 0], into)
        return into

    @pl.function(type=pl.FunctionType.InCore)
    def pick(self, x: {T}, y: {T}, n: pl.Scalar[pl.INDEX]):
        if n > 0:
            z = x
        else:
            z = y
        return z

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: {T}, b: {T}, c: {T}, n: pl.Scalar[pl.INDEX]):
"""
BODIES = {
    "nothing": ("return pl.slice(a, [8, 16], [0, 0])", ""),
    "an element": ("pl.write(b, [0, 0], 1.0)", "b"),
    "a view of a view": ("pl.write(pl.transpose(pl.slice(b, [4, 16], [4, 0]), 0, 1), [0, 0], pl.read(a, [0, 0]))", "b"),
    "a subscript": ("c[:, :] = a", "c"),
    "by a call": ("self.fill(a, c)", "c"),
    "what a call gives back": ("d = self.fill(a, b)\npl.write(d, [0, 0], 2.0)", "b"),
    "one of two": ("d = self.pick(a, b, n)\npl.write(d, [0, 0], 2.0)", "ab"),
    "in turns": ("for i in pl.parallel(4):\n    b = self.fill(a, b)", "b"),
    "by blocks": ("for i in pl.spmd(4):\n    b = pl.store(pl.load(a, [i, 0], [1, 16]), [i, 0], b)", "b"),
    "what turns trade": ("d = a\nfor i in pl.range(4):\n    pl.write(d, [0, 0], 1.0)\n    d = b", "ab"),
    "what is copied": ("d = pl.add(a, b)\npl.write(d, [0, 0], 1.0)", ""),
}


@pytest.mark.parametrize("lowered", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_what_is_written_is_found(name: str, lowered: bool) -> None:
    body, written = BODIES[name]
    lines = ["with pl.at(level=pl.Level.CORE_GROUP):", *(f"    {line}" for line in body.split("\n"))]
    if "self." in body or "return" in body or "spmd" in body:
        lines = body.split("\n")
    program = pl.parse(HEAD + "\n".join(f"        {line}" for line in lines) + "\n")
    assert isinstance(program, Program)
    if lowered:
        program = PassManager.get_strategy().run_passes(program)
    entry = program["main"]
    directions = zip(entry.params, actual_directions(program, entry), strict=True)
    assert "".join(p.name_hint[0] for p, d in directions if d.value == "InOut") == written
