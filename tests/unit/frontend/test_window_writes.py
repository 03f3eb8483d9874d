"""Window writes: `out[window] = value` writes what NumPy's writes, whatever axes indices take away or values repeat."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ops.kernels import inout, kernel, tensor
from ops.native import Native

import tilewright.language as pl
from tilewright.errors import OutOfBoundsError, ShapeMismatchError
from tilewright.runtime import RunConfig

X = np.reshape(np.arange(128, dtype=np.float32), (8, 16))
Y = np.arange(8, dtype=np.float32) + 100

WRITES = [
    "out[1:5, 0] = x[0, 0:4]", "out[1:5, 0] = y[0:4]", "out[1:5, 3] = x[0:4, 3]", "out[:, 2] = y", "out[:, -1] = -y",
    "out[2] = x[3]", "out[2, 1:5] = y[0:4]", "out[:] = x[0]", "out[:] = x[:, 0:1]", "out[:, 1:3] = x[:, 5:6]",
    "out[:, 0:8] = y", "out[:] = 0.5", "out[:] = 1", "out[2:4, ::2] = -1.5", "out[2] = 7.0", "out[1:5, 0] = 2.0",
    "out[::2, 3] = y[0:4]", "out[::2] = x[1]",
]  # fmt: skip


@pytest.mark.parametrize("line", WRITES)
def test_a_window_of_a_tensor_takes_what_numpy_would_put_there(line: str) -> None:
    function = kernel(line, x=tensor(pl.FP32, 8, 16), y=tensor(pl.FP32, 8), out=inout(pl.FP32, 8, 16))
    *_, (native, interpreted) = Native(function).run([X, Y, np.zeros_like(X)])
    wanted: dict[str, Any] = {"x": X, "y": Y, "out": np.zeros_like(X)}
    exec(line, wanted)
    assert native.tolist() == interpreted.tolist() == wanted["out"].tolist()


@pytest.mark.parametrize("line", [line for line in WRITES if "::" not in line and "out[:]" not in line])
def test_a_window_of_a_tile_takes_the_same(line: str) -> None:
    loads = "a, b = pl.load(x, [0, 0], [8, 16]), pl.load(y, [0], [8])\nt = pl.load(out, [0, 0], [8, 16])\n"
    # an index leaves a tile its axis: what NumPy has as a vector is a column, and says so
    body = line.replace("out", "t").replace("x[0, 0:4]", "b[0:4]").replace("x[0:4, 3]", "a[0:4, 3:4]")
    body = body.replace("= x", "= a").replace("= y", "= b").replace("= -y", "= -b")
    function = kernel(
        f"{loads}{body}\nout = pl.store(t, [0, 0], out)",
        x=tensor(pl.FP32, 8, 16), y=tensor(pl.FP32, 8), out=inout(pl.FP32, 8, 16),
    )  # fmt: skip
    *_, (native, interpreted) = Native(function).run([X, Y, np.zeros_like(X)])
    wanted: dict[str, Any] = {"x": X, "y": Y, "out": np.zeros_like(X)}
    exec(line.replace("x[0, 0:4]", "y[0:4]"), wanted)
    assert native.tolist() == interpreted.tolist() == wanted["out"].tolist()


@pl.jit
def folded(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, columns = x.shape
    for r in pl.parallel(0, rows, 32):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [r, 0], [32, columns])
            out[r : r + 32, 0] = pl.min(t, axis=1)
            out[r : r + 32, 1] = pl.max(t, axis=1)
    return out


@pytest.mark.parametrize("platform", ["cpu", "interpret"])
@pytest.mark.parametrize("rows", [7, 32, 50])
def test_a_column_takes_the_valid_part_of_a_vector(platform: str, rows: int) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, 20), dtype=np.float32)
    out = np.zeros((rows, 2), np.float32)
    folded(x, out, config=RunConfig(platform=platform))
    np.testing.assert_array_equal(out, np.stack([x.min(1), x.max(1)], 1))


@pytest.mark.parametrize("line", ["out[0:4] = y[0:4]", "out[:] = y", "out[0:2, 0] = x[0:4, 0]"])
def test_what_does_not_fit_a_window_is_refused(line: str) -> None:
    with pytest.raises(ShapeMismatchError, match="a window of .* cannot take"):
        kernel(line, x=tensor(pl.FP32, 8, 16), y=tensor(pl.FP32, 8), out=inout(pl.FP32, 8, 16))


@pl.jit
def of_parts(x: pl.Tensor, narrow: pl.Out[pl.Tensor], wide: pl.Out[pl.Tensor], mixed: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.store(pl.load(x[0:3, 0:4], [0, 0], [16, 16]), [0, 0], narrow)
        pl.store(pl.load(x[::2, ::2], [0, 0], [16, 16]), [0, 0], wide)
        part = x[1:7:2, 4:12]
        pl.store(pl.load(part, [0, 0], [16, 16]), [0, 0], mixed)


def test_a_tile_may_be_larger_than_a_part_of_an_argument() -> None:
    wanted = [np.ascontiguousarray(part) for part in (X[0:3, 0:4], X[::2, ::2], X[1:7:2, 4:12])]
    found = [np.zeros_like(part) for part in wanted]
    of_parts(X, *found)
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_tile_larger_than_a_part_of_declared_extents_is_refused() -> None:
    body = "part = x[0:3, 0:4]\nt = pl.load(part, [0, 0], [16, 16])"
    with pytest.raises(OutOfBoundsError):
        kernel(body, x=tensor(pl.FP32, 8, 16))
