"""Races: turns that touch one element, one of them writing, are reported with both lines; turns that do not are not."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tilewright.language as pl
from tilewright.core.program import Program
from tilewright.core.region import whole
from tilewright.errors import RaceError
from tilewright.interpret.checked import CheckedMachine, run_checked
from tilewright.interpret.shadow import Shadows

PARAMETERS = (
    "x: pl.Tensor[[16, 8], pl.INT32], y: pl.InOut[pl.Tensor[[16, 8], pl.INT32]], "
    "z: pl.InOut[pl.Tensor[[16, 8], pl.INT32]]"
)


def program_of(body: str, helpers: str = "", kind: str = "Orchestration") -> Program:
    lines = "\n".join(f"        {line}" for line in body.strip("\n").splitlines())
    text = f"""
import tilewright.language as pl
@pl.program
class P:
{helpers}
    @pl.function(type=pl.FunctionType.{kind})
    def main(self, {PARAMETERS}):
{lines}
"""
    found = pl.parse(text)
    assert isinstance(found, Program)
    return found


def arguments() -> list[NDArray[Any]]:
    return [np.reshape(np.arange(128, dtype=np.int32), (16, 8)) for _ in range(3)]


def run(body: str, helpers: str = "") -> None:
    run_checked(program_of(body, helpers), "main", [whole(array) for array in arguments()])


CORE = "with pl.at(level=pl.Level.CORE_GROUP):"
GRID = """
    @pl.function(type=pl.FunctionType.InCore)
    def block(self, target: pl.InOut[pl.Tensor[[16, 8], pl.INT32]]):
        b = pl.get_block_idx()
        pl.store(pl.load(target, [b * 4, 0], [4, 8]), [b * {step}, 0], target)
"""

RACES = {
    "turns that write one place": (
        """
for i in pl.parallel(4):
    pl.write(y, [0, 0], i)
""",
        "turn i = 1 writes y[0, 0], which turn i = 0 writes",
    ),
    "turns that add to one place without an atomic": (
        f"""
for i in pl.parallel(4):
    {CORE}
        pl.store(pl.load(y, [0, 0], [1, 8]) + pl.load(x, [i, 0], [1, 8]), [0, 0], y)
""",
        "turn i = 1 reads y[0, 0], which turn i = 0 writes",
    ),
    "a turn that reads what the next one writes": (
        f"""
for i in pl.parallel(3):
    {CORE}
        pl.store(pl.load(y, [i * 4, 0], [5, 8]), [i * 4, 0], y, shapes=[5, 8])
""",
        "turn i = 1 reads y[4, 0], which turn i = 0 writes",
    ),
    "a write where another turn has read": (
        """
for i in pl.parallel(0, 4):
    n = pl.read(y, [i + 1, 3])
    pl.write(y, [i, 3], n)
""",
        "turn i = 1 writes y[1, 3], which turn i = 0 reads",
    ),
    "an atomic add where another turn reads": (
        f"""
for i in pl.parallel(4):
    {CORE}
        t = pl.load(y, [i, 0], [1, 8])
        pl.store(t, [0, 0], y, atomic=pl.AtomicType.Add)
""",
        "turn i = 1 adds to y[0, 0], which turn i = 0 reads",
    ),
    "a write through a view": (
        """
w = pl.transpose(y, 0, 1)
for i in pl.parallel(4):
    if i == 0:
        pl.write(y, [3, 2], 1)
    pl.write(w, [i, 3], 1)
""",
        "turn i = 2 writes w[2, 3], which turn i = 0 writes",
    ),
    "a tensor assembled where the next one is": (
        """
for i in pl.parallel(3):
    y = pl.assemble(y, pl.slice(x, [2, 8], [i, 0]), [i, 0])
""",
        "turn i = 1 writes y[1, 0], which turn i = 0 writes",
    ),
    "a source that another turn writes": (
        """
for i in pl.parallel(2):
    z[i * 8:i * 8 + 8, :] = pl.slice(y, [8, 8], [i * 4, 0])
    pl.write(y, [i * 8 + 4, 0], 7)
""",
        "turn i = 1 reads",
    ),
    "a tensor computed from what another turn writes": (
        f"""
for i in pl.parallel(2):
    {CORE}
        z[i * 8:i * 8 + 8, :] = pl.slice(y, [8, 8], [i * 4, 0]) + 1
        pl.write(y, [i * 8 + 4, 0], 7)
""",
        "turn i = 1 reads",
    ),
    "inner turns of one outer turn": (
        """
for i in pl.parallel(2):
    for j in pl.parallel(3):
        pl.write(y, [i, 0], j)
""",
        "turn j = 1 writes y[0, 0], which turn j = 0 writes",
    ),
    "inner turns of two outer turns": (
        """
for i in pl.parallel(2):
    for j in pl.parallel(3):
        pl.write(y, [j, 0], i)
""",
        "turn i = 1 writes y[0, 0], which turn i = 0 writes",
    ),
    "loops inside turns": (
        """
for i in pl.parallel(2):
    for j in pl.range(3):
        pl.write(y, [i + j, 0], i)
""",
        "turn i = 1 writes y[1, 0], which turn i = 0 writes",
    ),
    "blocks of a grid in place": (
        """
for b in pl.spmd(4):
    pl.store(pl.load(x, [b, 0], [2, 8]), [b, 0], y)
""",
        "block 1 writes y[1, 0], which block 0 writes",
    ),
    "the first reader is remembered, not the last": (
        """
