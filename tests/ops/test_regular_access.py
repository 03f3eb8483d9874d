"""Regular access: parts of loads, bytes as others, rows repeated or spread out, tiles filled, each in one pass."""

from __future__ import annotations

import numpy as np
import pytest
from ops.kernels import kernel, out, tensor
from ops.native import Native, assert_same

import tilewright.language as pl
from tilewright.backends.cpu.backend import CPU
from tilewright.passes.manager import PassManager

ROWS, WIDE = 9, 70
X, Y = (f"pl.InOut[{tensor(pl.FP32, ROWS, WIDE)}]" for _ in "xy")
LOAD = "t = pl.load(x, [0, 0], [9, 70])"
RAGGED = "t = pl.load(x, [n, m], [9, 70], clamp=True)"

PARTS = {
    "two slices": f"{LOAD}\ny = pl.store(t[:, :35] * t[:, 35:], [0, 0], y)",
    "a slice of a slice": f"{LOAD}\ny = pl.store(pl.exp(t[2:9, 3:66][1:5, 40:]), [1, 2], y)",
    "a column": f"{LOAD}\ny = pl.store(t * t[:, 7:8], [0, 0], y)",
    "a row": f"{LOAD}\ny = pl.store(t + t[3:4, :], [0, 0], y)",
    "rows dropped": f"{LOAD}\ny = pl.store(t[4, 1:60], [2, 3], y)",
    "halves of what is ragged": f"{RAGGED}\ny = pl.store(t[:, :35] - t[:, 35:], [0, 0], y)",
    "every other": f"{LOAD}\ny = pl.store(t[::2, 1::3] + 1.0, [0, 0], y)",
    "every other of what is ragged": f"{RAGGED}\ny = pl.store(t[1:, ::2], [0, 0], y)",
    "extract": f"{RAGGED}\ny = pl.store(pl.tile.extract(t, m, n, [3, 50], target_memory=pl.Mem.Vec), [0, 0], y)",
    "a store between": f"{LOAD}\na = t[:, 2:40]\nx = pl.store(a + 1.0, [0, 5], x)\ny = pl.store(t[:, 2:40], [0, 0], y)",
    "a sum in a slice": f"{LOAD}\na = t[:, :16]\nb = pl.load(x, [0, 0], [9, 70])\n"
    "a = pl.matmul_acc(a, t[:, 20:29], b[:, 2:18])\ny = pl.store(t, [0, 0], y)",
    "bytes as many others": f"{LOAD}\nb = pl.reinterpret_view(t[:, 3:20], pl.INT16)\n"
    "y = pl.store(pl.cast(b, pl.FP32), [0, 0], y)",
    "bytes of a sum": f"{RAGGED}\nb = pl.reinterpret_view(t + t, pl.UINT8)\n"
    "y = pl.store(pl.cast(b[:, 5:70], pl.FP32), [0, 0], y)",
    "bytes of a product": f"{LOAD}\ny = pl.store(pl.cast(pl.reinterpret_view(t * 2.0, pl.INT32), pl.FP32), [0, 0], y)",
    "bytes as few others": f"{RAGGED}\nb = pl.reinterpret_view(pl.cast(t * 9.0, pl.INT16), pl.INT32)\n"
    "y = pl.store(pl.cast(b, pl.FP32), [0, 0], y)",
    "packed rows": f"{LOAD}\nv = pl.load(x, [0, 3], [9, 8])\ny = pl.store(pl.row_expand_add(t, v * 2.0), [0, 0], y)",
    "packed rows of one column": f"{LOAD}\nv = pl.load(x, [0, 3], [9, 8], valid_shape=[9, 1])\n"
    "y = pl.store(pl.row_expand_add(t, v), [0, 0], y)",
    "packed bytes": f"{LOAD}\nb = pl.cast(t, pl.INT8)\nv = pl.cast(pl.load(x, [0, 3], [9, 32]), pl.INT8)\n"
    "y = pl.store(pl.cast(pl.row_expand_add(b, v), pl.FP32), [0, 0], y)",
    "columns spread out": f"{LOAD}\ns = pl.load(x, [0, 1], [9, 35]) * 3.0\n"
    "y = pl.store(pl.tile.scatter_mask(t, s, pl.tile.MaskPattern.P1010) + t, [0, 0], y)",
    "all columns spread out": f"{LOAD}\ny = pl.store(pl.tile.scatter_mask(t, t + 1.0, 7), [0, 0], y)",
    "filled": f"{RAGGED}\ny = pl.store(pl.fillpad(t, pl.PadValue.min), [0, 0], y)",
    "filled and larger": "t = pl.load(x, [n, m], [5, 33], valid_shape=[m, n])\n"
    "y = pl.store(pl.fillpad_expand(t, [9, 70], pl.PadValue.max), [0, 0], y)",
    "filled where it lies": "t = pl.load(x, [0, 0], [9, 70], valid_shape=[n, m])\n"
    "x = pl.store(pl.fillpad(t, 9), [0, 0], x)",
    "filled elsewhere in the same": f"{RAGGED}\nx = pl.store(pl.fillpad(t), [0, 0], x)",
}
ONE_PASS = ["two slices", "a column", "every other", "bytes as many others",
            "bytes of a product", "packed rows", "columns spread out"]  # fmt: skip


def compiled(name: str) -> Native:
    return Native(kernel(PARTS[name], x=X, y=Y, n="pl.Scalar[pl.INDEX]", m="pl.Scalar[pl.INDEX]"))


@pytest.mark.parametrize("name", PARTS)
def test_native_code_and_interpreter_agree(name: str) -> None:
    x, native = np.random.default_rng(7).integers(-9, 9, (ROWS, WIDE)).astype(np.float32), compiled(name)
    for n, m in [(0, 0), (3, 2), (8, 69), (0, 4)]:
        args = [x, np.zeros_like(x), n, m]
        ours, theirs = native.errors(args)
        assert (ours is None) == (theirs is None)
        for got, want in native.run(args) if ours is None else ():
            assert_same(got, want, ulp=4)


@pytest.mark.parametrize("name", ONE_PASS)
def test_nothing_is_written_on_the_way(name: str) -> None:
    text = CPU().compile(PassManager.get_strategy().run_passes(compiled(name).program)).texts["fusion"]()
    assert text.count("ends:") == 1 and "memory" not in text, text


def test_large_rows_go_past_the_caches_and_keep_their_edges() -> None:
    body = "for r in pl.range(0, 272, 16):\n    t = pl.load(x, [r, 0], [16, 4096], clamp=True)\n"
    body += "    y = pl.store(pl.fillpad(t, pl.PadValue.max), [r, 0], y)"
    function = kernel(body, x=tensor(pl.FP32, 265, 4003), y=out(pl.FP32, 272, 4096))
    x = np.random.default_rng(7).normal(size=(265, 4003)).astype(np.float32)
    want = np.full((272, 4096), np.inf, np.float32)
    want[:265, :4003] = x
    made = np.zeros_like(want)
    ((_, _), (got, _)) = Native(function).run([x, made], left=[x, want])
    np.testing.assert_array_equal(got, want)
