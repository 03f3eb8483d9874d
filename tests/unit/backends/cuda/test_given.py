"""What kernels give back to the host's functions, without a GPU: their texts run by NumPy between those."""

from __future__ import annotations

import ctypes
from textwrap import indent
from typing import Any

import numpy as np
import pytest
from unit.backends.cuda.test_launches import loaded_entry, recording
from unit.backends.cuda.test_printing import Emulating
from unit.backends.cuda.written import written
from unit.frontend.texts import jitted

import tilewright.language as pl
from tilewright.backends.cuda.host.kernels import Wait
from tilewright.core.program import Program
from tilewright.core.region import whole
from tilewright.errors import ExecutionError, UnsupportedFeatureError
from tilewright.interpret import machine

KERNEL = jitted(
    """
    with pl.at(level=pl.Level.CORE_GROUP):
        turn = 0
        while pl.read(x, [turn, 0]) > 0.5:
            turn = turn + 1
        is_long = turn > 2
        twice = pl.create_tensor([8, 16], dtype=pl.FP32)
        twice = pl.store(pl.load(x, [0, 0], [8, 16]) * 2.0, [0, 0], twice)
    for row in pl.parallel(turn):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(twice, [row, 0], [1, 16])
            if is_long:
                pl.store(t, [row, 0], out)
            else:
                pl.store(t + 100.0, [row, 0], out)
    """,
    "x: pl.Tensor, out: pl.InOut[pl.Tensor]",
)


class Reading(Emulating):
    """A driver that lets the host read the device's memory, and write numbers of 64 bits, too."""

    def __init__(self) -> None:
        super().__init__()
        types = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
        self._keep["cuMemcpyDtoHAsync_v2"] = ctypes.CFUNCTYPE(ctypes.c_int, *types)(self._fetch)
        types = ctypes.c_int64, ctypes.c_int64, ctypes.c_uint32, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
        self._keep["cuMemsetD2D32Async"] = ctypes.CFUNCTYPE(ctypes.c_int, *types)(self._fill)

    def _fill(self, address: int, pitch: int, value: int, width: int, height: int, stream: Any) -> int:
        assert width == 1
        self.memory.store(address + pitch * np.arange(height), np.full(height, value, np.uint32))
        return 0

    def _fetch(self, place: int, address: int, size: int, stream: Any) -> int:
        ctypes.memmove(place, self.memory.load(address + np.arange(size), np.dtype(np.uint8)).tobytes(), size)
        return 0


