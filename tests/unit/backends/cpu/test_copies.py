"""Copies in native code: tiles put into tiles, side by side, and filled up."""

from __future__ import annotations

import numpy as np
import pytest
from ops.kernels import Array, counting, kernel, out, scalar, tensor
from ops.native import Native, assert_same

import tilewright.language as pl
from tilewright.dtypes import STORABLE, DataType

every_type = pytest.mark.parametrize("dtype", STORABLE, ids=str)


def agree(native: Native, *args: Array | float) -> None:
    """Fail unless native code leaves what the interpreter leaves."""
    for got, want in native.run(args):
        assert_same(got, want)


ASSEMBLIES = [
    "pl.assemble(t, pl.slice(s, [3, 7], [1, 2]), [2, 5])",
    "pl.assemble(t, pl.slice(s, [3, 7], [1, 2]), [i, j])",
    "pl.assemble(t, pl.set_validshape(pl.slice(s, [3, 7], [1, 2]), 2, 5), [i, j])",
    "pl.assemble(t, pl.set_validshape(s, i, j), [i, j])",
    "pl.assemble(t, pl.neg(pl.slice(s, [3, 7], [1, 2])), [i, j])",
    "pl.assemble(pl.neg(t), pl.slice(s, [1, 7], [1, 2], drop_dims=[0]), [i, j])",
    "pl.assemble(pl.assemble(t, pl.neg(s), [0, 0]), pl.transpose(pl.slice(s, [2, 3], [0, 0]), 0, 1), [i, j])",
]


@pytest.mark.parametrize("result", ASSEMBLIES)
def test_a_tile_is_written_into_a_copy(result: str) -> None:
    native = Native(
        kernel(
            f"t = pl.load(x, [0, 0], [6, 20])\ns = pl.load(y, [0, 0], [6, 20])\nr = {result}\n"
            "out = pl.store(r, [0, 0], out)\nkept = pl.store(t, [0, 0], kept)",
            x=tensor(pl.FP32, 6, 20),
            y=tensor(pl.FP32, 6, 20),
            i=scalar(pl.INDEX),
            j=scalar(pl.INDEX),
            out=out(pl.FP32, 6, 20),
            kept=out(pl.FP32, 6, 20),
        )  # fmt: skip
    )
    for i, j in ((0, 0), (3, 10), (2, 7)):
        agree(native, counting(6, 20), counting(6, 20) + 0.5, i, j, *(np.zeros((6, 20), np.float32) for _ in "ab"))


def test_what_does_not_fit_a_tile_is_an_error() -> None:
    native = Native(
        kernel(
            "t = pl.load(x, [0, 0], [6, 20])\nr = pl.assemble(t, pl.slice(t, [3, 7], [0, 0]), [i, j])\n"
            "out = pl.store(r, [0, 0], out)",
            x=tensor(pl.FP32, 6, 20),
            i=scalar(pl.INDEX),
            j=scalar(pl.INDEX),
            out=out(pl.FP32, 6, 20),
        )  # fmt: skip
    )
    for i, j in ((4, 0), (-1, 0), (0, 14), (1 << 40, 0)):
        found, expected = native.errors([counting(6, 20), i, j, np.zeros((6, 20), np.float32)])
        assert found is not None and expected is not None and "does not fit" in found.message


def side_by_side(shape: tuple[int, ...], second: str) -> Native:
    """Return a kernel that stores two tiles of `shape`, the second four columns wide, side by side."""
    zeros, wide = [0] * len(shape), (*shape[:-1], 9)
    return Native(
        kernel(
            f"a = pl.load(x, {zeros}, {list(shape)})\nb = pl.load(y, {zeros}, {[*shape[:-1], 4]}{second})\n"
            f"out = pl.store(pl.concat(a, b), {zeros}, out)",
            x=tensor(pl.INT16, *shape),
            y=tensor(pl.INT16, *shape[:-1], 4),
            i=scalar(pl.INDEX),
            out=out(pl.INT16, *wide),
        )  # fmt: skip
    )


@pytest.mark.parametrize("columns", [3, 4])
@pytest.mark.parametrize("shape", [(5,), (4, 5), (2, 3, 5)], ids=str)
def test_tiles_lie_side_by_side(shape: tuple[int, ...], columns: int) -> None:
    native = side_by_side(shape, f", valid_shape={[*shape[:-1], columns]}")
    second = counting(*shape[:-1], 4, dtype=pl.INT16) + 100
    blank = np.full((*shape[:-1], 9), 7, np.int16)
    for got, want in native.run([counting(*shape, dtype=pl.INT16), second, 2, blank]):
        assert_same(got, want)


