"""Streaming: outputs written past the caches, where each line is written as a whole, hold what plain ones do."""

from __future__ import annotations

import numpy as np
import pytest
from ops.launched import launched
from ops.streamed import take_for_large
from unit.backends.cpu.running import Array, Native, kernel, native

import tilewright.language as pl
from tilewright.backends.cpu.compute import streaming
from tilewright.core.region import whole
from tilewright.interpret.machine import run
from tilewright.native.target import Target, host

R, N = 8, 64
BODY = (
    "t = pl.load(x, [0, 0], [8, 64])",
    "out = pl.store(pl.exp(t), [0, 0], out)",
    "out = pl.store(pl.mgather(x, pl.load(index, [0, 0], [1, 8])), [8, 0], out)",
    "rows = pl.create_tile([8, 64], dtype=pl.FP32)",
    "for k in pl.range(8):",
    "    rows = pl.gather_row(rows, x, [k, 0], [pl.read(index, [0, k]), 0], [1, 64])",
    "out = pl.store(rows, [16, 0], out)",
    "out = pl.gather_row(out, x, [24, 0], [2, 0], [8, 64], valid_shape=[n, 64])",
    "out = pl.gather_row(out, x, [32, 0], [0, 0], [8, 32])",
    "out = pl.store(t, [40, 0], out)",  # and what follows is stored over it
    "out = pl.store(pl.concat(pl.load(x, [0, 0], [8, 32]), pl.load(x, [0, 16], [8, 32])), [40, 0], out)",
    "out = pl.store(pl.load(out, [8, 0], [8, 64]) + t, [48, 0], out)",
)
TEXT = f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[{R}, {N}], pl.FP32], index: pl.Tensor[[1, {R}], pl.INT32], n: pl.Scalar[pl.INDEX],
             out: pl.InOut[pl.Tensor[[56, {N}], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            {(chr(10) + 12 * " ").join(BODY)}
"""


def placed(array: Array, offset: int) -> Array:
    """Return a copy of an array that begins so many bytes behind the beginning of a line."""
    room = np.zeros(array.nbytes + 2 * streaming.LINE, np.uint8)
    begin = -room.ctypes.data % streaming.LINE + offset
    held: Array = np.ndarray(array.shape, array.dtype, room[begin : begin + array.nbytes].data)
    held[...] = array
    return held


@pytest.mark.skipif(host().vector_bits < 256, reason="narrow vectors are stored plainly")
def test_what_passes_the_caches_is_what_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    take_for_large(monkeypatch)
    program = native(TEXT)
    assert program.native.code.texts["llvm"]().count("!nontemporal") >= 8
    rng = np.random.default_rng(0)
    x, index = rng.standard_normal((R, N), np.float32), rng.integers(0, R, (1, R), np.int32)
    for offset, n in ((0, 5), (4, 5), (32, 0)):
        expected, out = (placed(np.ones((56, N), np.float32), offset) for _ in range(2))
        run(program.program, program.name, [whole(x), whole(index), n, whole(expected)])
        launched(program.native, program.name, [x, index, n, out])
        np.testing.assert_allclose(out, expected, rtol=1e-6)


def streamed(monkeypatch: pytest.MonkeyPatch, parameters: str, *body: str) -> Native:
    """Return a kernel that takes every tensor for a large one."""
    take_for_large(monkeypatch)
    return kernel(parameters, *body)


def check_placed(program: Native, x: Array, out: Array) -> None:
    """Fail unless a kernel leaves the interpreter's result, in an output that begins with a line, and behind one."""
    for offset in (0, out.itemsize):
        expected, found = placed(out, offset), placed(out, offset)
        run(program.program, program.name, [whole(x), whole(expected)])
        launched(program.native, program.name, [x, found])
        np.testing.assert_array_equal(found, expected)


@pytest.mark.skipif(host().vector_bits < 512, reason="a line takes several vectors")
@pytest.mark.parametrize("dtype", ["FP32", "INT32", "FP64", "BF16", "INT8"])
@pytest.mark.parametrize("shape", [(32, 64), (48, 48), (33, 70), (16, 16), (5, 3)], ids=str)
def test_a_transposed_tile_goes_past_the_caches(
    monkeypatch: pytest.MonkeyPatch, dtype: str, shape: tuple[int, int]
) -> None:
    rows, columns = shape
    program = streamed(
        monkeypatch,
        f"x: pl.Tensor[[128, 128], pl.{dtype}], out: pl.InOut[pl.Tensor[[128, 128], pl.{dtype}]]",
        f"for r in pl.range(0, 128, {rows}):",
        f"    for c in pl.range(0, 128, {columns}):",
        f"        out = pl.store(pl.load(x, [r, c], [{rows}, {columns}]).T, [c, r], out)",
    )
    assert ("nontemporal" in program.native.code.texts["llvm"]()) == (dtype in ("FP32", "INT32", "FP64"))
    x = (np.random.default_rng(1).standard_normal((128, 128)) * 50).astype(getattr(pl, dtype).numpy)
    check_placed(program, x, np.ones_like(x))


@pytest.mark.skipif(host().vector_bits < 256, reason="narrow vectors are stored plainly")
@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16", "INT16", "INT8"])
@pytest.mark.parametrize("columns", [64, 128, 192, 320])
def test_narrow_rows_are_put_together_to_lines(monkeypatch: pytest.MonkeyPatch, dtype: str, columns: int) -> None:
    program = streamed(
        monkeypatch,
        f"x: pl.Tensor[[5, {columns}], pl.FP32], out: pl.InOut[pl.Tensor[[5, {columns}], pl.{dtype}]]",
        f"t = pl.load(x, [0, 0], [5, {columns}])",
        "t = pl.clamp(t - pl.row_max(t), -100.0, 100.0)",
        f"out = pl.store(pl.cast(t, pl.{dtype}), [0, 0], out)",
    )
    assert "nontemporal" in program.native.code.texts["llvm"]()
    x = np.random.default_rng(2).standard_normal((5, columns)).astype(np.float32) * 30
    check_placed(program, x, np.ones((5, columns), getattr(pl, dtype).numpy))


@pytest.mark.skipif(host().vector_bits < 256, reason="narrow vectors are stored plainly")
def test_both_halves_of_a_row_go_past_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    program = streamed(
        monkeypatch,
        "x: pl.Tensor[[8, 128], pl.FP32], out: pl.InOut[pl.Tensor[[8, 128], pl.FP32]]",
        "a, b = pl.load(x, [0, 0], [8, 64]), pl.load(x, [0, 64], [8, 64])",
        "out = pl.store(a - b, [0, 0], out)",
        "out = pl.store(a + b, [0, 64], out)",
    )
    code = program.native.code.texts["llvm"]()
    assert code.count("!nontemporal") >= 2 * 64 // (host().vector_bits // 32)
    x = np.random.default_rng(3).standard_normal((8, 128)).astype(np.float32)
    check_placed(program, x, np.ones_like(x))


@pytest.mark.skipif(host().vector_bits < 512, reason="a line takes several vectors")
@pytest.mark.parametrize(("streams", "vectors"), [(1, 2), (2, 2), (4, 1)])
def test_the_more_a_block_reads_from_memory_the_fewer_vectors_it_has(
    monkeypatch: pytest.MonkeyPatch, streams: int, vectors: int
) -> None:
    names = "abcd"[:streams]
    program = streamed(
        monkeypatch,
        "".join(f"{name}: pl.Tensor[[8, 256], pl.FP32], " for name in names)
        + "out: pl.Out[pl.Tensor[[8, 256], pl.FP32]]",
        "out = pl.store(" + " + ".join(f"pl.load({name}, [0, 0], [8, 256])" for name in names) + ", [0, 0], out)"
        if streams > 1
        else "out = pl.store(pl.load(a, [0, 0], [8, 256]) * 2.0, [0, 0], out)",
    )
    assert program.native.code.texts["llvm"]().count("!nontemporal") == vectors


def test_rows_that_are_only_read_are_fetched_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    body = "out = pl.store(pl.row_sum(pl.load(x, [0, 0], [64, 256])), [0, 0], out)"
    parameters = "x: pl.Tensor[[64, 256], pl.FP32], out: pl.Out[pl.Tensor[[64, 1], pl.FP32]]"
    assert "prefetch" not in kernel(parameters, body).native.code.texts["llvm"]()
    assert "prefetch" in streamed(monkeypatch, parameters, body).native.code.texts["llvm"]()


WINDOWS = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[{size}], pl.FP32], out: pl.InOut[pl.Tensor[[{size}], pl.FP32]]):
        for i in pl.parallel({size} // 512):
            with pl.at(level=pl.Level.CORE_GROUP):
                come = pl.tensor.as_strided(x, [8, 64], [64, 1], i * 2048, dtype=pl.FP32)
                go = pl.tensor.as_strided(out, [8, 64], [64, 1], i * 2048, dtype=pl.FP32)
                pl.store(pl.exp(pl.load(come, [0, 0], [8, 64])), [0, 0], go)
"""


@pytest.mark.skipif(host().vector_bits < 256, reason="narrow vectors are stored plainly")
@pytest.mark.parametrize("size", [512, 4096])
def test_windows_pass_the_caches_where_their_memory_is_large(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    take_for_large(monkeypatch, 8192)
    program = native(WINDOWS.format(size=size))
    assert bool(program.native.code.texts["llvm"]().count("!nontemporal")) == (size * 4 >= 8192)
    x, out = np.linspace(-1, 1, size, dtype=np.float32), placed(np.zeros(size, np.float32), 0)
    launched(program.native, program.name, [x, out])
    np.testing.assert_allclose(out, np.exp(x), rtol=1e-6)


@pytest.mark.skipif(host().vector_bits < 256, reason="narrow vectors are stored plainly")
@pytest.mark.parametrize(
    ("kept", "reads", "streams"), [(0, "x", True), (8192, "x", True), (8193, "x", False), (1 << 30, "xy", True)]
)
@pytest.mark.parametrize("rows", ["16", "rows"])
def test_what_stays_in_a_cache_with_the_little_that_is_read_is_stored_plainly(
    monkeypatch: pytest.MonkeyPatch, kept: int, reads: str, streams: bool, rows: str
) -> None:
    take_for_large(monkeypatch)
    monkeypatch.setattr(Target, "kept_bytes", kept)
    matrix = f"pl.Tensor[[{rows}, 64], pl.FP32]"
    program = kernel(
        f"{''.join(f'{name}: {matrix}, ' for name in reads)}out: pl.Out[{matrix}]",
        "t = pl.load(x, [0, 0], [8, 64]) * pl.load(x, [8, 0], [8, 64])",
        f"out = pl.store(t + pl.load({reads[-1]}, [0, 0], [8, 64]), [0, 0], out)",
    )
    assert ("nontemporal" in program.native.code.texts["llvm"]()) == (streams or rows == "rows")


@pytest.mark.parametrize(("start", "is_fetched"), [("i", True), ("pl.read(index, [i])", False)])
def test_rows_that_lie_where_numbers_say_have_nothing_behind_them_fetched(
    monkeypatch: pytest.MonkeyPatch, start: str, is_fetched: bool
) -> None:
    program = streamed(
        monkeypatch,
        "x: pl.Tensor[[64, 256], pl.FP32], index: pl.Tensor[[8], pl.INT32], out: pl.Out[pl.Tensor[[1, 256], pl.FP32]]",
        "acc = pl.tile.full([1, 256], dtype=pl.FP32, value=0.0)",
        "for i in pl.range(8):",
        f"    acc = acc + pl.load(x, [{start}, 0], [1, 256])",
        "out = pl.store(acc, [0, 0], out)",
    )
    assert ("prefetch" in program.native.code.texts["llvm"]()) == is_fetched
