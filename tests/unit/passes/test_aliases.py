"""Aliases: who shares memory, and what a function changes, through views, loops, branches and calls."""

from __future__ import annotations

import pytest
from unit.passes.texts import function, kernel, program

import tilewright.language as pl
from tilewright.core.expr import Var
from tilewright.core.program import Program
from tilewright.passes.aliases import Aliases, Footprint, Footprints, actual_directions
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


def classes(body: str) -> str:
    """Return the names of a kernel's tensors, x and y among them, those that may share memory together."""
    function = kernel(body)["main"]
    aliases = Aliases(function.body)
    found, names = aliases.classes(), dict[Var, set[str]]()
    for var in (*function.params[:2], *aliases.known):
        names.setdefault(found.get(var, var), set()).add(var.name_hint)
    return " ".join(sorted("".join(sorted(each)) for each in names.values()))


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("s = pl.slice(x, [4, 8], [0, 0])\nt = pl.transpose(s, 0, 1)", "stx y"),
        ("s = pl.create_tensor([16, 8], pl.FP32)\nt = pl.slice(s, [4, 8], [0, 0])", "st x y"),
        ("s = pl.add(x, y)\nt = pl.store(pl.load(x, [0, 0], [16, 8]), [0, 0], y)", "s ty x"),
        ("for i, (c,) in pl.range(4, init_values=(x,)):\n    r = pl.yield_(y)", "crxy"),
        ("if b:\n    r = pl.yield_(x)\nelse:\n    r = pl.yield_(y)\ns = pl.slice(y, [4, 8], [0, 0])", "rsxy"),
    ],
)
def test_tensors_that_may_share_memory_are_of_one_class(body: str, expected: str) -> None:
    assert classes(body) == expected


def test_a_buffer_that_stays_in_its_body_is_local() -> None:
    aliases = Aliases(
        kernel("""
    s = pl.create_tensor([16, 8], pl.FP32)
    t = pl.create_tensor([16, 8], pl.FP32)
    pl.write(pl.slice(s, [4, 8], [0, 0]), [0, 0], a)
    return pl.slice(t, [4, 8], [0, 0])
    """)["main"].body
    )
    assert {var.name_hint: aliases.is_local(call) for var, call in aliases.made.items()} == {"s": True, "t": False}


def test_a_footprint_says_what_calls_do_to_parameters() -> None:
    add = "pl.store(pl.load(x, [0, 0], [16, 8]), [0, 0], y, atomic=pl.AtomicType.Add)"
    found = Footprints(
        program(function("inner", add, "InCore"), function("main", "self.inner(x, y, n, a, b)\nreturn x"))
    )
    first, second = frozenset((0,)), frozenset((1,))
    assert found["main"] == Footprint(reads=first, writes=second, adds=second, gives=first)