for i in pl.parallel(3):
    if i < 2:
        n = pl.read(y, [0, 0])
        pl.write(z, [i, 0], n)
    else:
        pl.write(y, [0, 0], 1)
""",
        "turn i = 2 writes y[0, 0], which turn i = 0 reads",
    ),
}


@pytest.mark.parametrize(("body", "message"), RACES.values(), ids=RACES.keys())
def test_turns_that_meet_are_reported(body: str, message: str) -> None:
    with pytest.raises(RaceError, match=re.escape(message)):
        run(body)


@pytest.mark.parametrize(
    "launch", ["_, tid = pl.spmd_submit(self.block, y, core_num=4)", "with pl.spmd(4): self.block(y)"]
)
def test_blocks_of_a_kernel_that_meet_are_reported(launch: str) -> None:
    launch = launch.replace(": ", ":\n    ")
    run(launch, GRID.format(step=4))
    with pytest.raises(RaceError, match="block 1 writes target"):
        run(launch, GRID.format(step=3))


INDEPENDENT = {
    "turns with rows of their own": f"""
for i in pl.parallel(4):
    {CORE}
        pl.store(pl.load(y, [i * 4, 0], [4, 8]) + 1, [i * 4, 0], y)
""",
    "columns of a transposed view": """
w = pl.transpose(y, 0, 1)
for i in pl.parallel(8):
    pl.write(w, [i, 3], pl.read(y, [4, i]))
""",
    "atomic adds to one place": f"""
for i in pl.parallel(4):
    {CORE}
        pl.store(pl.load(x, [i, 0], [1, 8]), [0, 0], y, atomic=pl.AtomicType.Add)
""",
    "reads of one place": """
for i in pl.parallel(4):
    pl.write(y, [i, 0], pl.read(x, [0, 0]))
""",
    "one loop after the other": """
for i in pl.parallel(4):
    pl.write(y, [i, 0], i)
for i in pl.parallel(3):
    pl.write(z, [i, 0], pl.read(y, [i + 1, 0]))
for i in pl.parallel(4):
    pl.write(y, [3 - i, 0], i)
""",
    "one inner loop after the other": """
for i in pl.parallel(2):
    for j in pl.parallel(4):
        pl.write(y, [i * 4 + j, 0], j)
    for j in pl.parallel(3):
        pl.write(z, [i * 4 + j, 0], pl.read(y, [i * 4 + j + 1, 0]))
    pl.write(y, [i * 4, 0], 9)
""",
    "turns of a sequential loop": """
for i in pl.range(4):
    pl.write(y, [0, 0], pl.read(y, [0, 0]) + i)
""",
    "a tensor that each turn makes": """
for i in pl.parallel(64):
    scratch = pl.create_tensor([64], dtype=pl.INT32, init_value=0)
    pl.write(scratch, [0], i)
    pl.write(y, [i % 16, i // 16], pl.read(scratch, [0]))
""",
    "a shape that is asked for while others write": """
for i in pl.parallel(4):
    pl.write(y, [i, 0], pl.cast(pl.tensor.dim(y, 0), pl.INT32))
""",
    "nothing, stored where others write": """
for i in pl.parallel(4):
    y = pl.assemble(y, pl.slice(x, [0, 8], [0, 0]), [0, 0])
""",
}


@pytest.mark.parametrize("body", INDEPENDENT.values(), ids=INDEPENDENT.keys())
def test_turns_that_do_not_meet_are_no_race(body: str) -> None:
    run(body)


def test_arguments_that_share_memory_share_what_is_remembered() -> None:
    body = """
for i in pl.parallel(2):
    if i == 0:
        pl.write(y, [0, 0], 1)
    else:
        pl.write(z, [0, 0], 1)
"""
    memory = np.zeros((17, 8), np.int32)
    for y, z in [(memory[:16], memory[:16]), (memory[1:], memory[1:][:16])]:
        with pytest.raises(RaceError, match=r"turn i = 1 writes z\[0, 0\]"):
            run_checked(program_of(body), "main", [whole(np.array(memory[:16])), whole(y), whole(z)])
    run_checked(program_of(body), "main", [whole(np.array(memory[:16])), whole(memory[:16]), whole(memory[1:])])


def test_a_machine_that_found_a_race_leaves_nothing_behind() -> None:
    with pytest.raises(RaceError) as caught:
        run(RACES["turns that write one place"][0])
    run(INDEPENDENT["turns with rows of their own"])
    assert caught.value is not None


def test_memory_outside_numpy_has_one_shadow_however_it_is_seen() -> None:
    memory = bytearray(64)
    shadows = Shadows(1)
    first, second = np.frombuffer(memory, np.uint8, 16, 8), np.frombuffer(memory, np.uint8, 16, 16)
    shadows.beside(first).beside(0, first)[...] = 7
    shadows.beside(second).beside(0, second)[4:] = 9
    seen = np.frombuffer(memory, np.uint8, 24, 8)
    assert shadows.beside(seen).beside(0, seen).ravel().tolist() == [7] * 12 + [9] * 12
    assert shadows.beside(first) is shadows.beside(second)


def test_a_shadow_ends_with_its_memory() -> None:
    shadows = Shadows(1)
    array = np.zeros(8, np.int32)
    shadows.beside(array[2:]).beside(0, array)[...] = 1
    assert len(shadows.by_start) == 1
    del array
    assert not shadows.by_start


def test_a_machine_runs_functions_that_call_each_other() -> None:
    helpers = GRID.format(step=4)
    machine = CheckedMachine(program_of("for i in pl.parallel(1):\n    self.block(y)", helpers))
    machine.run("main", [whole(array) for array in arguments()])
