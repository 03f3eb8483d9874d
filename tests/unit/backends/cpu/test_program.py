"""Whole native programs: calls, grids, views across functions, and errors that stay inside their buffers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from unit.backends.cpu.running import floats, kernel, native

from tilewright import settings

FAR = (1 << 63) - 1
X = "x: pl.Tensor[[8, 16], pl.FP32]"
TURNED = "pl.Out[pl.Tensor[[16, 8], pl.FP32]]"
RANGE = "a: pl.Scalar[pl.INDEX], b: pl.Scalar[pl.INDEX], c: pl.Scalar[pl.INDEX]"
UNKNOWN = "x: pl.Tensor[[M, N], pl.FP32], y: pl.Tensor[[M, N], pl.BF16], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]"


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setenv("TILEWRIGHT_NUM_THREADS", str(request.param))
    assert settings.num_threads() == request.param
    return request.param


def program(body: str, helpers: str = "") -> Any:
    return native(f'M, N = pl.dynamic("M"), pl.dynamic("N")\n@pl.program\nclass P:\n{helpers}\n{body}')


SCALARS = """
    @pl.function(type=pl.FunctionType.InCore)
    def swap(self, a: pl.Scalar[{0}], b: pl.Scalar[{0}]):
        return b, a

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, a: pl.Scalar[{0}], b: pl.Scalar[{0}]):
        c, d = self.swap(a, b)
        e, f = self.swap(c, d)
        return e, d
"""


@pytest.mark.parametrize(
    ("dtype", "a", "b"),
    [
        ("pl.FP32", 1.5, -2.25), ("pl.FP16", 1.5, -2.25), ("pl.BF16", 1.5, -2.25), ("pl.BOOL", True, False),
        ("pl.INT8", -128, 127), ("pl.UINT8", 255, 1), ("pl.INT16", -32768, 5), ("pl.UINT16", 65535, 3),
        ("pl.INT32", -(1 << 31), 7), ("pl.UINT32", (1 << 32) - 1, 7), ("pl.INT64", -(1 << 63), 7),
        ("pl.UINT64", (1 << 64) - 1, 7), ("pl.INDEX", -5, FAR),
    ],
)  # fmt: skip
def test_scalars_of_every_type_pass_in_and_out(dtype: str, a: float, b: float) -> None:
    program(SCALARS.format(dtype)).check(a, b)


def test_a_function_returns_tensors_it_made() -> None:
    made = program(
        """
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[8, 16], pl.FP32], n: pl.Scalar[pl.INDEX]):
        a, b, c = self.make(x, n)
        d, e, f = self.make(a, c)
        return d, e, c
""",
        """
    @pl.function(type=pl.FunctionType.InCore)
    def make(self, x: pl.Tensor[[8, 16], pl.FP32], n: pl.Scalar[pl.INDEX]):
        fresh = pl.create_tensor([8, 16], dtype=pl.FP32)
        fresh = pl.store(pl.add(pl.load(x, [0, 0], [8, 16]), 1.0), [0, 0], fresh)
        ones = pl.full([4, 8], dtype=pl.BF16, value=1.5)
        return fresh, ones, n + 1
""",
    )
    made.check(floats(8, 16), 3)


def test_turned_views_pass_to_functions() -> None:
    turned = program(
        f"""
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, {X}, out: {TURNED}, plain: {TURNED}):
        flipped = pl.transpose(x, 0, 1)
        self.scale(flipped, out)
        self.scale(out, plain)
        back = pl.transpose(plain, 0, 1)
        again = pl.transpose(back, 0, 1)
        self.scale(out, again)
""",
        """
    @pl.function(type=pl.FunctionType.InCore)
    def scale(self, x: pl.Tensor[[16, 8], pl.FP32], out: pl.Out[pl.Tensor[[16, 8], pl.FP32]]):
        out = pl.store(pl.mul(pl.load(x, [0, 0], [16, 8]), 2.0), [0, 0], out)
        return out
""",
    )
    turned.check(floats(8, 16), np.zeros((16, 8), np.float32), np.zeros((16, 8), np.float32))


def test_a_function_given_one_buffer_twice_reads_what_it_has_written() -> None:
    shifting = program(
        """
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.InOut[pl.Tensor[[8, 16], pl.FP32]]):
        self.shift(x, x)
        self.shift(pl.slice(x, [8, 16], [0, 0]), x)
        return x
