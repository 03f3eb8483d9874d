"""Streaming: outputs written past the caches, where each line is written as a whole, hold what plain ones do."""

from __future__ import annotations

import numpy as np
import pytest
from ops.launched import launched
from unit.backends.cpu.running import Array, native

from tilewright.backends.cpu.compute import streaming
from tilewright.core.region import whole
from tilewright.interpret.machine import run
from tilewright.native.target import host

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
    monkeypatch.setattr(streaming, "STREAMED", 0)
    program = native(TEXT)
    assert program.native.code.texts["llvm"]().count("!nontemporal") >= 8
    rng = np.random.default_rng(0)
    x, index = rng.standard_normal((R, N), np.float32), rng.integers(0, R, (1, R), np.int32)
    for offset, n in ((0, 5), (4, 5), (32, 0)):
        expected, out = (placed(np.ones((56, N), np.float32), offset) for _ in range(2))
        run(program.program, program.name, [whole(x), whole(index), n, whole(expected)])
        launched(program.native, program.name, [x, index, n, out])
        np.testing.assert_allclose(out, expected, rtol=1e-6)
