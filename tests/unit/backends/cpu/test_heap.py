"""The heap: a program that is refused memory says so at its own line, and the next call finds everything in order."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from ops.launched import launched
from unit.backends.cpu.running import floats, kernel, native

from tilewright.errors import ExecutionError, UnsupportedFeatureError

START = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def make(self, n: pl.Scalar[pl.INDEX]):
        made = pl.create_tensor([n, 4], dtype=pl.FP32)  # made here
        pl.write(made, [n - 1, 0], 5.0)
        return made

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INDEX], out: pl.InOut[pl.Tensor[[64, 4], pl.FP32]]):
"""
PROGRAMS = {
    "in the program": """
        large = pl.create_tensor([n, 4], dtype=pl.FP32, init_value=3)  # here
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.load(large, [0, 0], [2, 4]), [0, 0], out)
        return out
""",
    "in a function": """
        large = self.make(n)
        with pl.at(level=pl.Level.CORE_GROUP):
            pl.write(out, [0, 0], pl.read(large, [n - 1, 0]))
        return out
""",
    "in turns": """
        for i in pl.parallel(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                large = pl.create_tensor([n, 4], dtype=pl.FP32, init_value=1)  # here
                pl.write(out, [i, 0], pl.read(large, [1, 2]) + 1.0)
        return out
""",
    "for a result": """
        some = pl.create_tensor([pl.min(n, 32768), 1], dtype=pl.FP32, init_value=2)
        with pl.at(level=pl.Level.CORE_GROUP):
            large = pl.matmul(some, some, b_trans=True)  # here
            pl.write(out, [0, 0], pl.read(large, [1, 1]))
        return out
""",
}


def text_of(name: str) -> str:
    return START + PROGRAMS[name]


TILES = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, out: pl.InOut[pl.Tensor[[64, 4], pl.FP32]]):
        for i in {loop}(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.tile.create([65536, 4096], dtype=pl.FP32)
                t = pl.tile.write(t, [i, 0], 1.0)
                out = pl.store(pl.slice(t, [1, 4], [i, 0]), [i, 0], out)
        return out
"""


def limited() -> None:
    """Run as a script: print what each program says where there is little memory, in a child of its own."""
    for run in (*(partial(_tensor, name) for name in PROGRAMS), *(partial(_tiles, loop) for loop in LINES)):
        if not (child := os.fork()):
            run()
            sys.stdout.flush()
            os._exit(0)
        os.waitpid(child, 0)


def _tensor(name: str) -> None:
    large = native(text_of(name))
    large.run([2, np.zeros((64, 4), np.float32)])
    _starve()
    _tell(name, lambda: large.run([1 << 30, np.zeros((64, 4), np.float32)]))
    large.check(2, np.zeros((64, 4), np.float32))
    print(name, "is right afterwards")


def _tiles(loop: str) -> None:
    large = native(TILES.format(loop=loop))
    _starve()
    _tell(loop, lambda: large.run([np.zeros((64, 4), np.float32)]))


def _starve() -> None:
    """Let this process have little more memory than it has."""
    with open("/proc/self/statm", encoding="ascii") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    most = size + (256 << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _tell(name: str, run: Callable[[], object]) -> None:
    try:
        run()
    except ExecutionError as error:
        print(name, error.place.line, error.message)


@pytest.fixture(scope="module")
def told() -> list[str]:
    """What programs say where there is little memory."""
    code = f"import sys; sys.path[:0] = {sys.path!r}; from unit.backends.cpu.test_heap import limited; limited()"
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=240)
    assert (run.stderr, run.returncode) == ("", 0)
    return run.stdout.splitlines()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_tensor_that_there_is_no_memory_for_is_an_error_at_its_line(told: list[str], name: str) -> None:
    marked = [number for number, line in enumerate(text_of(name).splitlines(), 2) if line.endswith("here")]
    assert f"{name} {marked[-1]} there is no memory for this tensor" in told
    assert f"{name} is right afterwards" in told


LINES = {"pl.range": 6, "pl.parallel": 7}


@pytest.mark.parametrize("loop", LINES)
def test_tiles_that_there_is_no_memory_for_are_an_error_of_their_kernel(told: list[str], loop: str) -> None:
    assert f"{loop} {LINES[loop]} there is no memory for the tiles of this kernel" in told


def test_a_size_that_is_no_number_of_bytes_is_too_large_too() -> None:
    outer = native(
        """
M, N = pl.dynamic("M"), pl.dynamic("N")

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def outer(self, x: pl.Tensor[[M, 1], pl.FP32], y: pl.Tensor[[1, N], pl.FP32], out: pl.Out[pl.Tensor[[4], pl.FP32]]):
        both = pl.add(x, y)
        pl.write(out, [0], pl.read(both, [1, 1]))
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[M, 1], pl.FP32], y: pl.Tensor[[1, N], pl.FP32], out: pl.Out[pl.Tensor[[4], pl.FP32]]):
        out = self.outer(x, y, out)
        return out
"""
    )
    outer.check(floats(3, 1), floats(1, 5), np.zeros(4, np.float32))
    for rows, columns in ((1 << 33, 1 << 33), (1 << 31, 1 << 31), (1 << 60, 1 << 60), (1 << 40, 1 << 24)):
        x: Any = np.broadcast_to(floats(1, 1), (rows, 1))
        y: Any = np.lib.stride_tricks.as_strided(floats(1, 1), (1, columns), (4, 4))
        with pytest.raises(ExecutionError) as caught:
            launched(outer.native, "main", [x, y, np.zeros(4, np.float32)])
        assert (caught.value.place.line, caught.value.message) == (9, "no tensor can have these extents")


def test_tiles_that_no_machine_holds_are_refused_before_they_are_made() -> None:
    with pytest.raises(UnsupportedFeatureError, match="no machine holds tiles of 18446744073709551616 bytes"):
        kernel(
            "out: pl.Out[pl.Tensor[[4], pl.FP32]]",
            f"t = pl.tile.create([{1 << 31}, {1 << 31}], dtype=pl.FP32)",
            "pl.write(out, [0], pl.tile.read(t, [0, 0]))",
        )


def test_a_tensor_that_no_machine_holds_is_refused_before_it_runs() -> None:
    with pytest.raises(UnsupportedFeatureError, match=r"no tensor can have extents \[1099511627776, 1099511627776\]"):
        kernel(
            "out: pl.Out[pl.Tensor[[4], pl.FP32]]",
            f"made = pl.create_tensor([{1 << 40}, {1 << 40}], dtype=pl.FP32)",
            "pl.write(out, [0], pl.read(made, [0, 0]))",
        )


@pytest.mark.parametrize(("columns", "asks"), [(8, False), (4096, True)])
def test_only_large_tiles_take_memory_from_the_heap(columns: int, asks: bool) -> None:
    turned = kernel(
        f"x: pl.Tensor[[8, {columns}], pl.FP32], out: pl.Out[pl.Tensor[[{columns}, 8], pl.FP32]]",
        f"t = pl.load(x, [0, 0], [8, {columns}])",
        "out = pl.store(pl.transpose(pl.exp(t), 0, 1), [0, 0], out)",
    )
    turned.check(floats(8, columns), np.zeros((columns, 8), np.float32))
    assert ("aligned_alloc" in turned.native.code.texts["llvm"]()) == asks