""",
        """
    @pl.function(type=pl.FunctionType.InCore)
    def shift(self, a: pl.Tensor[[8, 16], pl.FP32], b: pl.InOut[pl.Tensor[[8, 16], pl.FP32]]):
        first = pl.load(a, [0, 0], [2, 16])
        b = pl.store(pl.load(a, [2, 0], [2, 16]), [0, 0], b)
        b = pl.store(first, [2, 0], b)
        b = pl.store(pl.add(pl.load(a, [0, 0], [2, 16]), 1.0), [4, 0], b)
        return b
""",
    )
    shifting.check(floats(8, 16))


@pytest.mark.parametrize("blocks", [1, 3, 8, 100])
def test_grids_run_every_block_and_give_what_the_last_one_gives(blocks: int, threads: int) -> None:
    grid = program(
        """
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[128], pl.INT64]]):
        (last, fresh), task = pl.spmd_submit(self.block, n, out, core_num=n)
        return last, fresh, out
""",
        """
    @pl.function(type=pl.FunctionType.InCore)
    def block(self, n: pl.Scalar[pl.INDEX], out: pl.InOut[pl.Tensor[[128], pl.INT64]]):
        index = pl.tile.get_block_idx()
        count = pl.tile.get_block_num()
        pl.write(out, [index], pl.cast(index * 1000 + count, pl.INT64))
        fresh = pl.create_tensor([4], dtype=pl.INT64, init_value=3)
        pl.write(fresh, [0], pl.cast(index, pl.INT64))
        return index * 2, fresh
""",
    )
    grid.check(blocks, np.zeros(128, np.int64))


def test_atomic_adds_of_parallel_turns_all_arrive(threads: int) -> None:
    adding = native(
        """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 16], pl.FP32], out: pl.InOut[pl.Tensor[[1, 16], pl.FP32]]):
        for i in pl.parallel(64):
            with pl.at(level=pl.Level.CORE_GROUP):
                out = pl.store(pl.load(x, [i, 0], [1, 16]), [0, 0], out, atomic=pl.AtomicType.Add)
        return out
"""
    )
    adding.check(floats(64, 16), np.zeros((1, 16), np.float32))


@pytest.mark.parametrize("step", [1, 3, -1, -5])
def test_parallel_loops_of_any_step_turn_as_often_as_others(step: int, threads: int) -> None:
    marking = native(
        f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, {RANGE}, out: pl.InOut[pl.Tensor[[200], pl.INT32]]):
        for i in pl.parallel(a, b, c):
            if i != 7:
                pl.write(out, [i], pl.cast(i, pl.INT32))
        return out
"""
    )
    start, stop = (0, 200) if step > 0 else (199, -1)
    marking.check(start, stop, step, np.zeros(200, np.int32))


@pytest.mark.parametrize(
    "line",
    [
        "pl.write(out, [at, 0], 1.0)",
        "pl.write(out, [0, at * 4], 1.0)",
        "pl.write(out, [0, 0], pl.read(x, [at, 15]))",
        "out = pl.store(pl.load(x, [0, 0], [8, 16]), [at, 0], out)",
        "out = pl.store(pl.load(x, [0, 0], [8, 16]), [0, at], out)",
        "out = pl.store(pl.load(x, [0, 0], [8, 16], valid_shape=[at, at]), [0, 0], out)",
        "out = pl.store(pl.load(pl.slice(x, [8, 16], [at, 0]), [0, 0], [8, 16]), [0, 0], out)",
        "out = pl.assemble(out, pl.slice(x, [at, 16], [0, 0]), [at, 0])",
        "w = pl.slice(x, [at, at], [at, at], clamp=True)\n"
        "out = pl.store(pl.load(w, [0, 0], [8, 16], clamp=True), [at, at], out)",
        "t = pl.slice(pl.load(x, [0, 0], [8, 16]), [4, 16], [at, 0])\nout = pl.store(t, [0, 0], out)",
        "t = pl.set_validshape(pl.load(x, [0, 0], [8, 16]), at, 16)\nout = pl.store(t, [0, 0], out)",
        "t = pl.tile.write(pl.load(x, [0, 0], [8, 16]), [at, at], 1.0)\nout = pl.store(t, [0, 0], out)",
        "b = pl.create_tensor([at, 16], dtype=pl.FP32, init_value=1)\nout = pl.assemble(out, b, [0, 0])",
    ],
)
def test_no_offset_reaches_outside_a_buffer(line: str) -> None:
    reaching = kernel(
        "x: pl.Tensor[[8, 16], pl.FP32], at: pl.Scalar[pl.INDEX], out: pl.InOut[pl.Tensor[[8, 16], pl.FP32]]",
        *line.split("\n"),
    )
    for offset in (-1, 0, 1, 5, 8, 9, 16, -FAR, FAR, FAR - 3, -FAR - 1):
        reaching.agrees(floats(8, 16), offset, np.zeros((8, 16), np.float32))


