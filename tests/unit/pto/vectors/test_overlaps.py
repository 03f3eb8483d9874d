"""Loads and stores that meet in memory happen in the order they are written, whatever is fused."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest
from unit.pto.vectors.running import Array, built, np, numbers

SIZE = 320
HEAD = """module { func.func @f(%a: !pto.ptr<f32, gm>) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %bytes = arith.constant 1280 : i64
  %u = pto.castptr %zero : i64 -> !pto.ptr<f32, ub>
  %all = pto.pset_b32 "PAT_ALL" : !pto.mask<b32>
  %some = pto.pset_b32 "PAT_M3" : !pto.mask<b32>
  pto.mte_gm_ub %a, %u, %zero, %bytes nburst(%one, %bytes, %bytes)
    : !pto.ptr<f32, gm>, !pto.ptr<f32, ub>, i64, i64, i64, i64, i64
"""
TAIL = """
  pto.mte_ub_gm %u, %a, %bytes nburst(%one, %bytes, %bytes) : !pto.ptr<f32, ub>, !pto.ptr<f32, gm>, i64, i64, i64, i64
  return
} }"""
VECTOR, MASK, POINTER = "!pto.vreg<64xf32>", "!pto.mask<b32>", "!pto.ptr<f32, ub>"


@dataclass
class Model:
    """A random program, and what it does to memory."""

    memory: Array
    rng: random.Random
    lines: list[str] = field(default_factory=list[str])
    vectors: list[Array] = field(default_factory=list[Array])

    def offset(self) -> int:
        """Return a random offset, written into the program."""
        at = self.rng.randrange(SIZE - 64)
        self.lines.append(f"  %o{len(self.lines)} = arith.constant {at} : index")
        return at

    def load(self) -> None:
        """Load a vector from anywhere."""
        at = self.offset()
        self.lines.append(f"  %v{len(self.vectors)} = pto.vlds %u[%o{len(self.lines) - 1}] : {POINTER} -> {VECTOR}")
        self.vectors.append(self.memory[at : at + 64].copy())

    def add(self) -> None:
        """Add two vectors."""
        i, j = (self.rng.randrange(len(self.vectors)) for _ in range(2))
        name = f"%v{len(self.vectors)}"
        self.lines.append(f"  {name} = pto.vadd %v{i}, %v{j}, %all : {VECTOR}, {VECTOR}, {MASK} -> {VECTOR}")
        self.vectors.append(self.vectors[i] + self.vectors[j])

    def store(self) -> None:
        """Store a vector anywhere, all of it or every third lane."""
        at, i = self.offset(), self.rng.randrange(len(self.vectors))
        mask = self.rng.choice(("all", "some"))
        self.lines.append(f"  pto.vsts %v{i}, %u[%o{len(self.lines) - 1}], %{mask} : {VECTOR}, {POINTER}, {MASK}")
        step = 1 if mask == "all" else 3
        self.memory[at : at + 64 : step] = self.vectors[i][::step]


@pytest.mark.parametrize("seed", range(6))
def test_programs_of_loads_and_stores_that_overlap(target: str, seed: int) -> None:
    start = np.round(numbers(seed, SIZE))
    model = Model(start.copy(), random.Random(seed))
    model.load()
    for _ in range(24):
        model.rng.choice((model.load, model.add, model.store))()
    given = start.copy()
    built(HEAD + "\n".join(model.lines) + TAIL, target)(1, given)
    np.testing.assert_array_equal(given, model.memory)