def left(monkeypatch: pytest.MonkeyPatch, program: Program, given: list[Any]) -> list[Any]:
    """Return what a program leaves in its tensors; a number is given as it is."""
    driver, unit = recording(monkeypatch, Reading()), written(program)
    driver.texts = [text for each in unit.kernels for text in (each.aligned, each.other)]
    words: list[int] = []
    places: list[int] = []
    for arg in given:
        if isinstance(arg, int):
            words.append(arg)
            continue
        places.append(driver.memory.add(arg))
        words += [places[-1], *arg.shape, *(stride // arg.itemsize for stride in arg.strides)]
    loaded_entry(driver, unit)(*words)
    tensors = (arg for arg in given if not isinstance(arg, int))
    return [
        driver.memory.load(place + arg.itemsize * np.arange(arg.size), arg.dtype).reshape(arg.shape)
        for place, arg in zip(places, tensors, strict=True)
    ]


def interpreted(program: Program, given: list[Any]) -> list[Any]:
    """Return what the interpreter leaves in the tensors of a program."""
    held = [arg if isinstance(arg, int) else np.array(arg) for arg in given]
    (entry,) = program.entries
    machine.run(program, entry.name, [arg if isinstance(arg, int) else whole(arg) for arg in held])
    return [arg for arg in held if not isinstance(arg, int)]


VIEWS = {
    "a slice": ("seen = twice[2:8]", "seen"),
    "slices of slices": ("part = twice[2:8]\nseen = part[:, 4:12]", "seen"),
    "turned": ("seen = pl.transpose(twice, 0, 1)", "seen"),
    "both": ("seen = pl.reshape(twice, [16, 8])", "seen twice"),
    "at a number that is given": ("seen = pl.slice(twice, [2, 16], [n, 0])", "seen"),
    "of what is given": ("seen = x[1:7]", "seen"),
}


def viewing(view: str) -> Any:
    """Return a kernel that makes a view of a tensor in one launch, and looks at it in the next."""
    said, names = VIEWS[view]
    stores = "\n".join(
        f"pl.store(pl.load({name}, [row, 1], [1, 6]), [row, {8 * at}], out)" for at, name in enumerate(names.split())
    )
    return jitted(
        f"""
with pl.at(level=pl.Level.CORE_GROUP):
    twice = pl.create_tensor([8, 16], dtype=pl.FP32)
    twice = pl.store(pl.load(x, [0, 0], [8, 16]) * 2.0, [0, 0], twice)
{indent(said, "    ")}
for row in pl.parallel(2):
    with pl.at(level=pl.Level.CORE_GROUP):
{indent(stores, "        ")}
""",
        "x: pl.Tensor, n: pl.Scalar[pl.INDEX, pl.RUNTIME], out: pl.InOut[pl.Tensor]",
    )


@pytest.mark.parametrize("view", VIEWS)
def test_views_of_what_a_kernel_makes_are_those_of_the_host(monkeypatch: pytest.MonkeyPatch, view: str) -> None:
    x = np.random.default_rng(3).normal(size=(8, 16)).astype(np.float32)
    program = viewing(view).specialize(x, 5, x).program
    given: list[Any] = [x, 5, np.zeros_like(x)]
    for got, want in zip(left(monkeypatch, program, given), interpreted(program, given), strict=True):
        assert np.array_equal(got, want) and want.any()


def test_a_view_at_an_offset_that_a_kernel_finds_is_refused_by_name() -> None:
    made = jitted(
        """
        with pl.at(level=pl.Level.CORE_GROUP):
            twice = pl.store(pl.load(x, [0, 0], [8, 16]), [0, 0], pl.create_tensor([8, 16], dtype=pl.FP32))
            turn = 0
            while pl.read(x, [turn, 0]) > 0.5:
                turn = turn + 1
            seen = pl.slice(twice, [1, 16], [turn, 0])
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.store(pl.load(seen, [0, 0], [1, 16]), [0, 0], out)
        """
    )
    x = np.ones((8, 16), np.float32)
    with pytest.raises(UnsupportedFeatureError) as raised:
        written(made.specialize(x, x).program)
    said = str(raised.value)
    assert "gives back what it makes, one that it chooses, or of an extent or at an offset that it finds" in said
    assert "help: give it a tensor to write to, and return that; views are better made where they are used" in said


GRID: Any = pl.parse(
    """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def block(self, n: pl.Scalar[pl.INDEX], out: pl.InOut[pl.Tensor[[128], pl.INT64]]):
        index = pl.tile.get_block_idx()
        pl.write(out, [index], pl.cast(index * 1000 + pl.tile.get_block_num(), pl.INT64))
        fresh = pl.create_tensor([4], dtype=pl.INT64, init_value=3)
        pl.write(fresh, [0], pl.cast(index, pl.INT64))
        return index * 2, fresh

    @pl.function(type=pl.FunctionType.InCore)
    def copied(self, fresh: pl.Tensor[[4], pl.INT64], out: pl.InOut[pl.Tensor[[128], pl.INT64]]):
        pl.write(out, [120], pl.read(fresh, [0]))
        pl.write(out, [121], pl.read(fresh, [3]))

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INDEX], out: pl.InOut[pl.Tensor[[128], pl.INT64]]):
        (last, fresh), task = pl.spmd_submit(self.block, n, out, core_num=n)
        self.copied(fresh, out)
        pl.write(out, [122], pl.cast(last, pl.INT64))
        return out
"""
)


@pytest.mark.parametrize("blocks", [1, 3, 100])
def test_of_several_blocks_the_last_one_gives_back_what_it_makes(monkeypatch: pytest.MonkeyPatch, blocks: int) -> None:
    given: list[Any] = [blocks, np.zeros(128, np.int64)]
    (got,), (want,) = left(monkeypatch, GRID, given), interpreted(GRID, given)
    assert np.array_equal(got, want) and want[122] == 2 * (blocks - 1)


def test_a_grid_without_blocks_gives_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ExecutionError, match="a grid without blocks gives no values"):
        left(monkeypatch, GRID, [0, np.zeros(128, np.int64)])


@pytest.mark.parametrize("turns", [0, 2, 5])
def test_numbers_and_tensors_of_one_kernel_are_those_of_the_next(monkeypatch: pytest.MonkeyPatch, turns: int) -> None:
    x = np.random.default_rng(turns).uniform(0.6, 2.0, (8, 16)).astype(np.float32)
    x[turns, 0] = 0.25
    program = KERNEL.specialize(x, x).program
    unit = written(program)
    assert len(unit.kernels) == 2
    waits = [each.why for each in unit.launches if isinstance(each, Wait)]
    assert waits == ["for numbers that `kernel_incore_0` computes"]
    _, found = left(monkeypatch, program, [x, np.zeros_like(x)])
    wanted = np.zeros_like(x)
    wanted[:turns] = x[:turns] * 2 + (0 if turns > 2 else 100)
    assert np.array_equal(found, wanted)
