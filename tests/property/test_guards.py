"""Guard pages: what reaches outside of an argument, a tile or a tensor ends the process, and names its program."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from property.guards import HEAP, PAGE, FencedArray, Guard, PagedArena, Place
from property.native import check, guard_of

TESTS = Path(__file__).parents[1]

KERNEL = """
import tilewright.language as pl
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def main(self, x: pl.Tensor[[8, 16], pl.FP32], y: pl.InOut[pl.Tensor[[16, 16], pl.FP32]]):
        fresh = pl.create_tensor([8, 16], dtype=pl.FP32)
        fresh = pl.store(pl.load(x, [0, 0], [8, 16]), [0, 0], fresh)
        turned = pl.transpose(pl.load(fresh, [0, 0], [8, 16]), 0, 1)
        pl.store(pl.matmul(turned, pl.reshape(turned, [8, 16])), [0, 0], y)
"""

SMALL = """
from tilewright.backends.cpu.emit import memory
from tilewright.backends.cpu.host import tensors
memory.room_of = lambda type_: type_.nbytes // 4
"""


def ended(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Return how a process ended that runs some code."""
    paths = os.pathsep.join([str(TESTS.parent / "src"), str(TESTS)])
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**kept, "PYTHONPATH": paths, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("place", Place)
@pytest.mark.parametrize("packed", [True, False])
def test_an_array_lies_right_beside_a_page(place: Place, packed: bool) -> None:
    array = np.reshape(np.arange(15, dtype=np.int16), (3, 5))
    held = FencedArray(array, place, packed=packed)
    np.testing.assert_array_equal(held.array, array)
    first, last = held.array.ctypes.data, held.array[2:, 4:].ctypes.data + 2
    assert (first if place is Place.START else last) % PAGE == 0
    assert held.array.flags.c_contiguous == packed
    held.assert_untouched_around()


def test_what_changes_around_an_array_is_found() -> None:
    held = FencedArray(np.zeros((3, 5), np.float32), Place.END, packed=False)
    held.content[held.at + 5 * 4] = 1
    with pytest.raises(AssertionError, match="something around an array was written"):
        held.assert_untouched_around()


def test_an_empty_array_has_a_place_too() -> None:
    FencedArray(np.zeros((0, 5), np.float32), Place.END, packed=True).assert_untouched_around()


@pytest.mark.parametrize(("place", "step"), [(Place.START, -1), (Place.END, 24)])
def test_the_byte_beside_an_array_ends_the_process(place: Place, step: int, tmp_path: Path) -> None:
    code = f"""
import ctypes, numpy as np
from property.guards import *
held = FencedArray(np.zeros(6, np.float32), Place.{place.name}, packed=True)
ctypes.string_at(held.array.ctypes.data, 24)
print("inside", flush=True)
ctypes.string_at(held.array.ctypes.data + {step}, 1)
"""
    process = ended(code, tmp_path)
    assert (process.returncode, process.stdout) == (-signal.SIGSEGV, "inside\n")


@pytest.mark.parametrize("guard", [Guard.ARENAS, Guard.TILES])
def test_a_tile_without_enough_room_ends_the_process_and_names_its_program(guard: Guard, tmp_path: Path) -> None:
    code = f"{SMALL}\nfrom property.native import *\ncheck({KERNEL!r}, 'a tile that is too small', Guard.{guard.name})"
    process = ended(code, tmp_path)
    (note,) = (tmp_path / "tilewright-running").iterdir()
    assert process.returncode == -signal.SIGSEGV
    head, _, text = note.read_text(encoding="utf-8").partition("\n")
    assert head == f"# a tile that is too small, {guard}, run on arguments of seed 0"
    assert text == KERNEL


@pytest.mark.parametrize("guard", Guard)
def test_guards_change_no_result_and_give_all_memory_back(guard: Guard) -> None:
    check(KERNEL, guard=guard)
    assert not HEAP.given


def test_each_part_of_an_arena_lies_beside_a_page() -> None:
    arena = PagedArena()
    parts = [arena.take(nbytes) for nbytes in (100, 100, 5000)]
    assert [(start % PAGE, (start + size) % PAGE) for start, size in parts] == [(PAGE - 128, 0), (0, 128), (3136, 0)]
    assert arena.zones == [(PAGE, PAGE), (3 * PAGE, PAGE), (6 * PAGE, PAGE)]


def test_every_guard_comes_up() -> None:
    assert {guard_of(f"program {number}") for number in range(20)} == set(Guard)