@pytest.mark.parametrize("shape", [(4, 5), (2, 3, 5)], ids=str)
def test_rows_that_only_the_first_of_two_tiles_has_cannot_be_looked_at(shape: tuple[int, ...]) -> None:
    native = side_by_side(shape, f", valid_shape=[{'i, ' * (len(shape) - 1)}4]")
    second = counting(*shape[:-1], 4, dtype=pl.INT16)
    blank = np.full((*shape[:-1], 9), 7, np.int16)
    found, expected = native.errors([counting(*shape, dtype=pl.INT16), second, 1, blank])
    assert found is not None and expected is not None and "nobody wrote" in found.message


def test_a_first_tile_with_partly_valid_rows_is_an_error() -> None:
    native = Native(
        kernel(
            "a = pl.load(x, [0, i], [6, 20])\nout = pl.store(pl.concat(a, a), [0, 0], out)",
            x=tensor(pl.FP32, 6, 20),
            i=scalar(pl.INDEX),
            out=out(pl.FP32, 6, 40),
        )  # fmt: skip
    )
    agree(native, counting(6, 20), 0, np.zeros((6, 40), np.float32))
    found, expected = native.errors([counting(6, 20), 2, np.zeros((6, 40), np.float32)])
    assert found is not None and expected is not None and "nobody wrote" in found.message


@every_type
def test_what_is_not_valid_is_filled(dtype: DataType) -> None:
    pads = ("pl.PadValue.zero", "pl.PadValue.max", "pl.PadValue.min")
    lines = [
        "a = pl.load(x, [0, 0], [6, 20], valid_shape=[4, 9])",
        "b = pl.load(x, [0, 0], [6, 20], valid_shape=[i, j])",
    ]
    outputs: dict[str, str] = {}
    for number, pad in enumerate(pads):
        for name in "ab":
            lines.append(f"{name}{number} = pl.store(pl.fillpad({name}, {pad}), [0, 0], {name}{number})")
            outputs[f"{name}{number}"] = out(dtype, 6, 20)
    native = Native(kernel("\n".join(lines), x=tensor(dtype, 6, 20), i=scalar(pl.INDEX), j=scalar(pl.INDEX), **outputs))
    x = np.ones((6, 20), dtype.numpy)
    for i, j in ((3, 17), (6, 20), (0, 5), (6, 0)):
        for got, want in native.run([x, i, j, *(np.zeros((6, 20), dtype.numpy) for _ in outputs)]):
            np.testing.assert_array_equal(got.astype(np.float64), want.astype(np.float64))  # not half bytes nobody has


@pytest.mark.parametrize("shape", [(21,), (2, 3, 21)], ids=str)
def test_tiles_of_any_rank_are_filled(shape: tuple[int, ...]) -> None:
    zeros, some = [0] * len(shape), ", ".join(["i"] * len(shape))
    native = Native(
        kernel(
            f"a = pl.load(x, {zeros}, {list(shape)}, valid_shape=[{some}])\n"
            f"out = pl.store(pl.fillpad(a, pl.PadValue.min), {zeros}, out)",
            x=tensor(pl.INT8, *shape),
            i=scalar(pl.INDEX),
            out=out(pl.INT8, *shape),
        )  # fmt: skip
    )
    agree(native, counting(*shape, dtype=pl.INT8), 2, np.zeros(shape, np.int8))


@every_type
def test_single_elements_are_read_and_written(dtype: DataType) -> None:
    native = Native(
        kernel(
            """
            t = pl.load(x, [0, 0], [4, 5])
            e = pl.read(t, [i, j])
            w = pl.write(t, [j, i], e)
            kept = pl.store(t, [0, 0], kept)
            out = pl.store(pl.write(w, [0, 1], e), [0, 0], out)
            """,
            x=tensor(dtype, 4, 5),
            i=scalar(pl.INDEX),
            j=scalar(pl.INDEX),
            kept=out(dtype, 4, 5),
            out=out(dtype, 4, 5),
        )  # fmt: skip
    )
    x = (counting(4, 5) % 2).astype(dtype.numpy)
    for i, j in ((2, 1), (3, 0), (0, 3)):
        agree(native, x, i, j, *(np.zeros((4, 5), dtype.numpy) for _ in "ab"))
    found, expected = native.errors([x, 4, 1, *(np.zeros((4, 5), dtype.numpy) for _ in "ab")])
    assert found is not None and expected is not None and "outside" in found.message