@pytest.mark.parametrize("rows", [0, 1, 7, 20])
def test_tensors_of_unknown_extents_compute(rows: int) -> None:
    computing = program(
        f"""
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, {UNKNOWN}):
        out = self.compute(x, y, out)
        return out
""",
        f"""
    @pl.function(type=pl.FunctionType.InCore)
    def compute(self, {UNKNOWN}):
        z = pl.exp(pl.add(x, pl.cast(y, pl.FP32)))
        z = pl.row_expand_div(z, pl.row_sum(z))
        z = pl.col_expand_mul(z, pl.col_max(z))
        z = pl.add(pl.mul(z, pl.cmp(x, z, cmp_type=pl.CmpType.LT)), pl.expands(z, 0.5))
        p = pl.matmul(z, x, b_trans=True)
        p = pl.matmul_acc(p, x, z, b_trans=True)
        z = pl.matmul(p, z)
        both = pl.concat(z, x)
        out[:, :] = pl.slice(both, [M, N], [0, 0])
        return out
""",
    )
    x, y = floats(rows, 19), floats(rows, 19, seed=1).astype(ml_dtypes.bfloat16)
    computing.check(x, y, np.zeros((rows, 19), np.float32))


def test_extents_of_one_name_that_differ_are_an_error() -> None:
    differing = program(
        """
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[8, 16], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        self.add(pl.slice(x, [n, 16], [0, 0]), out)
""",
        """
    @pl.function(type=pl.FunctionType.InCore)
    def add(self, x: pl.Tensor[[M, 16], pl.FP32], out: pl.InOut[pl.Tensor[[M, 16], pl.FP32]]):
        out[:, :] = pl.add(x, out)
        return out
""",
    )
    differing.check(floats(8, 16), 8, np.ones((8, 16), np.float32))
    differing.fails("is not M", floats(8, 16), 3, np.ones((8, 16), np.float32))


@pytest.mark.parametrize("rows", [0, 3, 8])
def test_tiles_and_arrays_pass_between_kernels(rows: int) -> None:
    passing = program(
        """
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[8, 8], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.InOut[pl.Tensor[[16, 8], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            turned = pl.transpose(pl.load(x, [0, 0], [8, 8]), 0, 1)
            some = pl.load(x, [0, 0], [8, 8], valid_shape=[n, 8])
            numbers = pl.array.update_element(pl.array.create(4, pl.INT32), 1, 9)
        with pl.at(level=pl.Level.CORE_GROUP):
            more = pl.add(turned, 1.0)
            scaled = pl.mul(some, pl.cast(pl.array.get_element(numbers, 1), pl.FP32))
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(more, [0, 0], out)
            out = pl.store(scaled, [8, 0], out)
        return out
"""
    )
    passing.check(floats(8, 8), rows, np.zeros((16, 8), np.float32))


def test_stores_that_overlap_happen_in_order() -> None:
    storing = kernel(
        "x: pl.Tensor[[4, 8], pl.FP32], out: pl.InOut[pl.Tensor[[8, 8], pl.FP32]]",
        "t = pl.load(x, [0, 0], [4, 8])",
        "out = pl.store(t, [0, 0], out)",
        "out = pl.store(pl.mul(t, 2.0), [1, 0], out)",
        "out = pl.store(pl.mul(t, 3.0), [2, 0], out)",
    )
    storing.check(floats(4, 8), np.zeros((8, 8), np.float32))


def test_what_a_copy_of_a_statement_makes_outlives_its_kernel() -> None:
    native("""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[8, 8], pl.FP32], out: pl.InOut[pl.Tensor[[16, 8], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.unroll(2):
                made = pl.full([8, 8], dtype=pl.FP32, value=2.0)
                made = pl.store(pl.load(x, [0, 0], [4, 8]), [i, 0], made)
                out = pl.store(pl.load(made, [0, 0], [8, 8]), [8 * i, 0], out)
        with pl.at(level=pl.Level.CORE_GROUP):
            other = pl.full([99, 8], dtype=pl.FP32, value=3.0)
            other = pl.store(pl.load(x, [0, 0], [4, 8]), [2, 0], other)
            out = pl.store(pl.load(other, [0, 0], [8, 8]), [8, 0], out)
        with pl.at(level=pl.Level.CORE_GROUP):
            out = pl.store(pl.load(made, [0, 0], [8, 8]), [0, 0], out)
        return out
""").check(floats(8, 8), np.zeros((16, 8), np.float32))
