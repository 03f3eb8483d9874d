"""Tiles taken apart and put together as NumPy does: by indices, backwards, along any axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from unit.frontend.texts import Array, in_core, jitted

from tilewright.errors import ExecutionError
from tilewright.runtime import RunConfig

X = np.random.default_rng(0).integers(-50, 50, (7, 37)).astype(np.float32)
"""Whole numbers, so that sums are exact."""

ORDER = np.argsort(X[:, 0], kind="stable")
CASES: dict[str, tuple[str, Any]] = {
    "rows": ("t[pl.argsort(t[:, 0], axis=0)]", X[ORDER]),
    "rows of what is valid": ("u[pl.arange(7)]", X),
    "columns": ("t[:, pl.argsort(t[0:1, :])]", X[:, np.argsort(X[0], kind="stable")]),
    "columns after dots": ("u[..., 2 * pl.arange(5)]", X[:, :10:2]),
    "long indices": ("u[pl.cast(pl.arange(3), pl.INT64)]", X[:3]),
    "elements": ("t[pl.iota([5, 1], axis=0), 3 * pl.arange(4)]", X[:5, :12:3]),
    "elements of one row": ("u[2, pl.iota([1, 37])]", X[2:3]),
    "elements of a vector": ("pl.sum(t, axis=1)[pl.iota([2, 3], axis=1) + 4]", X.sum(1)[4:7] * np.ones((2, 1))),
    "short elements": ("pl.cast(pl.cast(t, pl.INT16)[pl.arange(4)], pl.FP32)", X[:4]),
    "masks": ("pl.cast((u > 0.0)[pl.arange(4)], pl.FP32)", X[:4] > 0),
    "take": ("pl.take(u, pl.arange(3), axis=1)", X[:, :3]),
    "gather": ("pl.gather(u, pl.argsort(u))", np.sort(X, 1)),
    "gather fewer": ("pl.gather(t, 1, pl.argsort(t)[0:5, 0:6])", np.sort(X, 1)[:5, :6]),
    "gather down": ("pl.gather(u, dim=0, index=pl.argsort(u, axis=0))", np.sort(X, 0)),
    "flipped": ("pl.flip(u)", X[::-1, ::-1]),
    "flipped view": ("pl.flip(pl.transpose(u, 0, 1), axis=0)", np.transpose(X)[::-1]),
    "flipped bools": ("pl.cast(pl.flip(u > 0.0, axis=(0, 1)), pl.FP32)", X[::-1, ::-1] > 0),
    "backwards": ("t[::-1, ::-2]", X[::-1, ::-2]),
    "backwards of what is valid": ("u[::-1, ::-3]", X[::-1, ::-3]),
    "backwards between": ("t[5:1:-1, -2:3:-5]", X[5:1:-1, -2:3:-5]),
    "backwards from a start": ("u[3::-1, 64:20:-1]", X[3::-1, :20:-1]),
    "backwards through a cut": ("u[::-1][0:2]", X[:4:-1]),
    "rolled": ("pl.roll(t, 3) + pl.roll(t, -2, axis=0) + pl.roll(t, 37)", np.roll(X, 3, 1) + np.roll(X, -2, 0) + X),
    "joined": ("pl.cat([t, t[:, 0:3], t])", np.concatenate([X, X[:, :3], X], 1)),
    "joined rows": ("pl.concat([t, t * 2.0, t], axis=0)", np.concatenate([X, X * 2, X])),
    "joined ragged rows": ("pl.cat([pl.load(x, [0, 0], [7, 64]), u], axis=0)", np.concatenate([X, X])),
    "stacked": ("pl.reshape(pl.stack([t, t + 1.0]), [14, 37])", np.reshape(np.stack([X, X + 1]), (14, 37))),
    "stacked between": ("pl.reshape(pl.stack([t, t], 1), [14, 37])", np.reshape(np.stack([X, X], 1), (14, 37))),
    "stacked vectors": ("pl.stack([pl.sum(t, axis=1)] * 2, axis=-1)", np.stack([X.sum(1)] * 2, -1)),
    "scanned from the end": (
        "pl.scan(lambda a, b: pl.maximum(a, b), u, axis=1, reverse=True)",
        np.maximum.accumulate(X[:, ::-1], 1)[:, ::-1],
    ),
    "scanned up": (
        "pl.scan(lambda a, b: pl.minimum(a, b), u, axis=0, reverse=True)",
        np.minimum.accumulate(X[::-1])[::-1],
    ),
    "an accumulator": ("u + pl.tile_full([8, 64], dtype=pl.FP32, value=0.5, valid_shape=[n, 37])", X + 0.5),
    "filled by itself": ("pl.full([8, 64], dtype=pl.FP32, value=0.5, valid_shape=[n, 3])", np.full((7, 3), 0.5)),
}  # fmt: skip


def run(lines: str, target: str, *outputs: Array) -> None:
    names = "".join(f", out{number}: pl.Out[pl.Tensor]" for number in range(len(outputs)))
    loads = "t, u = pl.load(x, [0, 0], [7, 37]), pl.load(x, [0, 0], [8, 64])"
    running = "n = pl.cast(pl.read(x, [0, 0]) * 0.0, pl.INT32) + 7"
    kernel = jitted(f"{in_core(loads, running, lines)}\nout = out0", f"x: pl.Tensor{names}")
    kernel(X, *outputs, config=RunConfig(platform=target))


def test_tiles_are_taken_apart_and_put_together(target: str) -> None:
    wanted = [np.asarray(want, np.float32) for _, want in CASES.values()]
    found = [np.zeros_like(want) for want in wanted]
    lines = [f"pl.store({text}, [0, 0], out{number})" for number, (text, _) in enumerate(CASES.values())]
    run("\n".join(lines), target, *found)
    for name, got, want in zip(CASES, found, wanted, strict=True):
        np.testing.assert_array_equal(got, want, err_msg=name)


def test_what_a_mask_names_is_written_in_place(target: str) -> None:
    found = np.zeros_like(X)
    run("for i in range(2):\n    u[u > 10.0] = -5\nu[u < -10] = -1.5\npl.store(u, [0, 0], out0)", target, found)
    np.testing.assert_array_equal(found, np.where(X > 10, -5, np.where(X < -10, -1.5, X)).astype(np.float32))
    run("u[u > 10.0] = pl.max(u)\npl.store(u, [0, 0], out0)", target, found)
    np.testing.assert_array_equal(found, np.where(X > 10, X.max(), X))


def test_a_mask_may_be_part_of_another(target: str) -> None:
    found = np.zeros_like(X)
    run("m = t > 3.0\nt[m[::-1]] = 127.0\npl.store(t, [0, 0], out0)", target, found)
    np.testing.assert_array_equal(found, np.where((X > 3)[::-1], np.float32(127), X))


def test_a_window_of_a_tile_takes_a_number(target: str) -> None:
    found = np.zeros_like(X)
    run("t[:, 0:2] = 0.5\nt[3] = 1\nt[-1, 5:] = pl.read(x, [0, 0])\npl.store(t, [0, 0], out0)", target, found)
    want: Array = X + 0
    want[:, 0:2], want[3], want[-1, 5:] = 0.5, 1, X[0, 0]
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize(
    "taken",
    [
        "u[pl.arange(7) + 1]", "t[pl.arange(7) - 1]", "u[:, pl.arange(7) + 37]", "u[pl.iota([7, 1], axis=0), 37]",
        "pl.gather(u, 1, pl.argsort(u) + 1)", "pl.sum(t, axis=1)[pl.iota([2, 4], axis=1) + 4]",
    ],
)  # fmt: skip
def test_an_index_outside_what_is_valid_is_an_error(taken: str, target: str) -> None:
    with pytest.raises(ExecutionError, match="index"):
        run(f"v = {taken}\nout0[0:1, 0:1] = v[0:1, 0:1]", target, np.zeros((1, 1), np.float32))
